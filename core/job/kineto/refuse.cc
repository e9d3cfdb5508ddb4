#include "core/job/kineto/refuse.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace syncline::job::kineto {
namespace {

// "3 all_gather of 12582912 bytes, 1 all_reduce of unknown size"
std::string collectives_listed(const Timeline& timeline) {
  std::map<std::string, std::pair<std::size_t, Bytes>> kinds;
  for (const Collective& collective : timeline.collectives) {
    const Message& message = collective.message;
    auto& [count, bytes] = kinds[message.kind.empty() ? "unknown" : message.kind];
    ++count;
    // More than memory holds is no sum to be told.
    constexpr Bytes kMost = Bytes{1} << 55;
    const Bytes own = message.elements * size_of(message.dtype.value_or(DType::kFp32));
    bytes = std::min(kMost, bytes + own);
  }
  std::string text;
  for (const auto& [kind, total] : kinds) {
    text += (text.empty() ? "" : ", ") + std::to_string(total.first) + " " + kind + " of " +
            (total.second > 0 ? std::to_string(total.second) + " bytes" : "unknown size");
  }
  return text.empty() ? "no collectives" : text;
}

}  // namespace

void refuse_untrained(const Trace& trace, const std::vector<Arrival>& arrivals) {
  const bool kernels = std::ranges::any_of(
      trace.device, [](const DeviceEvent& event) { return event.work == Work::kKernel; });
  const bool gloo = std::ranges::any_of(
      trace.messages, [](const Message& message) { return message.backend == "gloo"; });
  const std::string in_it = trace.path + ": ";
  if (trace.paddle) {
    throw InputError(in_it +
                     "a trace of Paddle's profiler, which names no gradients; give the "
                     "model's layers in a scenario instead");
  }
  if (!kernels && (gloo || trace.backend == "gloo")) {
    throw InputError(in_it +
                     "a job on the CPU (gloo): its trace has no kernels to time gradients "
                     "by; `syncline record` measures such a job");
  }
  if (!kernels) {
    throw InputError(in_it +
                     "no work of a GPU in it: recorded without ProfilerActivity.CUDA, or on "
                     "a rank without a GPU; give a trace of a rank that trains on one");
  }
  if (arrivals.empty() && trace.sharded.empty() && trace.operators == 0) {
    throw InputError(in_it +
                     "no operators of the host in it, so nothing tells the gradients; "
                     "record with ProfilerActivity.CPU beside CUDA");
  }
}

bool looks_sharded(const Trace& trace, const Timeline& timeline) {
  return !trace.sharded.empty() ||
         std::ranges::any_of(timeline.collectives, [](const Collective& collective) {
           const std::string& kind = collective.message.kind;
           return kind == "reduce_scatter" || kind == "reduce";
         });
}

void refuse_sharded(const Trace& trace, const Timeline& timeline) {
  std::string names;
  for (const std::string& name : trace.sharded) names += (names.empty() ? "" : ", ") + name;
  throw InputError(trace.path + ": " + (names.empty() ? "gradients are reduced to shards" : names) +
                   ": gradients or parameters are sharded, which scenarios do not hold yet; the "
                   "trace holds " +
                   collectives_listed(timeline) +
                   "; a trace of DistributedDataParallel can be imported");
}

bool looks_parallel(const Trace& trace, const Timeline& timeline) {
  return !trace.parallel.empty() ||
         std::ranges::any_of(timeline.collectives, [](const Collective& collective) {
           const std::string& kind = collective.message.kind;
           return kind == "deep_ep" || kind == "send_recv" || kind == "all_to_all";
         });
}

void refuse_parallel(const Trace& trace, const Timeline& timeline) {
  std::string names;
  for (const std::string& name : trace.parallel) names += (names.empty() ? "" : ", ") + name;
  throw InputError(
      trace.path + ": no data-parallel training" + (names.empty() ? "" : " (" + names + ")") +
      ": the trace holds " + collectives_listed(timeline) +
      ", the traffic of experts (expert parallelism, as DeepEP's) or of pipeline stages "
      "(pipeline parallelism, as DualPipe's), which scenarios do not hold yet; a trace "
      "of DistributedDataParallel can be imported");
}

void refuse_sizes(const Trace& trace, const DerivedStep& derived) {
  const bool copied = !derived.copies_out.empty();
  throw InputError(
      trace.path + ": " + std::to_string(derived.step.gradients.size()) +
      " gradients a step, but not their sizes: " +
      (copied ? "the copies out of the buckets do not tell them all"
              : "no copies out of the buckets (gradient_as_bucket_view, or no DDP)") +
      " and no shapes were recorded; record with torch.profiler.profile(record_shapes=True)");
}

}  // namespace syncline::job::kineto
