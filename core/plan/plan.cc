#include "core/plan/plan.h"

#include <algorithm>
#include <cassert>

namespace syncline::plan {
namespace {

// "fc.bias" or "fc.bias .. conv1.weight"; nothing for an empty range.
std::string range_text(int first, int last, const Workload& workload) {
  if (last < first) return "";
  if (last == first) return " " + tensor_name(workload, first);
  return " " + tensor_name(workload, first) + " .. " + tensor_name(workload, last);
}

std::string compute_text(const Compute& compute, const Workload& workload) {
  const bool all =
      compute.first == 0 && compute.last == static_cast<int>(workload.tensors.size()) - 1;
  switch (compute.phase) {
    // Likewise the forward pass, which is one operation unless steps overlap.
    case Phase::kForward:
      return all ? "forward" : "forward" + range_text(compute.first, compute.last, workload);
    case Phase::kBackward:
      return "backward" + range_text(compute.first, compute.last, workload);
    // One update of everything needs no range; one a bucket does.
    case Phase::kUpdate:
      return all ? "update" : "update" + range_text(compute.first, compute.last, workload);
    case Phase::kAverage:
      return "average";
  }
  return "compute";
}

std::string bucket_text(std::string_view verb, int bucket) {
  return std::string(verb) + " bucket " + std::to_string(bucket);
}

std::string busy_text(const Busy& busy) {
  switch (busy.reason) {
    case Busy::Reason::kEncode:
      return bucket_text("encode", busy.bucket);
    case Busy::Reason::kDecode:
      return bucket_text("decode", busy.bucket);
    case Busy::Reason::kCopyIn:
      return bucket_text("copy into", busy.bucket);
    case Busy::Reason::kCopyOut:
      return bucket_text("copy out of", busy.bucket);
    case Busy::Reason::kSums:
      return bucket_text("sum", busy.bucket);
    case Busy::Reason::kInterference:
      return busy.bucket < 0 ? "slowed by the step before" : bucket_text("slowed by", busy.bucket);
    case Busy::Reason::kTick:
      return "wait for the tick";
    case Busy::Reason::kHost:
      break;
  }
  return "host sync";
}

// A stage's last two streams send: activations to the next one, their gradients back.
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
  return collective != nullptr && collective::place_in(collective->groups, rank).has_value();
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
  const bool waits = std::any_of(plan.ops.begin(), plan.ops.end(), [](const Op& op) {
    return reason_of(op.work) == Busy::Reason::kTick;
  });
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

Seconds ahead_of_forward(const Plan& plan) {
  Seconds sum = 0;
  int begun = -1;  // the last step whose forward pass stands in the plan
  for (const auto& op : plan.ops) {
    if (std::holds_alternative<Compute>(op.work)) begun = std::max(begun, op.step);
    const bool waits = reason_of(op.work) == Busy::Reason::kHost && op.stream == kComputeStream;
    if (waits && op.step > begun) sum += seconds_of(op.work);
  }
  return sum;
}

bool crosses_steps(const Plan& plan) {
  return std::any_of(plan.ops.begin(), plan.ops.end(), [](const Op& op) {
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
    world[r].reserve(inside[r].size() * static_cast<std::size_t>(groups.count));
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
