#include "imports/kineto/warnings.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "core/base/error.h"
#include "imports/kineto/step.h"

namespace syncline::job::kineto {
namespace {

std::string written(const char* format, double number) {
  char text[32];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

std::string in_ms(Seconds time) { return written("%.1f ms", time / kMillisecond); }

std::string in_mb(Bytes bytes) { return written("%.1f MB", static_cast<double>(bytes) / 1e6); }

void warn_of_parallelism(const Step& step, std::vector<std::string>& warnings) {
  const std::string own = own_collectives(step);
  if (own.empty()) return;
  warnings.push_back("no plain data-parallel job: a step has " + own +
                     " of its own (experts, embeddings, shards or pipeline stages spread over "
                     "ranks); they count as forward and backward, as long as here on any cluster");
}

void warn_of_ranks(const Observed& observed, const ReadFacts& facts,
                   std::vector<std::string>& warnings) {
  const auto read = static_cast<int>(observed.ranks.size());
  const std::string of = std::to_string(read) + " of " + std::to_string(observed.world_size);
  if (read == 1 && observed.world_size > 1) {
    warnings.push_back("one rank alone (" + of +
                       "): its collectives last until the latest rank, so their times are upper "
                       "bounds; give the traces of all ranks");
  } else if (read < observed.world_size) {
    warnings.push_back(of +
                       " ranks: a collective takes the least of their times, still an upper "
                       "bound while the latest rank may be missing");
  }
  const Step& step = typical_step(observed.ranks.front());
  if (read > 1 && !observed.whole && observed.skew.empty() && !step.exchanges.empty()) {
    warnings.push_back("step " + std::to_string(step.number) +
                       " stands in the first rank's file alone: no collective is matched across "
                       "ranks; record the same steps on all");
  }
  if (!facts.agreed) {
    warnings.push_back(
        "the ranks disagree on what some collectives carry: those keep each rank's "
        "own time");
  }
  if (!facts.world_told && read == 1) {
    warnings.push_back("the trace does not tell the number of ranks (distributedInfo): " +
                       std::to_string(observed.world_size) +
                       " by what its collectives say; give it yourself if that is wrong");
  }
}

// Warns of ranks, among those read, that others wait for in most collectives of a group.
void warn_of_late_ranks(const Observed& observed, const Step& step,
                        std::vector<std::string>& warnings) {
  constexpr double kMuch = 0.005;
  constexpr std::size_t kMax = 3;
  std::vector<const RankGroup*> late;
  for (const RankGroup& group : observed.groups) {
    const bool often = group.last_rank >= 0 && 2 * group.last > group.matched;
    if (often && group.waited > kMuch * step.gpu) late.push_back(&group);
  }
  // A rank that waits inside a group is late outside it: the innermost groups tell more.
  std::ranges::stable_sort(
      late, {}, [](const RankGroup* group) { return std::pair(group->role, -group->waited); });
  if (late.size() > kMax) late.resize(kMax);
  for (const RankGroup* group : late) {
    warnings.push_back("rank " + std::to_string(group->last_rank) + " is late: it comes last to " +
                       std::to_string(group->last) + " of " + std::to_string(group->matched) +
                       " collectives of its group '" + role_text(group->role) +
                       "', where others wait " + in_ms(group->waited) + " per step");
  }
}

// Warns of copies that take longer than the device needs: the difference is the host's.
void warn_of_copies(const Step& step, std::vector<std::string>& warnings) {
  const Seconds copies = step.copy_in + step.copy_out;
  if (copies < kMillisecond || step.copy_kernels > 0.5 * copies) return;
  warnings.push_back(
      "the copies into and out of the buckets are bound by the host: the device "
      "copies for " +
      in_ms(step.copy_kernels) + " of " + in_ms(copies) +
      "; much of it may be the profiler's own cost: profile without record_shapes and with_stack, "
      "or time 20 steps with gradient_as_bucket_view=True");
}

void warn_of_profiler(const Step& step, std::size_t operators, std::vector<std::string>& warnings) {
  // The host's work between two steps belongs to no operator.
  const Seconds host = step.cpu - step.between;
  constexpr double kLittle = 0.02;
  if (step.idle <= kLittle * step.gpu || host <= 0 || operators == 0) return;
  warnings.push_back("the host is slower than the device, which waits for it for " +
                     in_ms(step.idle) + " of a step: " + std::to_string(operators) +
                     " recorded operators at " +
                     written("%.0f us", host / static_cast<double>(operators) / kMicrosecond) +
                     " each, part of it the profiler's own cost; without it the step may be "
                     "shorter");
}

// Warns of idle time: the host's delay may appear in every part of the step.
void warn_of_idling(const Step& step, std::vector<std::string>& warnings) {
  constexpr double kMuch = 0.2;
  const Seconds device = step.gpu - step.between;
  if (step.idle <= kMuch * device) return;
  warnings.push_back("nothing runs on the device for " + in_ms(step.idle) + " of the " +
                     in_ms(device) +
                     ": it waits for the host's launches (launch-bound), not for collectives; no "
                     "faster network shortens that");
}

// Warns of time between two steps, with its causes: throughput and gains are of the whole step.
void warn_of_time_between(const Step& step, std::vector<std::string>& warnings) {
  constexpr double kMuch = 0.02;
  if (step.between <= kMuch * step.gpu) return;
  std::string causes;
  constexpr std::size_t kMax = 3;
  for (std::size_t i = 0; i < std::min(kMax, step.by_host.size()); ++i) {
    causes += (i > 0 ? ", " : "") + step.by_host[i].first + " " + in_ms(step.by_host[i].second);
  }
  if (causes.empty()) {
    causes =
        "data loading, .item(), logs, an evaluation or a checkpoint, which the trace does not name";
  }
  warnings.push_back("between two steps pass " + in_ms(step.between) + " of the " +
                     in_ms(step.gpu) + ", and nothing runs on the device for " +
                     in_ms(step.between_idle) + " of them: " + causes +
                     "; no faster network shortens that");
}

// Warns of one rank's collectives with equal times for all sizes: they wait for others.
void warn_of_waiting(const Observed& observed, const Step& step,
                     std::vector<std::string>& warnings) {
  if (observed.ranks.size() > 1) return;
  const ObservedExchange* small = nullptr;
  const ObservedExchange* large = nullptr;
  for (const ObservedExchange& exchange : step.exchanges) {
    if (exchange.gradients.empty() || exchange.bytes() < kMiB) continue;
    if (small == nullptr || exchange.bytes() < small->bytes()) small = &exchange;
    if (large == nullptr || exchange.bytes() > large->bytes()) large = &exchange;
  }
  if (small == nullptr || large->bytes() < 2 * small->bytes() || small->duration <= 0) return;
  const double size = static_cast<double>(large->bytes()) / static_cast<double>(small->bytes());
  if (large->duration > 0.5 * size * small->duration) return;
  warnings.push_back("the all-reduces do not follow their size (" + in_mb(small->bytes()) +
                     " take " + in_ms(small->duration) + ", " + in_mb(large->bytes()) + " " +
                     in_ms(large->duration) +
                     "): mostly waiting for other ranks, no basis for a link");
}

void warn_of_formats(const Step& step, std::vector<std::string>& warnings) {
  const auto& gradients = step.gradients;
  if (gradients.empty()) return;
  const auto other = std::ranges::find_if(gradients, [&](const Gradient& gradient) {
    return gradient.dtype != gradients.front().dtype;
  });
  if (other == gradients.end()) return;
  warnings.push_back("gradients of several number formats (" + to_string(gradients.front().dtype) +
                     ", " + to_string(other->dtype) + "): DDP keeps buckets of one format each");
}

void warn_of_buckets(const Observed& observed, const Step& step,
                     std::vector<std::string>& warnings) {
  if (observed.ddp_modules > 1) {
    warnings.push_back(std::to_string(observed.ddp_modules) +
                       " DistributedDataParallel modules, each with buckets of its own");
  }
  if (observed.comm_hook) {
    warnings.push_back("a communication hook handles the buckets: what it computes is not given");
  }
  std::size_t others = 0;
  Seconds waited = 0;
  for (const ObservedExchange& exchange : step.exchanges) {
    if (!exchange.gradients.empty()) continue;
    const bool of_buffers = exchange.kind == "broadcast" && step.broadcast > 0;
    if (exchange.kind != "broadcast" && !is_own(exchange)) ++others;
    if (!of_buffers) waited += exchange.exposed;
  }
  if (waited > 0.05 * step.gpu) {
    warnings.push_back("forward and backward contain " + in_ms(waited) +
                       " of waiting for collectives that carry no gradients (the model's own)");
  }
  if (others > 0) {
    warnings.push_back(
        std::to_string(others) +
        " collectives per step carry no gradients that can be identified (the model's own, "
        "or buckets that do not match)");
  }
  if (!carries_gradients(step)) {
    warnings.push_back(
        "no collective of gradients in the trace: gradients and their times are "
        "read, buckets and transfers are not");
  }
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool any_of_kind(const TraceTimeline& timeline, std::initializer_list<std::string_view> kinds) {
  return std::ranges::any_of(timeline.collectives, [&](const TracedCollective& collective) {
    return std::ranges::find(kinds, collective.message.kind) != kinds.end();
  });
}

// Returns the spans with a kernel on the compute stream, in order and apart.
std::vector<std::pair<Nanoseconds, Nanoseconds>> computing(const TraceTimeline& timeline) {
  std::vector<std::pair<Nanoseconds, Nanoseconds>> all, apart;
  for (const Item& item : timeline.compute) all.emplace_back(item.start, item.end);
  std::ranges::sort(all);
  for (const auto& span : all) {
    if (apart.empty() || span.first > apart.back().second) {
      apart.push_back(span);
    } else {
      apart.back().second = std::max(apart.back().second, span.second);
    }
  }
  return apart;
}

// Collectives of one kind in a trace.
struct Traffic {
  std::size_t count = 0;
  Bytes bytes = 0;
  Nanoseconds time = 0;
  Nanoseconds exposed = 0;  // without a kernel on the compute stream
};

std::map<std::string, Traffic> traffic_by_kind(const TraceTimeline& timeline) {
  const auto busy = computing(timeline);
  std::map<std::string, Traffic> kinds;
  for (const TracedCollective& collective : timeline.collectives) {
    const TracedMessage& message = collective.message;
    Traffic& traffic = kinds[message.kind.empty() ? "unknown" : message.kind];
    ++traffic.count;
    // A sum larger than any memory is shown as this.
    constexpr Bytes kHuge = Bytes{1} << 55;
    const Bytes own = message.elements * size_of(message.dtype.value_or(DType::kFp32));
    traffic.bytes = std::min(kHuge, traffic.bytes + own);
    if (!timeline.collectives_on_device) continue;
    Nanoseconds hidden = 0;
    auto span = std::ranges::upper_bound(busy, collective.start, {},
                                         &std::pair<Nanoseconds, Nanoseconds>::second);
    for (; span != busy.end() && span->first < collective.end; ++span) {
      hidden += std::min(span->second, collective.end) - std::max(span->first, collective.start);
    }
    traffic.time += collective.end - collective.start;
    traffic.exposed += collective.end - collective.start - hidden;
  }
  return kinds;
}

// Returns "3 all_gather of 12582912 bytes (1.5 ms, 0.2 ms exposed), 1 all_reduce of unknown size".
std::string collectives_listed(const TraceTimeline& timeline) {
  std::string text;
  for (const auto& [kind, traffic] : traffic_by_kind(timeline)) {
    text += (text.empty() ? "" : ", ") + std::to_string(traffic.count) + " " + kind + " of " +
            (traffic.bytes > 0 ? std::to_string(traffic.bytes) + " bytes" : "unknown size");
    if (traffic.time > 0) {
      text += " (" + in_ms(seconds(traffic.time)) + ", " + in_ms(seconds(traffic.exposed)) +
              " exposed)";
    }
  }
  return text.empty() ? "no collectives" : text;
}

}  // namespace

void warn(Observed& observed, const ReadFacts& facts) {
  const Rank& rank = observed.ranks.front();
  const Step& step = typical_step(rank);
  std::vector<std::string>& warnings = observed.warnings;
  if (!observed.whole) warn_of_parallelism(step, warnings);
  warn_of_ranks(observed, facts, warnings);
  warn_of_late_ranks(observed, step, warnings);
  // Gloo's calls last as long as its collectives do.
  const bool timed = std::ranges::any_of(
      step.exchanges, [](const ObservedExchange& exchange) { return exchange.duration > 0; });
  if (!facts.collectives_on_device && !step.exchanges.empty() && !timed) {
    warnings.push_back(
        "no kernels of collectives in the trace, only the host's calls: their sizes "
        "are read, their times are not");
  }
  warn_of_waiting(observed, step, warnings);
  warn_of_idling(step, warnings);
  warn_of_time_between(step, warnings);
  warn_of_copies(step, warnings);
  warn_of_profiler(step, facts.operators_a_step, warnings);
  if (!observed.whole) {
    warn_of_buckets(observed, step, warnings);
    warn_of_formats(step, warnings);
  }
  const Step& begin = rank.steps.front();
  if (rank.steps.size() > 2 && begin.gpu > 1.2 * step.gpu) {
    warnings.push_back("the first step took " + in_ms(begin.gpu) + ", the typical one " +
                       in_ms(step.gpu));
  }
  warnings.insert(warnings.end(), facts.notes.begin(), facts.notes.end());
}

void refuse_untrained(const Trace& trace, const std::vector<Arrival>& arrivals) {
  const bool kernels = std::ranges::any_of(
      trace.device, [](const DeviceEvent& event) { return event.work == TracedWork::kKernel; });
  const bool gloo = std::ranges::any_of(
      trace.messages, [](const TracedMessage& message) { return message.backend == "gloo"; });
  const std::string in_it = trace.path + ": ";
  if (trace.paddle) {
    throw InputError(in_it +
                     "a trace of Paddle's profiler, which names no gradients; give the "
                     "model's layers in a scenario instead");
  }
  if (!kernels && trace.accelerated > 0) {
    throw InputError(in_it + "a job on " + trace.accelerator + " (" +
                     std::to_string(trace.accelerated) +
                     " events); GPUs of NVIDIA and AMD alone are read: give its times in a "
                     "scenario (forward_ms, backward_ms) instead");
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
                     "record with ProfilerActivity.CPU and CUDA");
  }
}

bool looks_sharded(const Trace& trace, const TraceTimeline& timeline) {
  return !trace.sharded.empty() || any_of_kind(timeline, {"reduce_scatter", "reduce"});
}

void refuse_sharded(const Trace& trace, const TraceTimeline& timeline) {
  const std::string names = joined(trace.sharded);
  const bool grouped = std::ranges::all_of(timeline.collectives, [](const TracedCollective& c) {
    return c.message.place >= 0 && !c.message.group.empty();
  });
  const bool shaped = std::ranges::any_of(
      trace.tensors, [](const TracedTensor& tensor) { return tensor.elements > 0; });
  // Only facts that the trace lacks are asked for.
  const std::string help = grouped && shaped
                               ? "`syncline init MODEL FILE...` reads the job's settings instead"
                               : "record with torch 2.4 or later and record_shapes=True";
  throw InputError(trace.path + ": " + (names.empty() ? "gradients are reduced to shards" : names) +
                   ": gradients or parameters are sharded, and no collective of a known group of "
                   "ranks carries gradients that can be identified; the trace has " +
                   collectives_listed(timeline) + "; " + help);
}

bool looks_parallel(const Trace& trace, const TraceTimeline& timeline) {
  return !trace.parallel.empty() || any_of_kind(timeline, {"deep_ep", "send_recv", "all_to_all"});
}

void refuse_parallel(const Trace& trace, const TraceTimeline& timeline) {
  const std::string names = joined(trace.parallel);
  throw InputError(
      trace.path + ": no data-parallel training" + (names.empty() ? "" : " (" + names + ")") +
      ": the trace has " + collectives_listed(timeline) +
      ", the traffic of experts (expert parallelism, as DeepEP's) or of pipeline stages "
      "(pipeline parallelism, as DualPipe's), whose groups of ranks are not given; record with "
      "torch 2.4 or later, which names them");
}

void refuse_shapes(const Trace& trace, const TraceTimeline& timeline, const Step& step) {
  throw InputError(trace.path + ": gradients of a job cut into groups, without their shapes; a " +
                   "step takes " + in_ms(step.gpu) + ", and the trace has " +
                   collectives_listed(timeline) +
                   "; record with torch.profiler.profile(record_shapes=True)");
}

void refuse_sizes(const Trace& trace, const TraceTimeline& timeline, const DerivedStep& derived) {
  const bool copied = !derived.copies_out.empty();
  throw InputError(trace.path + ": " + std::to_string(derived.step.gradients.size()) +
                   " gradients per step, but not their sizes: " +
                   (copied ? "the copies out of the buckets do not tell them all"
                           : "no copies out of the buckets (gradient_as_bucket_view, or no DDP)") +
                   " and no shapes were recorded; a step takes " + in_ms(derived.step.gpu) +
                   ", and the trace has " + collectives_listed(timeline) +
                   "; record with torch.profiler.profile(record_shapes=True)");
}

}  // namespace syncline::job::kineto
