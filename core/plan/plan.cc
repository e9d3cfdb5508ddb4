#include "core/plan.h"

#include <algorithm>
#include <cassert>

#include "core/base/index.h"

namespace syncline::plan {
namespace {

// Returns "fc.bias" or "fc.bias .. conv1.weight"; empty for an empty range.
std::string range_text(int first, int last, const Workload& workload) {
  if (last < first) return "";
  if (last == first) return " " + tensor_name(workload, first);
  return " " + tensor_name(workload, first) + " .. " + tensor_name(workload, last);
}

std::string compute_text(const Compute& compute, const Workload& workload) {
  const bool all =
      compute.first == 0 && compute.last == static_cast<int>(workload.tensors.size()) - 1;
  if (compute.phase == Phase::kAverage) return "average";
  const std::string name = compute.phase == Phase::kForward    ? "forward"
                           : compute.phase == Phase::kBackward ? "backward"
                                                               : "update";
  // An update of all tensors needs no range, nor does a forward pass in one piece.
  if (all && compute.phase != Phase::kBackward) return name;
  return name + range_text(compute.first, compute.last, workload);
}

std::string bucket_text(std::string_view verb, int bucket) {
  return std::string(verb) + " bucket " + std::to_string(bucket);
}

std::string busy_text(const Busy& busy) {
  using enum Busy::Reason;
  if (busy.reason == kInterference && busy.bucket < 0) return "slowed by the step before";
  for (const auto& [reason, verb] : {std::pair(kEncode, "encode"),
                                     {kDecode, "decode"},
                                     {kCopyIn, "copy into"},
                                     {kCopyOut, "copy out of"},
                                     {kSums, "sum"},
                                     {kInterference, "slowed by"}}) {
    if (reason == busy.reason) return bucket_text(verb, busy.bucket);
  }
  return busy.reason == kTick ? "wait for the tick" : "host sync";
}

// Returns a stage's last stream, which sends activations' gradients; the one before sends on.
StreamId gradient_sends(const Plan& plan) { return plan.streams_of_role() - 1; }

}  // namespace

std::string describe(const Op& op, const Plan& plan, const Workload& workload) {
  if (const auto* compute = std::get_if<Compute>(&op.work)) return compute_text(*compute, workload);
  if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
    if (collective->kind == collective::CollectiveKind::kAllReduce && collective->bucket < 0) {
      return "sum the tied embedding";
    }
    if (collective->bucket < 0) {
      return plan.own_stream(op.stream) == gradient_sends(plan) ? "send activations' gradients"
                                                                : "send activations";
    }
    return bucket_text(collective::to_string(collective->kind), collective->bucket);
  }
  return busy_text(std::get<Busy>(op.work));
}

std::string stream_name(const Plan& plan, StreamId stream, std::string_view exchanges) {
  const StreamId own = plan.own_stream(stream);
  const std::string stage =
      plan.roles > 1 ? "stage " + std::to_string(plan.role_of(stream)) + " " : "";
  if (own == kComputeStream) return stage + "compute";
  if (plan.roles > 1 && own == gradient_sends(plan)) return stage + "sends back";
  if (plan.roles > 1 && own == gradient_sends(plan) - 1) return stage + "sends on";
  return stage + std::string(exchanges) + " " + std::to_string(own);
}

bool concerns(const Plan& plan, const Op& op, int rank) {
  if (plan.role_of(op.stream) == plan.role_of_rank(rank)) return true;
  const auto* collective = std::get_if<collective::Collective>(&op.work);
  return collective != nullptr && collective::find_place(collective->groups, rank).has_value();
}

Bytes encoded_bytes(const Bucket& bucket) {
  if (bucket.codec->low_rank) return bucket.kept * size_of(bucket.dtype);
  return bucket.codec->encoded_bytes(bucket.elements, bucket.kept);
}

Seconds seconds_of(const Work& work) {
  return std::visit(
      [](const auto& kind) -> Seconds {
        if constexpr (requires { kind.seconds; }) return kind.seconds;
        return 0;
      },
      work);
}

std::optional<Busy::Reason> reason_of(const Work& work) {
  const auto* busy = std::get_if<Busy>(&work);
  return busy == nullptr ? std::nullopt : std::optional(busy->reason);
}

int communication_streams(const Plan& plan) {
  const bool waits = std::ranges::any_of(
      plan.ops, [](const Op& op) { return reason_of(op.work) == Busy::Reason::kTick; });
  return plan.streams_of_role() - (waits ? 2 : 1);
}

bool overlaps(const Plan& plan) {
  StreamId stream = -1;
  for (const auto& op : plan.ops) {
    if (!std::holds_alternative<collective::Collective>(op.work)) continue;
    if (stream >= 0 && op.stream != stream) return true;
    stream = op.stream;
  }
  return false;
}

Seconds time_before_forward(const Plan& plan) {
  Seconds sum = 0;
  int begun = -1;  // last step with a forward pass in the plan so far
  for (const auto& op : plan.ops) {
    if (std::holds_alternative<Compute>(op.work)) begun = std::max(begun, op.step);
    const bool waits = reason_of(op.work) == Busy::Reason::kHost && op.stream == kComputeStream;
    if (waits && op.step > begun) sum += seconds_of(op.work);
  }
  return sum;
}

bool crosses_steps(const Plan& plan) {
  return std::ranges::any_of(plan.ops, [](const Op& op) {
    return !op.after_previous.empty() && std::holds_alternative<Compute>(op.work);
  });
}

const std::string& tensor_name(const Workload& workload, int index) {
  const auto place = static_cast<std::size_t>(index);
  const std::size_t tensors = workload.tensors.size();
  assert(index >= 0 && place < tensors + workload.buffers.size() && "no such tensor or buffer");
  return place < tensors ? workload.tensors[place].name : workload.buffers[place - tensors].name;
}

collective::Schedule lower(const collective::Collective& collective) {
  const collective::Groups& groups = collective.groups;
  const collective::Schedule inside =
      collective.algorithm->rounds(collective.kind, groups.size, collective.elements);
  collective::Schedule world(inside.size());
  for (std::size_t r = 0; r < inside.size(); ++r) {
    world[r].reserve(inside[r].size() * index(groups.count));
    for (int g = 0; g < groups.count; ++g) {
      for (collective::Transfer transfer : inside[r]) {
        transfer.from = groups.rank(g, transfer.from);
        transfer.to = groups.rank(g, transfer.to);
        world[r].push_back(transfer);
      }
    }
  }
  return world;
}

}  // namespace syncline::plan
