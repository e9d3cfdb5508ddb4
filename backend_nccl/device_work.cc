#include "backend_nccl/device_work.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/base/index.h"
#include "kernels/gemm_epilogue.h"
#include "kernels/kernels.h"

namespace syncline::nccl_backend {
namespace {

constexpr std::size_t kProductBytes = std::size_t{4} << 20;  // sums of a product's parts

kernels::ElementType element_of(DType format) {
  switch (format) {
    case DType::kFp32:
      return kernels::ElementType::kFp32;
    case DType::kFp16:
      return kernels::ElementType::kFp16;
    case DType::kBf16:
      return kernels::ElementType::kBf16;
    case DType::kFp64:
      break;
  }
  assert(false && "fp64 is staged, never cast on the device");
  return kernels::ElementType::kFp32;
}

void copy(void* to, const void* from, std::int64_t bytes, cudaMemcpyKind kind,
          cudaStream_t stream) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, index(bytes), kind, stream), "cudaMemcpyAsync");
}

bool is_staged(Action::Kind kind) {
  return kind == Action::Kind::kStagedFill || kind == Action::Kind::kStagedBetween ||
         kind == Action::Kind::kStagedRead || kind == Action::Kind::kStagedAverage;
}

kernels::BlockFormat block_format(const compress::Codec& codec) {
  return codec.name == "int8"   ? kernels::BlockFormat::kInt8
         : codec.name == "int4" ? kernels::BlockFormat::kInt4
         : codec.name == "fp8"  ? kernels::BlockFormat::kFp8
                                : kernels::BlockFormat::kFp8E5M2;
}

}  // namespace

DeviceWork::DeviceWork(const plan::Plan& plan, const Workload& workload, int rank,
                       const run::RankGradients& input, Communicators& communicators)
    : plan_(plan), input_(input), communicators_(communicators), memory_(plan, workload, rank) {
  block_ = CudaMemory(CudaMemory::Where::kDevice, index(memory_.bytes()));
  make_staged(plan);
  make_sparse(plan, rank);
  for (const auto& matrices : memory_.matrices()) {
    products_.emplace_back(CudaMemory::Where::kDevice, matrices.empty() ? 0 : kProductBytes);
  }
  load();
}

void DeviceWork::make_sparse(const plan::Plan& plan, int rank) {
  sparse_.resize(plan.buckets.size());
  for (const plan::Bucket& bucket : plan.buckets) tensors_.push_back(bucket.tensors.front());
  const CudaStream stream(false);
  const auto device = [](std::size_t bytes) {
    return CudaMemory(CudaMemory::Where::kDevice, std::max<std::size_t>(bytes, 1));
  };
  for (std::size_t b = 0; b < memory_.waiting().size(); ++b) {
    const auto& waiting = memory_.waiting()[b];
    if (waiting.residual.bytes == 0) continue;
    auto& sparse = *(sparse_[b] = std::make_unique<Sparse>());
    auto* gradient = reinterpret_cast<float*>(at(memory_.gradients()[index(tensors_[b])]));
    const std::int64_t elements = waiting.residual.bytes / kFloatBytes;
    sparse.rank = rank;
    sparse.ranks = plan.ranks;
    sparse.kept = plan.buckets[b].kept;
    check_kernel(
        kernels::dgc_plan({{gradient, reinterpret_cast<float*>(at(waiting.velocity)),
                            reinterpret_cast<float*>(at(waiting.residual)), elements, sparse.kept}},
                          &sparse.step));
    check_kernel(
        kernels::sparse_plan({{gradient, elements, std::min(sparse.kept, elements)}}, &sparse.sum));
    sparse.step_workspace = device(sparse.step.workspace_bytes);
    sparse.sum_workspace = device(sparse.sum.workspace_bytes);
    sparse.report = device(sizeof(kernels::DgcReport));
    sparse.rejected = device(sizeof(std::uint32_t));
    check_kernel(kernels::dgc_prepare(&sparse.step, sparse.step_workspace.data(), stream.get()));
    check_kernel(kernels::sparse_prepare(&sparse.sum, sparse.sum_workspace.data(), stream.get()));
  }
  check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
}

void DeviceWork::encode(int bucket, cudaStream_t stream) const {
  const Sparse& sparse = *sparse_[index(bucket)];
  auto* part = reinterpret_cast<std::uint32_t*>(at(memory_.payloads()[index(bucket)])) +
               2 * sparse.rank * sparse.kept;
  kernels::DgcStep step;
  step.indices = part;
  step.values = reinterpret_cast<float*>(part + sparse.kept);
  step.reports = reinterpret_cast<kernels::DgcReport*>(sparse.report.data());
  check_kernel(kernels::dgc_step(sparse.step, step, stream));
}

// Sums by the sparse update, which subtracts rate x value: at rate -1 it adds.
void DeviceWork::decode(int bucket, cudaStream_t stream) const {
  const Sparse& sparse = *sparse_[index(bucket)];
  const Region& gradient = memory_.gradients()[index(tensors_[index(bucket)])];
  check_cuda(cudaMemsetAsync(at(gradient), 0, index(gradient.bytes), stream), "cudaMemsetAsync");
  kernels::SparseApply sum;
  sum.ranks = sparse.ranks;
  sum.indices = reinterpret_cast<std::uint32_t*>(at(memory_.payloads()[index(bucket)]));
  sum.values = reinterpret_cast<const float*>(sum.indices + sparse.kept);
  sum.rank_stride = 2 * sparse.kept;
  sum.rate = -1;
  sum.rejected = reinterpret_cast<std::uint32_t*>(sparse.rejected.data());
  check_kernel(kernels::sparse_apply(sparse.sum, sum, stream));
}

void DeviceWork::make_staged(const plan::Plan& plan) {
  staged_.resize(plan.buckets.size());
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    for (const Action& action : memory_.actions(static_cast<plan::OpId>(i))) {
      if (!is_staged(action.kind)) continue;
      auto& bucket = staged_[index(action.bucket)];
      if (bucket && action.kind == Action::Kind::kStagedBetween)
        bucket->behind = index(action.parts);
      if (bucket) continue;
      bucket = std::make_unique<Staged>();
      bucket->layout = &memory_.layouts()[index(action.bucket)];
      bucket->bucket = &plan.buckets[index(action.bucket)];
      if (memory_.host_averages(index(action.bucket))) bucket->averaged = this;
      bucket->host.resize(input_.size());
      std::int64_t bytes = 0;
      for (const bool fill : {true, false}) {
        auto& slices = bucket->slices[fill ? 0 : 1];
        slices = memory_.staged_slices(action.bucket, fill);
        for (const auto& slice : slices) {
          bucket->host[index(slice.tensor)].resize(input_[index(slice.tensor)].size());
          bytes = std::max(bytes, slice.at + slice.count * kFloatBytes);
        }
      }
      bucket->gradients = CudaMemory(CudaMemory::Where::kHost, index(bytes));
      bucket->payload = CudaMemory(CudaMemory::Where::kHost, index(bucket->layout->bytes()));
      // Other ranks' parts are uploaded unwritten and are overwritten by the all-gather.
      if (bucket->layout->bytes() > 0) {
        std::memset(bucket->payload.data(), 0, index(bucket->layout->bytes()));
      }
    }
  }
}

void DeviceWork::load() {
  outer_.emplace(plan_);
  parameters_ = sent_ = input_;
  for (const auto& bucket : staged_) {
    if (bucket) bucket->under_way = false;
  }
  if (memory_.bytes() > 0) {
    check_cuda(cudaMemset(block_.data(), 0, index(memory_.bytes())), "cudaMemset");
  }
  memory_.load(input_, [&](std::int64_t at, const void* from, std::int64_t bytes) {
    check_cuda(cudaMemcpy(block_.data() + at, from, index(bytes), cudaMemcpyHostToDevice),
               "cudaMemcpy to the device");
  });
  // The legacy stream is not ordered before non-blocking streams.
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void DeviceWork::carry_out(plan::OpId op, int communicator, cudaStream_t stream) {
  for (const Action& action : memory_.actions(op)) {
    if (action.kind == Action::Kind::kExchange) {
      communicators_.exchange(communicator, action.calls, block_.data(), stream);
    } else if (is_staged(action.kind)) {
      stage_on_host(action, stream);
    } else if (action.kind == Action::Kind::kEncode) {
      encode(action.bucket, stream);
    } else if (action.kind == Action::Kind::kDecode) {
      decode(action.bucket, stream);
    } else if (action.kind == Action::Kind::kFactors) {
      factors(action, stream);
    } else if (action.kind == Action::Kind::kPackBlocks ||
               action.kind == Action::Kind::kSumBlocks ||
               action.kind == Action::Kind::kUnpackBlocks) {
      blocks(action, stream);
    } else {
      move(action, stream);
    }
  }
}

void DeviceWork::blocks(const Action& action, cudaStream_t stream) const {
  const plan::Bucket& bucket = plan_.buckets[index(action.bucket)];
  const kernels::BlockFormat format = block_format(*bucket.codec);
  auto* row = reinterpret_cast<float*>(at(memory_.rows()[index(action.bucket)]));
  std::byte* const units = at(memory_.payloads()[index(action.bucket)]);
  if (action.kind == Action::Kind::kPackBlocks) {
    check_kernel(kernels::blocks_encode(format, row, bucket.elements, units, stream));
  } else if (action.kind == Action::Kind::kUnpackBlocks) {
    check_kernel(kernels::blocks_decode(format, units, row, bucket.elements, stream));
  } else {
    const Action::Move& move = action.moves.front();
    check_kernel(kernels::blocks_sum(format, block_.data() + move.to,
                                     {block_.data() + move.from, move.count, action.parts},
                                     move.count / kernels::block_bytes(format), stream));
  }
}

// Runs one of the three products of each matrix: M Q, M^T P (P summed, orthogonalised), P Q^T.
void DeviceWork::factors(const Action& action, cudaStream_t stream) const {
  const auto& matrices = memory_.matrices()[index(action.bucket)];
  const kernels::GemmWorkspace workspace{products_[index(action.bucket)].data(), kProductBytes};
  const auto number = [&](std::int64_t place) {
    return reinterpret_cast<float*>(block_.data() + place);
  };
  if (action.parts == 1) {
    std::vector<kernels::Factor> factors;
    for (const auto& each : matrices) {
      factors.push_back({number(each.p), each.shape.rows, static_cast<int>(each.shape.rank)});
    }
    check_kernel(kernels::orthogonalise(factors, stream));
  }
  for (const auto& each : matrices) {
    const auto [elements, rows, columns, rank] = each.shape;
    kernels::LinearShape shape;
    shape.type = kernels::ElementType::kFp32;
    shape.rows = rows;
    shape.inputs = rank;
    shape.outputs = columns;
    if (action.parts == 0) {
      check_kernel(kernels::linear_input_gradient(
          shape, {number(each.numbers), number(each.start), nullptr, number(each.p), nullptr},
          workspace, stream));
    } else if (action.parts == 1) {
      check_kernel(kernels::linear_weight_gradient(
          shape, {number(each.numbers), number(each.p), number(each.q), nullptr}, workspace,
          stream));
    } else {
      check_kernel(kernels::linear_forward(
          shape, {number(each.p), number(each.q), nullptr, number(each.numbers), nullptr},
          workspace, stream));
    }
  }
}

void DeviceWork::move(const Action& action, cudaStream_t stream) const {
  if (action.kind == Action::Kind::kCopy) {
    for (const auto& each : action.moves) {
      copy(block_.data() + each.to, block_.data() + each.from, each.count, cudaMemcpyDeviceToDevice,
           stream);
    }
    return;
  }
  if (action.kind == Action::Kind::kClear) {
    for (const auto& each : action.moves) {
      check_cuda(cudaMemsetAsync(block_.data() + each.to, 0, index(each.count), stream),
                 "cudaMemsetAsync");
    }
    return;
  }
  if (action.kind == Action::Kind::kDivide) {
    for (const auto& each : action.moves) {
      check_kernel(kernels::divide(reinterpret_cast<float*>(block_.data() + each.to), each.count,
                                   action.divisor, stream));
    }
    return;
  }
  std::vector<kernels::PackedTensor> tensors;
  for (const auto& each : action.moves) {
    tensors.push_back({block_.data() + each.from, block_.data() + each.to, each.count});
  }
  check_kernel(kernels::pack(tensors, element_of(action.from), element_of(action.to), stream));
}

// Copies slices between the gradients on the device and the host's copy of them.
void DeviceWork::cross(const Staged& bucket, int which, cudaMemcpyKind direction,
                       cudaStream_t stream) const {
  for (const auto& slice : bucket.slices[which]) {
    std::byte* device =
        block_.data() + memory_.gradients()[index(slice.tensor)].at + slice.first * kFloatBytes;
    std::byte* host = bucket.gradients.data() + slice.at;
    const bool up = direction == cudaMemcpyDeviceToHost;
    copy(up ? host : device, up ? device : host, slice.count * kFloatBytes, direction, stream);
  }
}

void DeviceWork::stage_on_host(const Action& action, cudaStream_t stream) {
  Staged& bucket = *staged_[index(action.bucket)];
  std::byte* payload = block_.data() + memory_.payloads()[index(action.bucket)].at;
  const std::int64_t bytes = bucket.layout->bytes();
  const auto call = [&](cudaHostFn_t work) {
    check_cuda(cudaLaunchHostFunc(stream, work, &bucket), "cudaLaunchHostFunc");
  };
  switch (action.kind) {
    case Action::Kind::kStagedFill:
      cross(bucket, 0, cudaMemcpyDeviceToHost, stream);
      call(on_host<fill_on_host>);
      copy(payload, bucket.payload.data(), bytes, cudaMemcpyHostToDevice, stream);
      return;
    case Action::Kind::kStagedBetween:
      copy(bucket.payload.data(), payload, bytes, cudaMemcpyDeviceToHost, stream);
      call(on_host<work_on_host>);
      copy(payload, bucket.payload.data(), bytes, cudaMemcpyHostToDevice, stream);
      return;
    case Action::Kind::kStagedAverage:
      copy(bucket.payload.data(), payload, bytes, cudaMemcpyDeviceToHost, stream);
      call(on_host<average_on_host>);
      return;
    case Action::Kind::kStagedRead:
      copy(bucket.payload.data(), payload, bytes, cudaMemcpyDeviceToHost, stream);
      call(on_host<read_on_host>);
      cross(bucket, 1, cudaMemcpyHostToDevice, stream);
      return;
    default:
      assert(false && "an action that is not staged");
  }
}

// Called by CUDA in stream order. No CUDA call is allowed here, and exceptions must not escape.
template <void (*kWork)(DeviceWork::Staged&)>
void CUDART_CB DeviceWork::on_host(void* bucket) {
  auto& here = *static_cast<Staged*>(bucket);
  try {
    kWork(here);
  } catch (...) {
    here.failed = true;  // probably out of memory; result() reports it
  }
}

void DeviceWork::fill_on_host(Staged& bucket) {
  if (DeviceWork* const work = bucket.averaged; work != nullptr) {
    const std::lock_guard lock(work->averaging_);
    for (const int tensor : bucket.bucket->tensors) {
      auto& values = work->sent_[index(tensor)] = work->input_[index(tensor)];
      work->outer_->make(tensor, values);
    }
    bucket.layout->fill(work->sent_, bucket.payload.data());
    bucket.under_way = true;
    return;
  }
  for (const auto& slice : bucket.slices[0]) {
    std::memcpy(bucket.host[index(slice.tensor)].data() + slice.first,
                bucket.gradients.data() + slice.at, index(slice.count * kFloatBytes));
  }
  bucket.layout->fill(bucket.host, bucket.payload.data());
}

void DeviceWork::work_on_host(Staged& bucket) {
  bucket.layout->between(bucket.behind, bucket.host, bucket.payload.data());
}

void DeviceWork::read_on_host(Staged& bucket) {
  bucket.layout->read(bucket.payload.data(), bucket.host);
  for (const auto& slice : bucket.slices[1]) {
    std::memcpy(bucket.gradients.data() + slice.at,
                bucket.host[index(slice.tensor)].data() + slice.first,
                index(slice.count * kFloatBytes));
  }
}

void DeviceWork::average_on_host(Staged& bucket) {
  DeviceWork& work = *bucket.averaged;
  const std::lock_guard lock(work.averaging_);
  if (!std::exchange(bucket.under_way, false)) return;
  bucket.layout->read(bucket.payload.data(), work.sent_);
  for (const int tensor : bucket.bucket->tensors) {
    const auto t = index(tensor);
    work.outer_->apply(tensor, work.input_[t], work.sent_[t]);
    work.parameters_[t] = work.sent_[t];
  }
}

int DeviceWork::commands(plan::OpId op) const {
  std::size_t commands = 0;
  for (const Action& action : memory_.actions(op)) {
    switch (action.kind) {
      case Action::Kind::kCopy:
      case Action::Kind::kClear:
        commands += action.moves.size();
        break;
      case Action::Kind::kStagedFill:
      case Action::Kind::kStagedBetween:
      case Action::Kind::kStagedRead:
      case Action::Kind::kStagedAverage:
        commands += 2 + staged_[index(action.bucket)]->slices[0].size() +
                    staged_[index(action.bucket)]->slices[1].size();
        break;
      case Action::Kind::kFactors:
        commands += 1 + memory_.matrices()[index(action.bucket)].size();
        break;
      case Action::Kind::kEncode:
        commands += 7;
        break;
      default:
        // One kernel takes many moves; NCCL adds a few commands of its own around its kernel.
        commands += 4;
    }
  }
  return static_cast<int>(commands);
}

run::RankGradients DeviceWork::result(const run::RankGradients& input) const {
  for (const auto& bucket : staged_) {
    if (bucket && bucket->failed) {
      throw DeviceError("encoding or decoding on the host failed: out of memory?");
    }
  }
  for (const auto& bucket : sparse_) {
    std::uint32_t rejected = 0;
    if (!bucket) continue;
    check_cuda(
        cudaMemcpy(&rejected, bucket->rejected.data(), sizeof rejected, cudaMemcpyDeviceToHost),
        "cudaMemcpy from the device");
    if (rejected == 1) throw DeviceError("a rank sent indices that are not rising, or no numbers");
  }
  const auto averaged = [](const auto& bucket) { return bucket && bucket->averaged != nullptr; };
  if (std::any_of(staged_.begin(), staged_.end(), averaged)) return parameters_;
  return memory_.result(input, [&](std::int64_t at, void* to, std::int64_t bytes) {
    check_cuda(cudaMemcpy(to, block_.data() + at, index(bytes), cudaMemcpyDeviceToHost),
               "cudaMemcpy from the device");
  });
}

}  // namespace syncline::nccl_backend
