// Readers of PyTorch's profiles accept the file too (HolisticTraceAnalysis;
// tests/reports/trace_profile_test.cc has its demands). For them, exchanges are named "nccl:..." or
// "gloo:...", a thread has a launch of length 0 for each device operation, with the same
// correlation. For them a file is one rank, so write one strategy and rank per file.
#include "reports/trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <tuple>

#include "core/collective/nccl_model.h"
#include "reports/run_report.h"
#include "reports/verdict.h"

namespace syncline::reports {
namespace {

constexpr std::size_t kNamedTensors = 8;
constexpr std::int64_t kThreadsApart = 1000;  // thread ids: process id * 1000 + stream
constexpr plan::StreamId kStepsThread = 999;
constexpr plan::StreamId kLaunchThread = 998;
constexpr plan::StreamId kProcess = -1;  // pseudo-stream of the process' names
// Range of ids of a strategy's arrows and correlations.
constexpr std::int64_t kIdsApart = 10'000'000;
// Bytes reserved for the event that notes omissions.
constexpr std::size_t kNoticeBytes = 400;

std::string text_of(const Json& event) {
  return event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Arguments of an operation, for the panel that opens on a click -----------------------

void put_bucket(Json& args, const plan::Plan& plan, int index, const Workload& workload) {
  const plan::Bucket& bucket = plan.buckets[static_cast<std::size_t>(index)];
  args["bucket"] = index;
  args["bucket_bytes"] = bucket.bytes;
  if (bucket.codec != nullptr) {
    args["codec"] = bucket.codec->name;
    args["encoded_bytes"] = plan::encoded_bytes(bucket);
  }
  args["tensors"] = tensors_text(bucket, workload, kNamedTensors);
}

// Returns "2 groups of 8 ranks, the first: 0, 1 .. 7".
std::string groups_text(const collective::Groups& groups) {
  std::string text = std::to_string(groups.count) + (groups.count == 1 ? " group" : " groups") +
                     " of " + std::to_string(groups.size) +
                     (groups.size == 1 ? " rank" : " ranks") +
                     (groups.count == 1 ? ": " : ", the first: ") + std::to_string(groups.base);
  if (groups.size >= 2) text += ", " + std::to_string(groups.rank(0, 1));
  if (groups.size >= 3) {
    text += (groups.size == 3 ? ", " : " .. ") + std::to_string(groups.rank(0, groups.size - 1));
  }
  return text;
}

// Returns a word, by the order of the enumeration.
const char* phase_word(plan::Phase phase) {
  constexpr const char* kWords[] = {"forward", "backward", "update", "average"};
  return kWords[static_cast<std::size_t>(phase)];
}

const char* reason_word(plan::Busy::Reason reason) {
  constexpr const char* kWords[] = {"encode",    "decode", "copy_in", "copy_out",
                                    "host_sync", "wait",   "sums",    "slowed"};
  return kWords[static_cast<std::size_t>(reason)];
}

// Returns the category, by which viewers colour and filter.
std::string category_of(const plan::Work& work) {
  if (const auto* compute = std::get_if<plan::Compute>(&work)) return phase_word(compute->phase);
  if (std::holds_alternative<collective::Collective>(work)) return "exchange";
  return plan::reason_of(work) == plan::Busy::Reason::kTick ? "wait" : "handling";
}

// Returns the name of a colour in chrome://tracing; nullptr for events that are no operations.
const char* colour_of(const std::string& category) {
  static const std::map<std::string, const char*> colours{{"forward", "thread_state_runnable"},
                                                          {"backward", "thread_state_running"},
                                                          {"update", "rail_animation"},
                                                          {"average", "rail_animation"},
                                                          {"exchange", "good"},
                                                          {"wait", "grey"},
                                                          {"handling", "bad"}};
  const auto found = colours.find(category);
  return found == colours.end() ? nullptr : found->second;
}

// Returns true if a profiler would see it on the device: not waits for a cycle, not host work.
bool on_device(const plan::Work& work) {
  const auto reason = plan::reason_of(work);
  return reason != plan::Busy::Reason::kTick && reason != plan::Busy::Reason::kHost;
}

Json args_of(const plan::Op& op, const plan::Plan& plan, const Workload& workload) {
  Json args = Json::object();
  if (const auto* compute = std::get_if<plan::Compute>(&op.work)) {
    args["kind"] = phase_word(compute->phase);
  } else if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
    args["kind"] = collective::to_string(collective->kind);
    if (collective->algorithm != nullptr) args["algorithm"] = collective->algorithm->name;
    if (collective->nccl) {
      args["nccl"] = std::string(collective::to_string(collective->nccl->algorithm)) + "/" +
                     std::string(collective::to_string(collective->nccl->protocol));
    }
    args["groups"] = groups_text(collective->groups);
    args["bytes"] = collective->bytes();
    if (collective->bucket >= 0) put_bucket(args, plan, collective->bucket, workload);
  } else {
    const auto& busy = std::get<plan::Busy>(op.work);
    args["kind"] = reason_word(busy.reason);
    if (busy.bucket >= 0) put_bucket(args, plan, busy.bucket, workload);
  }
  return args;
}

// Counters over time: bytes in flight, exposure, load of links --------------------------

// The state of one rank from a time on, until the next.
struct Counted {
  std::int64_t nanoseconds = 0;
  std::int64_t bytes_in_flight = 0;  // payload of the exchanges that are running
  bool exposed = false;              // an exchange runs and the compute stream is idle
  std::vector<double> links = {};    // share in use of each traced link
};

struct Change {
  std::int64_t bytes = 0;
  int exchanges = 0;
  int computing = 0;
  std::map<std::size_t, double> links = {};
};

// Rounds a time, as all times of a trace are.
std::int64_t nanoseconds(Seconds time) { return std::llround(time * 1e9); }

// Returns the states in order of time, one for each change.
std::vector<Counted> counters_of(const measure::Traced& traced, int rank) {
  std::map<std::int64_t, Change> changes;
  for (const auto& span : traced.timeline.spans) {
    const std::int64_t begin = nanoseconds(span.begin), end = nanoseconds(span.end);
    if (span.rank != rank || end <= begin) continue;
    const plan::Op& op = traced.plan.ops[static_cast<std::size_t>(span.op)];
    if (const auto* exchange = std::get_if<collective::Collective>(&op.work)) {
      changes[begin].bytes += exchange->bytes();
      changes[end].bytes -= exchange->bytes();
      ++changes[begin].exchanges;
      --changes[end].exchanges;
      for (std::size_t link = 0; link < traced.links.size(); ++link) {
        const Seconds busy = traced.links[link].of_op[static_cast<std::size_t>(span.op)];
        changes[begin].links[link] += busy / (span.end - span.begin);
        changes[end].links[link] -= busy / (span.end - span.begin);
      }
    }
    if (!traced.plan.computes(op.stream)) continue;
    ++changes[begin].computing;
    --changes[end].computing;
  }
  std::vector<Counted> counters;
  Counted now;
  now.links.assign(traced.links.size(), 0);
  int exchanges = 0, computing = 0;
  for (const auto& [time, change] : changes) {
    const Counted before = now;
    now.nanoseconds = time;
    now.bytes_in_flight += change.bytes;
    exchanges += change.exchanges;
    computing += change.computing;
    now.exposed = exchanges > 0 && computing == 0;
    for (const auto& [link, share] : change.links) {
      constexpr double kRounding = 1e-9;
      now.links[link] = std::max(0.0, now.links[link] + share);
      if (now.links[link] < kRounding) now.links[link] = 0;
    }
    if (now.bytes_in_flight != before.bytes_in_flight || now.exposed != before.exposed ||
        now.links != before.links) {
      counters.push_back(now);
    }
  }
  return counters;
}

// Events ---------------------------------------------------------------------------------------

double microseconds(std::int64_t nanos) { return static_cast<double>(nanos) / 1e3; }

Json metadata(std::string_view what, std::int64_t process, std::int64_t thread, Json value) {
  const bool sort = what.ends_with("sort_index");
  return Json{{"ph", "M"},
              {"name", what},
              {"pid", process},
              {"tid", thread},
              {"args", {{sort ? "sort_index" : "name", std::move(value)}}}};
}

std::string thread_name(const plan::Plan& plan, plan::StreamId stream, bool waits) {
  if (waits) return "cycles";
  if (stream == kStepsThread) return "steps";
  if (stream == kLaunchThread) return "launches";
  return plan::stream_name(plan, stream, "communication");
}

// Writes the events of one strategy, up to a number of bytes.
class Track {
 public:
  // Requires `carrier` "nccl" or "gloo", the prefix of names of exchanges.
  Track(const measure::Traced& traced, const Workload& workload, std::string_view carrier,
        std::int64_t first_process, std::size_t limit)
      : traced_(traced),
        workload_(workload),
        carrier_(carrier),
        first_process_(first_process),
        limit_(limit) {}

  // Writes the spans in order of time: if there is no room, the end is missing on all ranks alike.
  void write() {
    choose_ranks();
    std::vector<const run::Span*> spans;
    for (const auto& span : traced_.timeline.spans) {
      if (processes_.contains(span.rank)) spans.push_back(&span);
    }
    std::stable_sort(spans.begin(), spans.end(),
                     [](const run::Span* a, const run::Span* b) { return a->begin < b->begin; });
    for (const run::Span* span : spans) {
      std::string event =
          steps_before(*span) + counters_until(span->rank, nanoseconds(span->begin));
      event += event_of(*span) + flows_into(*span);
      if (text.size() + event.size() + kNoticeBytes > limit_) {
        left_out = spans.size() - events_;
        add_notice(*span);
        return;
      }
      text += event;
      ++events_;
    }
    for (const auto& [rank, process] : processes_) {
      const std::string rest = counters_until(rank, std::numeric_limits<std::int64_t>::max());
      if (text.size() + rest.size() <= limit_) text += rest;
    }
  }

  std::string text;  // events, each ended by ",\n"
  std::size_t left_out = 0;

 private:
  void choose_ranks() {
    std::set<int> ranks;
    for (const auto& span : traced_.timeline.spans) ranks.insert(span.rank);
    for (const int rank : ranks) {
      if (processes_.size() == kTracedRanks) return;
      const auto place = static_cast<std::int64_t>(processes_.size());
      processes_[rank] = first_process_ + place;
      counters_[rank] = {counters_of(traced_, rank), 0};
    }
  }

  // Returns the names of a process and thread before their first event. They count against the
  // limit: with thousands of strategies even names must fit.
  std::string names_for(int rank, plan::StreamId stream, bool waits) {
    const std::int64_t process = processes_[rank];
    std::string names;
    const auto put = [&](std::string_view what, Json value) {
      names += text_of(metadata(what, process, thread_of(rank, stream), std::move(value))) + ",\n";
    };
    if (named_.insert({rank, kProcess}).second) {
      put("process_name", traced_.strategy + " / rank " + std::to_string(rank));
      put("process_sort_index", process);
    }
    if (named_.insert({rank, stream}).second) {
      put("thread_name", thread_name(traced_.plan, stream, waits));
      put("thread_sort_index", stream == kStepsThread ? -1 : stream);
    }
    return names;
  }

  std::int64_t thread_of(int rank, plan::StreamId stream) {
    return processes_[rank] * kThreadsApart + stream;
  }

  // Returns the event of a span. Both ends are rounded before they are subtracted: a duration
  // rounded by itself could reach into the next event, and viewers drop overlapping ones.
  std::string event_of(const run::Span& span) {
    const plan::Op& op = traced_.plan.ops[static_cast<std::size_t>(span.op)];
    const std::int64_t begin = nanoseconds(span.begin);
    const std::int64_t end = std::max(begin, nanoseconds(span.end));
    const bool exchange = std::holds_alternative<collective::Collective>(op.work);
    const std::string category = category_of(op.work);
    Json args = args_of(op, traced_.plan, workload_);
    args["step"] = static_cast<std::int64_t>(span.period) * traced_.plan.steps + op.step;
    std::string launch;
    put_profile(span, args, launch);
    const std::string name =
        (exchange ? std::string(carrier_) + ":" : "") + plan::describe(op, traced_.plan, workload_);
    return bar(name, category, span.rank, op.stream, microseconds(begin), microseconds(end - begin),
               std::move(args), plan::reason_of(op.work) == plan::Busy::Reason::kTick) +
           launch;
  }

  // Returns a complete event on a thread of a rank.
  std::string bar(const std::string& name, const std::string& category, int rank,
                  plan::StreamId stream, Json begin, Json length, Json args, bool waits = false) {
    Json event{{"ph", "X"}, {"name", name}, {"cat", category}};
    if (const char* colour = colour_of(category)) event["cname"] = colour;
    event["pid"] = processes_[rank];
    event["tid"] = thread_of(rank, stream);
    event["ts"] = std::move(begin);
    event["dur"] = std::move(length);
    event["args"] = std::move(args);
    return names_for(rank, stream, waits) + text_of(event) + ",\n";
  }

  // Adds the arguments that readers of profiles need (trace.cc): streams count from 1, -1 is the
  // host. A kernel belongs to the step of its launch, which has the same correlation. Readers know
  // only whole microseconds, so the launch is at one inside the step's bar.
  void put_profile(const run::Span& span, Json& args, std::string& launch) {
    const plan::Op& op = traced_.plan.ops[static_cast<std::size_t>(span.op)];
    if (!on_device(op.work)) {
      args["stream"] = args["correlation"] = -1;
      return;
    }
    const std::int64_t id = first_process_ * kIdsApart + launches_++;
    args["stream"] = op.stream + 1;
    args["correlation"] = id;
    const auto [from, to] = bar_of(span.period);
    const auto whole_after = [](std::int64_t nanos) { return (nanos + 999) / 1000; };
    const std::int64_t at =
        std::max(whole_after(from), std::min(whole_after(nanoseconds(span.begin)), to / 1000 - 1));
    launch = bar("cudaLaunchKernel", "cuda_runtime", span.rank, kLaunchThread, at, 0,
                 {{"correlation", id}});
  }

  // Returns begin and end of a period in nanoseconds; the widest range if it has not ended.
  std::pair<std::int64_t, std::int64_t> bar_of(int period) const {
    const auto& ends = traced_.timeline.period_ends;
    const auto at = static_cast<std::size_t>(period);
    if (at >= ends.size()) return {0, std::numeric_limits<std::int64_t>::max()};
    return {at == 0 ? 0 : nanoseconds(ends[at - 1]), nanoseconds(ends[at])};
  }

  // Returns a bar for the period that a rank's operation begins, above the streams, with the name
  // that profilers give it.
  std::string steps_before(const run::Span& span) {
    const auto period = static_cast<std::size_t>(span.period);
    if (period >= traced_.timeline.period_ends.size()) return "";
    if (!stepped_.insert({span.rank, span.period}).second) return "";
    const auto [begin, end] = bar_of(span.period);
    return bar("ProfilerStep#" + std::to_string(span.period), "user_annotation", span.rank,
               kStepsThread, microseconds(begin), microseconds(end - begin),
               {{"steps", traced_.plan.steps}});
  }

  // Returns the counters that changed since the last call.
  std::string counters_until(int rank, std::int64_t time) {
    auto& [changes, next] = counters_[rank];
    std::string events;
    for (; next < changes.size() && changes[next].nanoseconds <= time; ++next) {
      const Counted& now = changes[next];
      const auto put = [&](const std::string& name, const char* what, Json value) {
        events += text_of(Json{{"ph", "C"},
                               {"name", name},
                               {"pid", processes_[rank]},
                               {"ts", microseconds(now.nanoseconds)},
                               {"args", {{what, std::move(value)}}}}) +
                  ",\n";
      };
      const Counted before = next == 0 ? Counted{} : changes[next - 1];
      if (now.bytes_in_flight != before.bytes_in_flight || next == 0) {
        put("bytes in flight", "bytes", now.bytes_in_flight);
      }
      if (now.exposed != before.exposed || next == 0)
        put("exposed", "exposed", now.exposed ? 1 : 0);
      if (rank != processes_.begin()->first) continue;  // links have no rank
      for (std::size_t link = 0; link < now.links.size(); ++link) {
        if (next > 0 && before.links[link] == now.links[link]) continue;
        put("link " + traced_.links[link].name, "percent", std::round(1e3 * now.links[link]) / 10);
      }
    }
    return events;
  }

  // Returns arrows from the operations on other streams that this one waited for.
  std::string flows_into(const run::Span& span) {
    const plan::Op& op = traced_.plan.ops[static_cast<std::size_t>(span.op)];
    written_[{span.rank, span.period, span.op}] = &span;
    std::string events;
    for (const plan::OpId before : op.after) {
      const plan::StreamId stream = traced_.plan.ops[static_cast<std::size_t>(before)].stream;
      const auto source = written_.find({span.rank, span.period, before});
      if (stream == op.stream || source == written_.end()) continue;
      const std::int64_t process = processes_[span.rank];
      const std::int64_t id = first_process_ * kIdsApart + flows_++;
      const auto put = [&](const char* phase, plan::StreamId on, std::int64_t time, bool ends) {
        Json event{{"ph", phase},
                   {"name", "waited for"},
                   {"cat", "flow"},
                   {"id", id},
                   {"pid", process},
                   {"tid", process * kThreadsApart + on},
                   {"ts", microseconds(time)}};
        if (ends) event["bp"] = "e";
        events += text_of(event) + ",\n";
      };
      // Within the bar, not at its end: another bar may begin there.
      const std::int64_t begin = nanoseconds(source->second->begin);
      put("s", stream, std::max(begin, nanoseconds(source->second->end) - 1), false);
      put("f", op.stream, nanoseconds(span.begin), true);
    }
    return events;
  }

  void add_notice(const run::Span& span) {
    const std::int64_t process = first_process_;
    const Json event{{"ph", "i"},
                     {"name", std::to_string(left_out) + " events left out: the file is full"},
                     {"s", "p"},
                     {"pid", process},
                     {"tid", process * kThreadsApart},
                     {"ts", microseconds(nanoseconds(span.begin))},
                     {"args", {{"left_out_events", left_out}}}};
    std::string notice = text_of(event) + ",\n";
    if (text.size() + notice.size() <= limit_) text += notice;
  }

  const measure::Traced& traced_;
  const Workload& workload_;
  std::string_view carrier_;
  std::int64_t first_process_;
  std::size_t limit_;
  std::size_t events_ = 0;
  std::map<int, std::int64_t> processes_;                                 // by rank
  std::set<std::pair<int, plan::StreamId>> named_;                        // (rank, stream)
  std::set<std::pair<int, int>> stepped_;                                 // (rank, period)
  std::map<int, std::pair<std::vector<Counted>, std::size_t>> counters_;  // with the next index
  std::map<std::tuple<int, int, plan::OpId>, const run::Span*> written_;  // rank, period, operation
  std::int64_t flows_ = 0, launches_ = 1;
};

// Returns the order of writing, short timelines first: they leave the rest of their share to the
// others. In the file all are in the report's order.
std::vector<std::size_t> shortest_first(const std::vector<measure::Traced>& traced) {
  std::vector<std::size_t> order(traced.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return traced[a].timeline.spans.size() < traced[b].timeline.spans.size();
  });
  return order;
}

// Returns the rank of a profile, the first one here, and the number of ranks.
Json distributed_info(const measure::Report& report) {
  Json info{{"rank", 0}};
  if (report.traced.empty()) return info;
  const measure::Traced& first = report.traced.front();
  const auto& spans = first.timeline.spans;
  const auto lowest =
      std::min_element(spans.begin(), spans.end(),
                       [](const run::Span& a, const run::Span& b) { return a.rank < b.rank; });
  if (lowest != spans.end()) info["rank"] = lowest->rank;
  info["world_size"] = first.plan.ranks;
  return info;
}

// Returns the last period alone, as if it were the first.
run::Timeline last_period(const run::Timeline& timeline) {
  run::Timeline last = timeline;
  const auto& ends = timeline.period_ends;
  if (ends.size() < 2) return last;
  const int period = static_cast<int>(ends.size()) - 1;
  std::erase_if(last.spans, [&](const run::Span& span) { return span.period != period; });
  Seconds begin = ends[ends.size() - 2];
  for (const auto& span : last.spans) begin = std::min(begin, span.begin);
  for (auto& span : last.spans) {
    span.period = 0;
    span.begin -= begin;
    span.end -= begin;
  }
  last.period_ends = {ends.back() - begin};
  return last;
}

}  // namespace

std::string tensors_text(const plan::Bucket& bucket, const Workload& workload, std::size_t most) {
  std::string text;
  const std::size_t listed = std::min(bucket.tensors.size(), most);
  for (std::size_t i = 0; i < listed; ++i) {
    text += (i == 0 ? "" : ", ") + plan::tensor_name(workload, bucket.tensors[i]);
  }
  if (listed < bucket.tensors.size()) {
    text += " and " + std::to_string(bucket.tensors.size() - listed) + " more";
  }
  return text;
}

measure::Report step_of_best(const measure::Report& report) {
  measure::Report one;
  one.scenario = report.scenario;
  one.executor = report.executor;
  one.traced_workload = report.traced_workload;
  if (report.traced.empty()) return one;
  const auto tones = tones_of(report);
  std::size_t place = 0;
  for (std::size_t i = 0; i < report.traced.size() && i < report.rows.size(); ++i) {
    const bool same = report.rows[i].strategy == report.traced[i].strategy;
    if (!same || tones[i] != Tone::kBest) continue;
    place = i;
    break;
  }
  one.traced = {report.traced[place]};
  one.traced.front().timeline = last_period(report.traced[place].timeline);
  return one;
}

std::string chrome_trace(const measure::Report& report) {
  std::vector<std::string> texts(report.traced.size());
  std::size_t used = 0, left_out = 0, waiting = report.traced.size();
  const std::string_view carrier = report.executor == "gloo" ? "gloo" : "nccl";
  for (const std::size_t i : shortest_first(report.traced)) {
    const auto first_process = static_cast<std::int64_t>(1 + i * kTracedRanks);
    Track track(report.traced[i], report.traced_workload, carrier, first_process,
                (kTraceBytes - used) / waiting--);
    track.write();
    used += track.text.size();
    left_out += track.left_out;
    texts[i] = std::move(track.text);
  }
  std::string events;
  events.reserve(used);
  for (const auto& text : texts) events += text;
  if (!events.empty()) events.erase(events.size() - 2);  // the last ",\n"

  // Readers of profiles look for general members only before the events.
  const Json other{
      {"executor", report.executor}, {"scenario", report.scenario}, {"left_out_events", left_out}};
  return "{\"schemaVersion\":1,\n\"distributedInfo\":" + text_of(distributed_info(report)) +
         ",\n\"baseTimeNanoseconds\":0,\n\"displayTimeUnit\":\"ms\",\n\"otherData\":" +
         text_of(other) + ",\n\"traceEvents\":[\n" + events + "\n]}\n";
}

}  // namespace syncline::reports
