#include "imports/format.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "imports/kineto/sizes.h"
#include "imports/kineto/step.h"
#include "imports/kineto/timeline.h"
#include "imports/kineto/warnings.h"
#include "imports/kineto/whole_rank.h"
#include "imports/observed.h"

namespace syncline::job::kineto {
namespace {

// Content of one file: the steps of one rank.
struct RankRead {
  Observed observed;  // of this file alone: one rank
  std::optional<int> rank;
  std::optional<int> world_size;
  ReadFacts facts;
};

std::string stem_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view ending : {".gz", ".json", ".trace", ".pt"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return name;
}

std::vector<std::int64_t> gradient_exchanges(const DerivedStep& derived) {
  std::vector<std::int64_t> elements;
  for (std::size_t i = 0; i < derived.sent.size(); ++i) {
    if (derived.sent[i].of_gradients) elements.push_back(derived.step.exchanges[i].elements);
  }
  return elements;
}

// Keeps the steps with the usual numbers of gradients and passes, without the first one if DDP had
// not yet rebuilt its buckets.
void leave_out_unusual(std::vector<DerivedStep>& steps, std::vector<std::string>& notes) {
  const std::vector<int> partial = leave_out_odd(steps, [](const DerivedStep& derived) {
    return std::pair(derived.step.gradients.size(), derived.passes);
  });
  if (!partial.empty()) {
    notes.push_back(
        "steps with other gradients or backward passes than most (cut off, or unused "
        "parameters) are left out: " +
        list_numbers(partial));
  }
  if (steps.size() < 3) return;
  const auto second = gradient_exchanges(steps[1]);
  const bool rebuilt = gradient_exchanges(steps[0]) != second;
  if (!rebuilt || gradient_exchanges(steps[2]) != second) return;
  notes.push_back("the first step, " + std::to_string(steps[0].step.number) +
                  ", has other buckets than those after it and is left out");
  steps.erase(steps.begin());
}

std::vector<DerivedStep> derive_all(const Trace& trace, const TraceTimeline& timeline,
                                    const std::vector<Arrival>& arrivals, RankRead& read) {
  const std::vector<StepWindow> windows = windows_of(trace, timeline, arrivals, read.facts.notes);
  std::vector<DerivedStep> steps;
  std::vector<int> idle;
  std::size_t profiled = 0;
  for (const StepWindow& window : windows) {
    DerivedStep derived = derive_step(trace, timeline, arrivals, window);
    profiled += static_cast<std::size_t>(window.profiled);
    if (derived.step.gpu > 0) {
      steps.push_back(std::move(derived));
    } else {
      idle.push_back(window.number);
    }
  }
  if (profiled > 0) read.facts.operators_a_step = trace.operators / profiled;
  if (steps.empty()) {
    throw InputError(trace.path +
                     ": no step with gradients and work of a GPU in it: AccumulateGrad "
                     "was not recorded (inference, or compiled autograd), or no kernels with it");
  }
  if (!idle.empty()) {
    read.facts.notes.push_back("steps without work of a GPU are left out: " + list_numbers(idle));
  }
  leave_out_unusual(steps, read.facts.notes);
  std::vector<Step*> timed;
  for (DerivedStep& derived : steps) timed.push_back(&derived.step);
  add_time_between(timed);
  return steps;
}

void add_facts_of(const DerivedStep& typical, Observed& observed) {
  const Step& step = typical.step;
  const bool exchanged = std::ranges::any_of(typical.sent, &Sent::of_gradients);
  for (const ObservedExchange& exchange : step.exchanges) {
    for (const int place : exchange.gradients) {
      const bool other = step.gradients[static_cast<std::size_t>(place)].dtype != exchange.dtype;
      observed.comm_hook = observed.comm_hook || other;
    }
  }
  observed.comm_hook = observed.comm_hook || typical.hooked;
  observed.bucket_views = exchanged && !typical.copied_in && typical.copies_out.empty();
  observed.accumulation_steps = std::max(typical.passes / typical.exchanging_passes, 1);
  observed.ddp_modules = std::max(typical.forwards / typical.passes, 1);
}

void note_reading(const Trace& trace, const TraceTimeline& timeline,
                  std::vector<std::string>& notes) {
  if (trace.damaged > 0) {
    notes.push_back(std::to_string(trace.damaged) + " events that cannot be read are left out");
  }
  if (timeline.devices > 1) {
    notes.push_back("kernels of " + std::to_string(timeline.devices) + " GPUs in one trace; GPU " +
                    std::to_string(timeline.device) + ", which has most, is read");
  }
  if (timeline.kernels_alone > timeline.kernels_launched) {
    throw InputError(trace.path +
                     ": most kernels stand there without the call that launched them "
                     "(cuda_runtime), so nothing tells forward from backward; record "
                     "with ProfilerActivity.CPU and CUDA");
  }
  if (timeline.collectives_before > 0) {
    notes.push_back(std::to_string(timeline.collectives_before) +
                    " collectives that were launched before the profile began are left out");
  }
  if (timeline.kernels_alone > 0) {
    notes.push_back(std::to_string(timeline.kernels_alone) +
                    " kernels that were launched before the profile began are left out");
  }
}

void note_origin(const Trace& trace, const TraceTimeline& timeline, RankRead& read) {
  read.facts.collectives_on_device = timeline.collectives_on_device;
  Observed& observed = read.observed;
  observed.file = trace.path;
  observed.framework = "pytorch";
  observed.version = trace.torch_version;
  observed.name = stem_of(trace.path);
  observed.optimizers = trace.optimizers;
  observed.backend = trace.backend;
  observed.nccl_version = trace.nccl_version;
  observed.world_size = std::max(trace.world_size.value_or(1), 1);
  const auto device = static_cast<std::size_t>(timeline.device);
  if (device < trace.devices.size()) observed.device = trace.devices[device];
  observed.devices_a_node = static_cast<int>(trace.devices.size());
  observed.ranks.emplace_back().rank = trace.rank.value_or(0);
}

void note_passes(const DerivedStep& typical, int accumulation, std::vector<std::string>& notes) {
  if (accumulation > 1) {
    notes.push_back(std::to_string(accumulation) +
                    " backward passes for one all-reduce (no_sync): all but the last count as "
                    "forward");
  }
  if (typical.exchanging_passes > 1) {
    notes.push_back(std::to_string(typical.exchanging_passes) +
                    " backward passes of a step sum gradients: taken as one, with the forward "
                    "passes between them");
  }
}

// Reads one file. Throws InputError, with the file and how to record it instead, if it is no
// data-parallel training on GPUs or tells too little.
RankRead read_rank(const std::string& path) {
  const Trace trace = read_trace(path);
  RankRead read;
  read.rank = trace.rank;
  read.world_size = trace.world_size;
  const std::vector<Arrival> arrivals = arrivals_of(trace);
  refuse_untrained(trace, arrivals);
  TraceTimeline timeline(trace);
  std::vector<RankGroup> groups;
  if (is_whole(trace, timeline, arrivals, groups)) {
    note_reading(trace, timeline, read.facts.notes);
    note_origin(trace, timeline, read);
    read_whole(trace, timeline, arrivals, std::move(groups), read.observed, read.facts.notes);
    return read;
  }
  mark_gradient_exchanges(timeline, arrivals);
  const bool reduced = std::ranges::any_of(timeline.collectives, &TracedCollective::of_gradients);
  const bool sharded = looks_sharded(trace, timeline);
  // Inference has reduce-scatters too.
  const bool trains = !arrivals.empty() || !trace.sharded.empty();
  const bool parallel = looks_parallel(trace, timeline);
  const bool named = !trace.parallel.empty() || !sharded;
  if (parallel && named && !reduced && !arrivals.empty()) refuse_parallel(trace, timeline);
  if (sharded && !reduced && trains) refuse_sharded(trace, timeline);
  note_reading(trace, timeline, read.facts.notes);
  std::vector<DerivedStep> steps = derive_all(trace, timeline, arrivals, read);
  note_origin(trace, timeline, read);
  Observed& observed = read.observed;
  Rank& rank = observed.ranks.front();
  bool assumed = false;
  bool carried = false;
  for (DerivedStep& derived : steps) {
    if (!find_sizes(trace, derived)) {
      if (sharded) refuse_sharded(trace, timeline);
      if (parallel && derived.forwards == 0) refuse_parallel(trace, timeline);
      refuse_sizes(trace, timeline, derived);
    }
    assumed = assumed || derived.assumed_fp32;
    carried = carried || carries_gradients(derived.step);
    rank.steps.push_back(derived.step);
  }
  // All-reduces of something else (HSDP's shards, tensor parallelism) carry none of them.
  if (sharded && !carried) refuse_sharded(trace, timeline);
  const auto typical = static_cast<std::size_t>(&typical_step(rank) - rank.steps.data());
  add_facts_of(steps[typical], observed);
  note_passes(steps[typical], observed.accumulation_steps, read.facts.notes);
  if (assumed) {
    read.facts.notes.push_back("no event tells the gradients' number format: taken as fp32");
  }
  return read;
}

void put_in_order(std::vector<RankRead>& ranks) {
  const bool all_known =
      std::ranges::all_of(ranks, [](const RankRead& read) { return read.rank.has_value(); });
  if (!all_known && ranks.size() > 1) {
    // The user's order then.
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].observed.ranks[0].rank = static_cast<int>(i);
    }
    ranks[0].facts.notes.push_back(
        "not every file tells its rank (distributedInfo): taken in the order given");
    return;
  }
  std::ranges::stable_sort(ranks, {}, &RankRead::rank);
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i].rank != ranks[i - 1].rank) continue;
    throw InputError(ranks[i].observed.file + ": rank " + std::to_string(*ranks[i].rank) +
                     " once more, as " + ranks[i - 1].observed.file +
                     " is; give one file per rank");
  }
}

void check_world(const std::vector<RankRead>& ranks) {
  const RankRead* first = nullptr;
  for (const RankRead& read : ranks) {
    if (!read.world_size) continue;
    if (first != nullptr && *read.world_size != *first->world_size) {
      throw InputError(read.observed.file + ": of " + std::to_string(*read.world_size) +
                       " ranks, but " + first->observed.file + " is of " +
                       std::to_string(*first->world_size) + ": not the same job");
    }
    if (first == nullptr) first = &read;
  }
}

// Sets the time of every collective; true: all ranks agree on them.
bool match_step(Observed& observed, int number, bool typical) {
  const auto first = std::ranges::find(observed.ranks.front().steps, number, &Step::number);
  bool agreed = true;
  for (const auto& [id, shares] : shares_of(observed.ranks, number, false)) {
    std::optional<Skew> skew = measure_skew(shares);
    agreed = agreed && skew;
    const bool of_first = shares.front().second == observed.ranks.front().rank;
    if (!skew || !typical || !of_first || shares.size() < 2) continue;
    skew->exchange = static_cast<std::size_t>(shares.front().first - first->exchanges.data());
    observed.skew.push_back(*skew);
  }
  std::ranges::sort(observed.skew, {}, &Skew::exchange);
  return agreed;
}

// Sets the ranks of exchanges without a known group: the world.
void group_all(Observed& observed) {
  for (Rank& rank : observed.ranks) {
    for (Step& step : rank.steps) {
      for (ObservedExchange& exchange : step.exchanges) {
        if (exchange.ranks == 0) exchange.ranks = observed.world_size;
      }
    }
  }
}

// Joins the ranks of one job. Throws InputError if a rank appears twice or the jobs' sizes differ.
// Requires at least one.
Observed join(std::vector<RankRead> ranks) {
  put_in_order(ranks);
  check_world(ranks);
  Observed observed = std::move(ranks.front().observed);
  ReadFacts facts = std::move(ranks.front().facts);
  std::vector<std::string>& notes = facts.notes;
  std::vector<std::vector<RankGroup>> groups{std::move(observed.groups)};
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    Observed& other = ranks[i].observed;
    if (!same_layout(observed.whole, other.whole)) {
      throw InputError(other.file + ": its groups of ranks tell another layout than those of " +
                       observed.file + ": not the same job");
    }
    groups.push_back(std::move(other.groups));
    observed.ranks.push_back(std::move(other.ranks.front()));
    observed.comm_hook = observed.comm_hook || other.comm_hook;
    for (const std::string& note : ranks[i].facts.notes) {
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
    }
  }
  int largest_group = 0;
  for (const ObservedExchange& exchange : typical_step(observed.ranks.front()).exchanges) {
    largest_group = std::max(largest_group, exchange.ranks);
  }
  facts.world_told =
      std::ranges::any_of(ranks, [](const RankRead& read) { return read.world_size.has_value(); });
  if (!facts.world_told) {
    observed.world_size = std::max({1, largest_group, static_cast<int>(observed.ranks.size())});
  }
  if (largest_group == 0) group_all(observed);
  if (observed.whole) join_groups(std::move(groups), observed);
  if (observed.ranks.size() > 1 && !observed.whole) {
    const int typical = typical_step(observed.ranks.front()).number;
    for (const Step& step : observed.ranks.front().steps) {
      facts.agreed = match_step(observed, step.number, step.number == typical) && facts.agreed;
    }
  }
  warn(observed, facts);
  return observed;
}

// Returns true for a trace. Its events may begin after the head, as those of large jobs do.
bool recognises(const Head& head) {
  const auto has = [&](std::string_view key) { return head.bytes.find(key) != std::string::npos; };
  const std::size_t begin = head.bytes.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return false;
  if (head.bytes[begin] == '[') return has("\"ph\"");
  return head.bytes[begin] == '{' &&
         (has("\"traceEvents\"") || has("\"distributedInfo\"") || has("\"deviceProperties\""));
}

Observed read(const std::vector<std::string>& files) {
  std::vector<RankRead> ranks;
  ranks.reserve(files.size());
  for (const std::string& file : files) ranks.push_back(read_rank(file));
  return join(std::move(ranks));
}

}  // namespace

const ImportFormat kFormat = {
    "kineto", "kineto: a torch.profiler trace (Kineto JSON, packed or not), one file per rank",
    recognises, read};

}  // namespace syncline::job::kineto
