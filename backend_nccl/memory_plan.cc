#include "backend_nccl/memory_plan.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "backend_nccl/launch_order.h"
#include "core/algorithm.h"
#include "core/base/error.h"
#include "core/base/index.h"
#include "core/run/bucket_use.h"
#include "core/run/outer_step.h"
#include "core/run/payload.h"

namespace syncline::nccl_backend {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  constexpr std::int64_t kStep = MemoryPlan::kAlignment;
  return (bytes + kStep - 1) / kStep * kStep;
}

bool castable(DType format) { return format != DType::kFp64; }

WireNumber number_of(DType format) {
  switch (format) {
    case DType::kFp32:
      return WireNumber::kFp32;
    case DType::kFp16:
      return WireNumber::kFp16;
    case DType::kBf16:
      return WireNumber::kBf16;
    case DType::kFp64:
      return WireNumber::kFp64;
  }
  return WireNumber::kByte;
}

// Adds a move, or extends the last one if both sides continue it.
void add_move(Action& action, const Action::Move& move) {
  if (move.count == 0) return;
  if (!action.moves.empty()) {
    auto& last = action.moves.back();
    if (last.from + last.count == move.from && last.to + last.count == move.to) {
      last.count += move.count;
      return;
    }
  }
  action.moves.push_back(move);
}

Bytes unit_of(const plan::Bucket& bucket) {
  return bucket.codec->encoded_bytes(bucket.codec->block, bucket.codec->block);
}

auto means_of(const plan::Plan& plan) {
  return std::ranges::count_if(plan.ops, [](const plan::Op& op) {
    const auto* compute = std::get_if<plan::Compute>(&op.work);
    return compute != nullptr && compute->phase == plan::Phase::kAverage;
  });
}

// Returns true if averaging is more than one mean of all parameters at once: the GPU has no kernel
// for it.
bool has_outer_steps(const plan::Plan& plan) {
  bool sent = false;
  bool delayed = false;  // the model computes while parameters travel
  for (const plan::Op& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    const auto* compute = std::get_if<plan::Compute>(&op.work);
    sent |= collective != nullptr && plan.buckets[index(collective->bucket)].averaged;
    delayed |= sent && compute != nullptr && compute->phase != plan::Phase::kAverage;
  }
  return means_of(plan) > 1 || delayed || plan.outer.any();
}

}  // namespace

MemoryPlan::MemoryPlan(const plan::Plan& plan, const Workload& workload, int rank)
    : plan_(plan),
      rank_(rank),
      uses_(run::bucket_uses(plan)),
      outer_steps_(has_outer_steps(plan)),
      averages_(means_of(plan) > 0 && !outer_steps_),
      tensors_(workload.tensors.size()) {
  lay_out(workload);
  actions_.resize(plan.ops.size());
  for (std::size_t i = 0; i < plan.ops.size(); ++i) act(static_cast<plan::OpId>(i));
}

bool MemoryPlan::view(std::size_t bucket) const {
  const run::Payload& layout = layouts_[bucket];
  const bool keeps_means = !averages_ || layout.format() == DType::kFp32;
  return run::is_view(uses_[bucket], layout) && keeps_means && !host_averages(bucket);
}

bool MemoryPlan::sparse_codec(std::size_t bucket) const {
  const plan::Bucket& what = plan_.buckets[bucket];
  return !what.sparse && what.codec != nullptr && what.codec->sparse;
}

Region MemoryPlan::reserve(std::int64_t bytes) {
  const Region region{bytes_, bytes};
  bytes_ = aligned(bytes_ + bytes);
  return region;
}

void MemoryPlan::lay_out(const Workload& workload) {
  for (const auto* list : {&workload.tensors, &workload.buffers}) {
    for (const Tensor& tensor : *list) elements_.push_back(tensor.elements);
  }
  buckets_of_.resize(elements_.size());
  gradients_.resize(elements_.size());
  inputs_.resize(elements_.size());
  std::vector<char> apart(elements_.size(), 0);  // has its own gradients
  const std::size_t buckets = plan_.ranks > 1 ? plan_.buckets.size() : 0;
  for (std::size_t b = 0; b < buckets; ++b) {
    layouts_.emplace_back(plan_, static_cast<int>(b), rank_, workload);
    payloads_.push_back(reserve(layouts_[b].bytes()));
    if (host_averages(b)) continue;
    for (const int tensor : plan_.buckets[b].tensors) {
      buckets_of_[index(tensor)].push_back(static_cast<int>(b));
      if (!view(b)) apart[index(tensor)] = 1;
    }
  }
  for (std::size_t b = 0; b < buckets; ++b) {
    const std::int64_t blocks = layouts_[b].blocks() ? layouts_[b].bytes() : 0;
    const plan::Bucket& what = plan_.buckets[b];
    rows_.push_back(blocks == 0 ? Region{} : reserve(what.elements * kFloatBytes));
    // A part is at most one block larger than its share.
    received_.push_back(blocks == 0 ? Region{} : reserve(blocks + plan_.ranks * unit_of(what)));
    produced_.push_back(view(b) ? reserve(layouts_[b].bytes()) : Region{});
    waiting_.emplace_back();
    lay_out_factors(b);
    if (!sparse_codec(b)) continue;
    const std::int64_t bytes = elements_[index(plan_.buckets[b].tensors.front())] * kFloatBytes;
    waiting_.back() = {reserve(bytes), reserve(bytes)};
  }
  for (auto* regions : {&gradients_, &inputs_}) {
    for (std::size_t t = 0; t < elements_.size(); ++t) {
      if (apart[t] == 0) continue;
      (*regions)[t] = reserve(elements_[t] * kFloatBytes);
    }
  }
}

void MemoryPlan::lay_out_factors(std::size_t bucket) {
  const run::Payload& layout = layouts_[bucket];
  auto& matrices = matrices_.emplace_back();
  if (!castable(layout.format())) return;
  const bool apart = layout.format() != DType::kFp32;
  const std::int64_t unit = size_of(layout.format());
  // Factors in fp32 are those of the payload.
  const std::int64_t factors = apart && !layout.factors().empty()
                                   ? reserve(layout.bytes() / unit * kFloatBytes).at
                                   : payloads_[bucket].at;
  for (const auto& [tensors, shape, p, q] : layout.factors()) {
    if (shape.rank == 0) continue;
    matrices.push_back({shape, reserve(shape.rows * shape.columns * kFloatBytes).at,
                        reserve(shape.columns * shape.rank * kFloatBytes).at,
                        factors + p * kFloatBytes, factors + q * kFloatBytes});
  }
}

std::vector<std::byte> MemoryPlan::view_image(std::size_t bucket,
                                              const run::RankGradients& input) const {
  std::vector<std::byte> image(index(payloads_[bucket].bytes));
  for (const int tensor : plan_.buckets[bucket].tensors) {
    layouts_[bucket].fill_tensor(tensor, input[index(tensor)], image.data());
  }
  return image;
}

std::vector<run::PayloadSlice> MemoryPlan::staged_slices(int bucket, bool fill) const {
  const run::Payload& layout = layouts_[index(bucket)];
  std::vector<run::PayloadSlice> slices;
  if (host_averages(index(bucket))) return slices;
  if (layout.is_summed()) {
    slices = fill ? layout.filled_slices() : layout.read_back();
  } else {
    for (const int tensor : plan_.buckets[index(bucket)].tensors) {
      slices.push_back({tensor, 0, elements_[index(tensor)], 0});
    }
  }
  std::int64_t at = 0;
  for (auto& slice : slices) {
    slice.at = at;
    at += slice.count * kFloatBytes;
  }
  return slices;
}

void MemoryPlan::act(plan::OpId id) {
  const plan::Work& work = plan_.ops[index(id)].work;
  auto& actions = actions_[index(id)];
  // A single rank exchanges nothing and keeps its gradients.
  if (plan_.ranks == 1) return;
  if (const auto* compute = std::get_if<plan::Compute>(&work)) {
    if (compute->phase == plan::Phase::kBackward) produce(compute->first, compute->last, actions);
    if (compute->phase != plan::Phase::kAverage) return;
    if (!outer_steps_) return average(actions);
    for (std::size_t b = 0; b < layouts_.size(); ++b) {
      if (!run::takes(*compute, plan_.buckets[b], tensors_)) continue;
      actions.push_back({.kind = Action::Kind::kStagedAverage, .bucket = static_cast<int>(b)});
    }
  } else if (const auto* collective = std::get_if<collective::Collective>(&work)) {
    const auto b = index(collective->bucket);
    const bool prepared = view(b) || uses_[b].staged;
    if (!prepared && uses_[b].first == id) cross(collective->bucket, false, actions);
    const std::size_t number = uses_[b].number(id);
    if (collective::find_place(collective->groups, rank_)) {
      const std::int64_t at = payloads_[b].at + layouts_[b].place(number);
      if (layouts_[b].blocks() && collective->kind != collective::CollectiveKind::kAllGather) {
        all_to_all(*collective, at, actions);
      } else {
        actions.push_back(exchange(*collective, at));
      }
    }
    if (layouts_[b].works_behind(number) && !matrices_[b].empty()) {
      factors(collective->bucket, 1, actions);
    } else if (layouts_[b].works_behind(number)) {
      actions.push_back({.kind = Action::Kind::kStagedBetween,
                         .bucket = collective->bucket,
                         .parts = static_cast<int>(number)});
    }
    if (!prepared && uses_[b].last == id) cross(collective->bucket, true, actions);
  } else if (const auto* busy = std::get_if<plan::Busy>(&work)) {
    using Reason = plan::Busy::Reason;
    const bool out = busy->reason == Reason::kDecode || busy->reason == Reason::kCopyOut;
    const bool in = busy->reason == Reason::kEncode || busy->reason == Reason::kCopyIn;
    if (in || out) cross(busy->bucket, out, actions);
  }
}

// Copies the gradients of these tensors, as the backward pass computes them, and clears residuals.
void MemoryPlan::produce(int first, int last, std::vector<Action>& actions) const {
  Action copies;
  Action cleared;
  cleared.kind = Action::Kind::kClear;
  for (int tensor = first; tensor <= last; ++tensor) {
    const Region& gradient = gradients_[index(tensor)];
    if (gradient.bytes > 0) {
      add_move(copies, {inputs_[index(tensor)].at, gradient.at, gradient.bytes});
    }
    for (const int bucket : buckets_of_[index(tensor)]) {
      const auto b = index(bucket);
      for (const Region& region : {waiting_[b].velocity, waiting_[b].residual}) {
        add_move(cleared, {region.at, region.at, region.bytes});
      }
      if (!view(b)) continue;
      const std::int64_t unit = size_of(layouts_[b].format());
      for (const run::PayloadSlice& slice : layouts_[b].filled_slices()) {
        if (slice.tensor != tensor) continue;
        add_move(copies,
                 {produced_[b].at + slice.at, payloads_[b].at + slice.at, slice.count * unit});
      }
    }
  }
  if (!copies.moves.empty()) actions.push_back(std::move(copies));
  if (!cleared.moves.empty()) actions.push_back(std::move(cleared));
}

// Moves a bucket's gradients to its payload, or back.
void MemoryPlan::cross(int bucket, bool back, std::vector<Action>& actions) const {
  const auto b = index(bucket);
  const run::Payload& layout = layouts_[b];
  const bool averaged = host_averages(b);
  if (averaged && back) return;  // until it is applied: the model computes meanwhile
  if (!averaged && !matrices_[b].empty()) return factors(bucket, back ? 2 : 0, actions);
  Action action;
  action.bucket = bucket;
  using Kind = Action::Kind;
  const bool coded = !averaged && !layout.blocks() && sparse_codec(b);
  if (coded) action.kind = back ? Kind::kDecode : Kind::kEncode;
  const bool summed_here = layout.blocks() || (layout.is_summed() && castable(layout.format()));
  const bool staged = averaged || (!coded && !summed_here);
  if (staged) action.kind = back ? Kind::kStagedRead : Kind::kStagedFill;
  if (coded || staged) return actions.push_back(std::move(action));
  Action cast = action;
  cast.kind = Kind::kCast;
  if (!layout.blocks()) (back ? cast.from : cast.to) = layout.format();
  const std::int64_t numbers = layout.blocks() ? rows_[b].at : payloads_[b].at;
  for (const run::PayloadSlice& slice : back ? layout.read_back() : layout.filled_slices()) {
    Action::Move move{gradients_[index(slice.tensor)].at + slice.first * kFloatBytes,
                      numbers + slice.at, slice.count};
    if (back) std::swap(move.from, move.to);
    cast.moves.push_back(move);
  }
  action.kind = back ? Kind::kUnpackBlocks : Kind::kPackBlocks;
  if (layout.blocks() && back) actions.push_back(action);
  actions.push_back(std::move(cast));
  if (layout.blocks() && !back) actions.push_back(std::move(action));
}

// Moves gradients to or from their matrices. Tensors without factors travel whole in the payload.
void MemoryPlan::move_matrices(int bucket, bool back, std::vector<Action>& actions) const {
  const run::Payload& layout = layouts_[index(bucket)];
  const std::int64_t unit = size_of(layout.format());
  Action whole, copied;
  whole.kind = Action::Kind::kCast;
  (back ? whole.from : whole.to) = layout.format();
  auto matrix = matrices_[index(bucket)].begin();
  for (const auto& [tensors, shape, p, q] : layout.factors()) {
    const bool sent = shape.rank == 0;
    std::int64_t to = sent ? payloads_[index(bucket)].at + p * unit : (matrix++)->numbers;
    for (const int tensor : tensors) {
      Action::Move move{gradients_[index(tensor)].at, to, elements_[index(tensor)]};
      to += move.count * (sent ? unit : kFloatBytes);
      if (back) std::swap(move.from, move.to);
      if (!sent) move.count *= kFloatBytes;
      if (move.count > 0) (sent ? whole : copied).moves.push_back(move);
    }
  }
  if (!whole.moves.empty()) actions.push_back(std::move(whole));
  actions.push_back(std::move(copied));
}

// Casts the factors between fp32 and the payload's format, if that is another.
void MemoryPlan::cast_factors(int bucket, bool from_payload, std::vector<Action>& actions) const {
  const run::Payload& layout = layouts_[index(bucket)];
  if (layout.format() == DType::kFp32) return;
  Action action;
  action.kind = Action::Kind::kCast;
  (from_payload ? action.from : action.to) = layout.format();
  const std::int64_t unit = size_of(layout.format());
  auto matrix = matrices_[index(bucket)].begin();
  for (const auto& [tensors, shape, p, q] : layout.factors()) {
    if (shape.rank == 0) continue;
    const std::int64_t payload = payloads_[index(bucket)].at;
    for (Action::Move move : {Action::Move{matrix->p, payload + p * unit, shape.rows * shape.rank},
                              {matrix->q, payload + q * unit, shape.columns * shape.rank}}) {
      if (from_payload) std::swap(move.from, move.to);
      action.moves.push_back(move);
    }
    ++matrix;
  }
  actions.push_back(std::move(action));
}

void MemoryPlan::factors(int bucket, int step, std::vector<Action>& actions) const {
  Action action;
  if (step == 0) {
    move_matrices(bucket, false, actions);
    action.kind = Action::Kind::kClear;  // the padding of matrices
    for (const Matrix& matrix : matrices_[index(bucket)]) {
      const std::int64_t end = matrix.numbers + matrix.shape.elements * kFloatBytes;
      const std::int64_t all = matrix.shape.rows * matrix.shape.columns;
      add_move(action, {end, end, (all - matrix.shape.elements) * kFloatBytes});
    }
    if (!action.moves.empty()) actions.push_back(std::exchange(action, {}));
  } else {
    cast_factors(bucket, true, actions);
  }
  action.kind = Action::Kind::kFactors;
  action.bucket = bucket;
  action.parts = step;
  actions.push_back(std::move(action));
  if (step < 2) return cast_factors(bucket, false, actions);
  move_matrices(bucket, true, actions);
}

// Divides summed parameters by the number of ranks, in views and in gradients.
void MemoryPlan::average(std::vector<Action>& actions) const {
  Action action;
  action.kind = Action::Kind::kDivide;
  action.divisor = static_cast<float>(plan_.ranks);
  const auto add = [&](const Region& region) {
    if (region.bytes == 0) return;
    auto& moves = action.moves;
    // Adjacent regions are merged, with the zeros between them.
    if (!moves.empty() &&
        region.at == aligned(moves.back().to + moves.back().count * kFloatBytes)) {
      moves.back().count = (region.at + region.bytes - moves.back().to) / kFloatBytes;
      return;
    }
    moves.push_back({region.at, region.at, region.bytes / kFloatBytes});
  };
  for (std::size_t b = 0; b < layouts_.size(); ++b) {
    if (view(b)) add(payloads_[b]);
  }
  for (const Region& region : gradients_) add(region);
  actions.push_back(std::move(action));
}

// Returns this rank's calls of NCCL. NCCL has no function for unequal shares: each share is reduced
// to, or broadcast from, its member, all in one group.
Action MemoryPlan::exchange(const collective::Collective& collective, std::int64_t at) const {
  const run::Payload& layout = layouts_[index(collective.bucket)];
  const auto here = *collective::find_place(collective.groups, rank_);
  const int members = collective.groups.size;
  const bool summed = layout.numbers();
  // Gathered units are bytes to NCCL.
  const std::int64_t width = summed ? 1 : collective.unit;
  assert((!summed || collective.unit == size_of(layout.format())) && "numbers of one format");

  Action action;
  action.kind = Action::Kind::kExchange;
  action.bucket = collective.bucket;
  CollectiveCall call;
  call.kind = collective.kind;
  call.number = summed ? number_of(layout.format()) : WireNumber::kByte;
  call.send = call.receive = at;
  call.count = collective.elements * width;
  const bool scatters = collective.kind == collective::CollectiveKind::kReduceScatter;
  const bool gathers = collective.kind == collective::CollectiveKind::kAllGather;
  if (call.count == 0) return action;
  if (!scatters && !gathers) {
    action.calls.push_back(call);
    return action;
  }
  if (collective.elements % members == 0) {
    call.count /= members;
    const std::int64_t own = at + here.member * (collective.elements / members) * collective.unit;
    (scatters ? call.receive : call.send) = own;
    action.calls.push_back(call);
    return action;
  }
  call.kind =
      scatters ? collective::CollectiveKind::kReduce : collective::CollectiveKind::kBroadcast;
  for (int member = 0; member < members; ++member) {
    const collective::Range share = collective::part_of(collective.elements, members, member);
    if (share.size() == 0) continue;
    call.root = member;
    call.send = call.receive = at + share.begin * collective.unit;
    call.count = share.size() * width;
    action.calls.push_back(call);
  }
  return action;
}

// Adds the sends before the receives, so that each is under way when its peer waits for it.
void MemoryPlan::all_to_all(const collective::Collective& collective, std::int64_t at,
                            std::vector<Action>& actions) const {
  if (collective.algorithm != collective::all_to_all()) {
    throw InputError(
        "a codec with scales is summed all to all by NCCL: set algorithm to nccl or all_to_all");
  }
  const int members = collective.groups.size;
  const int own = collective::find_place(collective.groups, rank_)->member;
  const auto part = [&](int member) {
    const auto units = collective::part_of(collective.elements, members, member);
    return Action::Move{at + units.begin * collective.unit, 0, units.size() * collective.unit};
  };
  Action exchanged;
  exchanged.kind = Action::Kind::kExchange;
  exchanged.bucket = collective.bucket;
  CollectiveCall call;
  call.kind = collective::CollectiveKind::kReduceScatter;
  call.number = WireNumber::kByte;
  const std::int64_t received = received_[index(collective.bucket)].at;
  for (const auto form : {CollectiveCall::Form::kSend, CollectiveCall::Form::kReceive}) {
    const bool sends = form == CollectiveCall::Form::kSend;
    std::int64_t place = received;
    for (int member = 0; member < members; ++member) {
      if (member == own) continue;
      call.form = form;
      call.root = member;
      call.count = part(sends ? member : own).count;
      call.send = call.receive = sends ? part(member).from : place;
      place += call.count;
      if (call.count > 0) exchanged.calls.push_back(call);
    }
  }
  actions.push_back(std::move(exchanged));
  if (members > 1 && part(own).count > 0) {
    Action sum;
    sum.kind = Action::Kind::kSumBlocks;
    sum.bucket = collective.bucket;
    sum.parts = members - 1;
    sum.moves.push_back({received, part(own).from, part(own).count});
    actions.push_back(std::move(sum));
  }
  if (collective.kind != collective::CollectiveKind::kAllReduce) return;
  collective::Collective gather = collective;
  gather.kind = collective::CollectiveKind::kAllGather;
  actions.push_back(exchange(gather, at));
}

}  // namespace syncline::nccl_backend
