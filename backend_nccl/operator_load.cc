#include "backend_nccl/operator_load.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>

#include "core/base/index.h"
#include "kernels/batch_norm.h"
#include "kernels/gemm_epilogue.h"
#include "kernels/kernels.h"

namespace syncline::nccl_backend {
namespace {

using kernels::Activation;
using kernels::ElementType;
using Kind = OperatorKernel::Kind;

// Bytes of values; further ones share memory. Far more than any cache holds.
constexpr std::size_t kMaxValues = std::size_t{4} << 30U;
constexpr std::size_t kLine = 512;

std::size_t whole_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Fills memory with numbers of about 1 in fp16, 0.01 in bf16 and fp32: products of zeros draw less
// power and run faster.
void fill(std::byte* to, std::size_t bytes) {
  std::mt19937 random(1);
  std::vector<std::uint16_t> numbers(std::min(bytes, std::size_t{16} << 20U) / 2 + 1);
  for (auto& number : numbers) {
    const auto bits = random();
    number = static_cast<std::uint16_t>(0x3c00U | (bits & 0x80ffU));
  }
  const std::size_t piece = 2 * (numbers.size() - 1);
  for (std::size_t done = 0; done < bytes; done += piece) {
    check_cuda(cudaMemcpy(to + done, numbers.data(), std::min(piece, bytes - done),
                          cudaMemcpyHostToDevice),
               "cudaMemcpy to the device");
  }
}

CudaMemory device_memory(std::size_t bytes) {
  return {CudaMemory::Where::kDevice, std::max(bytes, kLine)};
}

// Returns array `number` among consecutive arrays of `floats` each.
float* array(const CudaMemory& memory, std::size_t number, std::int64_t floats) {
  return reinterpret_cast<float*>(memory.data() + number * whole_lines(4 * index(floats)));
}

}  // namespace

OperatorLoad::OperatorLoad(const Workload& workload, const Device& device)
    : workload_(workload), device_(device) {
  if (workload.operators->empty()) {
    throw InputError(
        "--compute kernels runs a workload's operators, and this one has none: give "
        "workload.operators, an architecture or a list");
  }
  if (device.flops <= 0 || device.memory <= 0) {
    throw InputError("--compute kernels needs cluster.device with its rates, or its base");
  }
  kernels_ = operator_kernels(workload, device);
  allocate();
}

// Reserves device memory: for values, which reuse at most kMaxValues bytes, for the optimizer's
// states, and for workspaces.
void OperatorLoad::allocate() {
  std::size_t most = 0, all = 0;
  for (const auto& value : workload_.operators->values) {
    most = std::max(most, whole_lines(index(value.bytes)));
    all += whole_lines(index(value.bytes));
  }
  std::size_t aux = 0, workspace = 0, channels = 0;
  std::vector<std::size_t> updated;
  for (const auto& kernel : kernels_) {
    if (kernel.kind == Kind::kProduct) {
      workspace = std::max(workspace, kernels::kGemmWorkspaceBytes);
      const std::int64_t largest =
          std::max({kernel.rows * kernel.inner, kernel.inner * kernel.columns,
                    kernel.rows * kernel.columns});
      most = std::max(most, whole_lines(index(largest * kernels::element_bytes(kernel.type))));
      aux = std::max({aux,
                      kernels::linear_aux_bytes(kernel.type, kernel.activation, kernel.rows,
                                                std::max(kernel.inner, kernel.columns)),
                      4 * index(kernel.columns)});
    } else if (kernel.kind == Kind::kNorm) {
      workspace =
          std::max(workspace, 4 * index(kernels::batch_norm_workspace(
                                      kernel.rows, static_cast<std::int32_t>(kernel.columns))));
      channels = std::max(channels, 6 * whole_lines(4 * index(kernel.columns)));
    }
    states_at_.push_back(states_);
    if (kernel.kind != Kind::kUpdate) continue;
    states_ += whole_lines(4 * index(kernel.columns)) / 4;
    most = std::max(most, whole_lines(4 * index(kernel.columns)));
  }
  const std::size_t values = std::max(most, std::min(all, kMaxValues));
  std::size_t next = 0;
  for (const auto& value : workload_.operators->values) {
    const std::size_t bytes = whole_lines(index(value.bytes));
    if (next + bytes > values) next = 0;
    places_.push_back(next);
    next += bytes;
  }
  read_ = device_memory(values);
  written_ = device_memory(values);
  optimizer_ = device_memory(3 * 4 * states_ + kLine);
  channels_ = device_memory(channels);
  workspace_ = device_memory(workspace);
  aux_ = device_memory(aux);
  fill(read_.data(), values);
  fill(channels_.data(), channels);
  fill(aux_.data(), aux);
  check_cuda(cudaMemset(optimizer_.data(), 0, 3 * 4 * states_), "cudaMemset");
  const kernels::UpdateState state;
  check_cuda(
      cudaMemcpy(optimizer_.data() + 3 * 4 * states_, &state, sizeof state, cudaMemcpyHostToDevice),
      "cudaMemcpy to the device");
}

void OperatorLoad::prepare(const plan::Plan& plan) {
  ranges_ = operators_by_operation(plan, workload_, kernels_);
}

int OperatorLoad::commands(plan::OpId op) const {
  int sum = 0;
  bool waiting = false;
  for (const OperatorRange& range : ranges_[index(op)]) {
    for (std::size_t i = range.first; i < range.last; ++i) {
      const OperatorKernel& kernel = kernels_[i];
      const bool waits = kernel.kind == Kind::kTime;
      if (!(waits && waiting)) sum += waits || kernel.kind == Kind::kProduct ? 2 : 1;
      if (kernel.kind == Kind::kNorm) sum += 2;
      waiting = waits;
    }
  }
  return sum;
}

// Runs the kernels of an operation. Consecutive operators without a kernel pass their times as one.
void OperatorLoad::run(plan::OpId op, cudaStream_t stream, const PassTime& pass) const {
  Seconds waiting = 0;
  const auto pass_waiting = [&] {
    if (waiting > 0) pass(waiting, stream);
    waiting = 0;
  };
  for (const OperatorRange& range : ranges_[index(op)]) {
    for (std::size_t i = range.first; i < range.last; ++i) {
      const OperatorKernel& kernel = kernels_[i];
      if (kernel.kind == Kind::kTime) {
        waiting += kernel.seconds + kernel.launches * device_.kernel_gap;
        continue;
      }
      pass_waiting();
      launch(kernel, i, stream);
    }
  }
  pass_waiting();
}

void OperatorLoad::launch(const OperatorKernel& kernel, std::size_t number,
                          cudaStream_t stream) const {
  switch (kernel.kind) {
    case Kind::kTime:
      return;
    case Kind::kNorm:
      return norm(kernel, stream);
    case Kind::kSum:
      return sum(kernel, stream);
    case Kind::kProduct:
      return product(kernel, stream);
    case Kind::kUpdate:
      return update(kernel, number, stream);
  }
}

void OperatorLoad::norm(const OperatorKernel& kernel, cudaStream_t stream) const {
  kernels::BatchNorm norm;
  norm.type = kernel.type;
  norm.rows = kernel.rows;
  norm.channels = static_cast<std::int32_t>(kernel.columns);
  norm.relu = kernel.activation == Activation::kRelu;
  norm.x = input(kernel.reads[0]);
  norm.residual = kernel.added ? input(kernel.reads[1]) : nullptr;
  norm.gamma = array(channels_, 0, kernel.columns);
  norm.beta = array(channels_, 1, kernel.columns);
  norm.mean = array(channels_, 2, kernel.columns);
  norm.inverse_deviation = array(channels_, 3, kernel.columns);
  norm.workspace = reinterpret_cast<float*>(workspace_.data());
  std::byte* const y = output(kernel.writes[0]);
  if (!kernel.gradient) return check_kernel(kernels::batch_norm_forward(norm, y, stream));
  kernels::BatchNormGradients gradients;
  gradients.dy = input(kernel.reads[2]);
  gradients.dx = y;
  gradients.dresidual = kernel.added ? output(kernel.writes[1]) : nullptr;
  gradients.dgamma = array(channels_, 4, kernel.columns);
  gradients.dbeta = array(channels_, 5, kernel.columns);
  check_kernel(kernels::batch_norm_backward(norm, gradients, stream));
}

void OperatorLoad::sum(const OperatorKernel& kernel, cudaStream_t stream) const {
  const kernels::AddActivation inputs{kernel.type, kernel.activation, input(kernel.reads[0]),
                                      kernel.added ? input(kernel.reads[1]) : nullptr,
                                      kernel.columns};
  std::byte* const y = output(kernel.writes[0]);
  check_kernel(kernel.gradient
                   ? kernels::add_activation_gradient(inputs, input(kernel.reads[1]), y, stream)
                   : kernels::add_activation(inputs, y, stream));
}

// Runs a product. Without bias and activation it is computed as an input's gradient.
void OperatorLoad::product(const OperatorKernel& kernel, cudaStream_t stream) const {
  const kernels::GemmWorkspace workspace{workspace_.data(), kernels::kGemmWorkspaceBytes};
  const kernels::LinearShape layer{kernel.type, kernel.activation, kernel.rows, kernel.inner,
                                   kernel.columns};
  const kernels::LinearShape bare{kernel.type, Activation::kIdentity, kernel.rows, kernel.columns,
                                  kernel.inner};
  const bool activated = kernel.activation != Activation::kIdentity;
  void* const aux = activated ? aux_.data() : nullptr;
  std::byte* const first = output(kernel.writes[0]);
  if (!kernel.gradient && !kernel.added) {
    return check_kernel(kernels::linear_input_gradient(
        bare, {input(kernel.reads[0]), input(kernel.reads[1]), nullptr, first, nullptr}, workspace,
        stream));
  }
  if (!kernel.gradient) {
    return check_kernel(kernels::linear_forward(
        layer, {input(kernel.reads[0]), input(kernel.reads[1]), aux_.data(), first, aux}, workspace,
        stream));
  }
  const void* const dy = input(kernel.reads[1]);
  if (kernel.inputs_too) {
    check_kernel(kernels::linear_input_gradient(
        layer, {dy, input(kernel.reads[2]), aux, first, nullptr}, workspace, stream));
  }
  kernels::LinearShape plain = layer;
  plain.activation = Activation::kIdentity;
  check_kernel(kernels::linear_weight_gradient(
      plain,
      {dy, input(kernel.reads[0]), output(kernel.writes[1]), kernel.added ? aux_.data() : nullptr},
      workspace, stream));
}

void OperatorLoad::update(const OperatorKernel& kernel, std::size_t number,
                          cudaStream_t stream) const {
  const auto states = [&](std::size_t array) {
    return reinterpret_cast<float*>(optimizer_.data()) + array * states_ + states_at_[number];
  };
  auto* const state = reinterpret_cast<kernels::UpdateState*>(
      reinterpret_cast<float*>(optimizer_.data()) + 3 * states_);
  kernels::FlatBucket bucket;
  bucket.weights = states(0);
  bucket.gradients = reinterpret_cast<const float*>(
      kernel.columns * 4 > workload_.operators->values[index(kernel.reads[0])].bytes
          ? read_.data()
          : input(kernel.reads[0]));
  bucket.first_moment = kernel.states > 0 ? states(1) : nullptr;
  bucket.second_moment = kernel.states > 1 ? states(2) : nullptr;
  bucket.elements = kernel.columns;
  if (kernel.states == 2) {
    return check_kernel(kernels::update_adam(bucket, {}, state, stream));
  }
  kernels::SgdOptions options;
  options.learning_rate = 1e-3;
  options.momentum = kernel.states == 1 ? 0.9 : 0;
  check_kernel(kernels::update_sgd(bucket, options, state, stream));
}

std::string OperatorLoad::describe() const {
  Seconds all = 0, kernels = 0;
  std::size_t with = 0;
  for (const auto& kernel : kernels_) {
    all += kernel.seconds;
    if (kernel.kind == Kind::kTime) continue;
    kernels += kernel.seconds;
    ++with;
  }
  char text[128];
  std::snprintf(
      text, sizeof text,
      "%zu of %zu operators run as kernels, %.0f %% of the predicted time; the others pass "
      "theirs",
      with, kernels_.size(), 100 * kernels / std::max(all, 1e-30));
  return text;
}

}  // namespace syncline::nccl_backend
