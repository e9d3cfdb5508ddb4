#include "imports/kineto/whole_rank.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "imports/kineto/groups.h"
#include "imports/kineto/step.h"
#include "imports/kineto/warnings.h"

namespace syncline::job::kineto {
namespace {

int stage_read(const Trace& trace, const std::vector<RankGroup>& groups, const Parallel& parallel,
               std::vector<std::string>& notes) {
  if (parallel.pipeline == 1) return 0;
  const RankGroup* pipeline = group_of(groups, Role::kPipeline);
  if (!trace.rank) {
    notes.push_back(
        "the trace does not tell its rank (distributedInfo): taken as of the first "
        "stage of the pipeline");
    return 0;
  }
  const auto at = std::ranges::find(pipeline->ranks, *trace.rank);
  if (at != pipeline->ranks.end()) return static_cast<int>(at - pipeline->ranks.begin());
  return *trace.rank / (*trace.world_size / parallel.pipeline);
}

// Marks the sums of gradients, which distinguish steps.
void mark_sums_of_gradients(TraceTimeline& timeline, const std::vector<Arrival>& arrivals,
                            const std::vector<RankGroup>& groups) {
  std::set<int> engine;
  for (const Arrival& arrival : arrivals) engine.insert(arrival.thread);
  for (TracedCollective& collective : timeline.collectives) {
    const TracedMessage& message = collective.message;
    const bool data = message.place >= 0 &&
                      carries_gradients(groups[static_cast<std::size_t>(message.place)].role);
    // Losses and norms are reduced by the thread that drives the step.
    const bool sums = message.kind == "reduce_scatter" ||
                      (message.kind == "all_reduce" && engine.contains(collective.thread));
    collective.of_gradients = data && sums && collective.launched >= arrivals.front().start;
  }
}

Whole whole_of(const WholeStep& typical, const std::vector<RankGroup>& groups,
               const Parallel& parallel, int stage) {
  Whole whole;
  whole.parallel = parallel;
  whole.parallel.virtual_stages = typical.chunks;
  if (typical.chunks > 1) whole.parallel.schedule = Schedule::kInterleaved;
  whole.parallel.overlap_sends = typical.chunks > 1;
  whole.micro_batches = static_cast<int>(typical.passes.size()) / typical.chunks;
  // One forward, one backward; unless all forward passes come first although there are more than
  // the pipeline needs to fill.
  const bool fills = whole.micro_batches > parallel.pipeline - stage;
  if (parallel.pipeline > 1 && typical.chunks == 1 && fills && !typical.alternates) {
    whole.parallel.schedule = Schedule::kGpipe;
  }
  whole.each_pass = typical.exchanging_passes > 1 && whole.micro_batches > 1;
  whole.regather = typical.regathers;
  whole.gathers_late = typical.gathers_late;
  whole.parameters = typical.gathered;
  whole.behind = true;
  for (std::size_t i = 0; i < typical.sent.size(); ++i) {
    const bool of_gradients = !typical.step.exchanges[i].gradients.empty();
    const bool early = typical.sent[i].engine || !typical.sent[i].behind;
    if (of_gradients && early) whole.behind = false;
  }
  for (const ObservedExchange& exchange : typical.step.exchanges) {
    if (exchange.in < 0) continue;
    const RankGroup& group = groups[static_cast<std::size_t>(exchange.in)];
    if (group.role == Role::kPipeline) {
      whole.parallel.activation = std::max(whole.parallel.activation, exchange.bytes());
    }
    const bool inside = exchange.kind == "reduce_scatter" || exchange.kind == "all_gather";
    if (group.role == Role::kTensor && inside) whole.parallel.sequence = true;
    const bool shards = exchange.kind == "reduce_scatter" && !exchange.gradients.empty() &&
                        group.role != Role::kExpertData;
    if (shards) whole.shards = group.size;
  }
  for (std::size_t i = 0; i < groups.size() && whole.shards == 0; ++i) {
    const bool data = groups[i].role == Role::kData && groups[i].size > 1;
    if (!data || !gathers_what_it_sums(typical.step.exchanges, static_cast<int>(i))) continue;
    whole.shards = groups[i].size;
    whole.all_reduced = true;
  }
  return whole;
}

void note_carried(const WholeStep& typical, std::vector<std::string>& notes) {
  std::vector<bool> carried(typical.step.gradients.size(), false);
  for (const ObservedExchange& exchange : typical.step.exchanges) {
    for (const int place : exchange.gradients) carried[static_cast<std::size_t>(place)] = true;
  }
  const auto alone = std::ranges::count(carried, false);
  if (alone == 0 || alone == static_cast<std::ptrdiff_t>(carried.size())) return;
  notes.push_back(std::to_string(alone) +
                  " gradients are in no collective that was seen to carry them: they are predicted "
                  "as if each travelled alone");
}

void note_cut(const WholeStep& typical, std::vector<std::string>& notes) {
  if (typical.cut.empty()) return;
  std::string shapes;
  for (const std::vector<std::int64_t>& shape : typical.cut) {
    shapes += shapes.empty() ? "" : ", ";
    for (std::size_t i = 0; i < shape.size(); ++i) {
      shapes += (i == 0 ? "" : "x") + std::to_string(shape[i]);
    }
  }
  notes.push_back("gradients of " + shapes +
                  " are cut by the tensor group by their sizes: then they are as large as their "
                  "collectives");
}

// Returns a group's identity on every rank: role and ranks, or the name if the ranks are unknown.
std::tuple<Role, std::vector<int>, std::string> identity_of(const RankGroup& group) {
  return {group.role, group.ranks, group.ranks.empty() ? group.name : ""};
}

void add_figures(const Step& step, std::vector<RankGroup>& groups) {
  std::set<int> own;
  for (const ObservedExchange& exchange : step.exchanges) {
    if (exchange.in < 0) continue;
    RankGroup& group = groups[static_cast<std::size_t>(exchange.in)];
    // Another rank has already set the figures.
    if (group.calls > 0 && !own.contains(exchange.in)) continue;
    own.insert(exchange.in);
    ++group.calls;
    group.bytes += exchange.bytes();
    group.exposed += exchange.exposed;
    group.hidden += exchange.duration - exchange.exposed;
  }
}

// Matches collectives across ranks: one lasts least on the rank that comes last. Messages between
// stages have two ends, unknown in a larger group.
void match(Observed& observed, int number, bool typical) {
  struct Late {
    std::size_t times = 0;
    Seconds waited = 0;  // for this rank
  };
  std::map<int, std::map<int, Late>> late;  // by group and rank
  for (const auto& [id, shares] : shares_of(observed.ranks, number, true)) {
    const int place = std::get<int>(id);
    RankGroup& group = observed.groups[static_cast<std::size_t>(place)];
    const bool message = shares.front().first->kind == "send_recv";
    if (shares.size() < 2 || (message && group.size != 2)) continue;
    const std::optional<Skew> skew = measure_skew(shares);
    // The schedule decides which stage another waits for.
    if (!skew || !typical || group.role == Role::kPipeline) continue;
    ++group.matched;
    if (skew->most <= skew->least) continue;
    Late& one = late[place][skew->last_rank];
    ++one.times;
    one.waited += skew->most - skew->least;
  }
  for (const auto& [place, ranks] : late) {
    RankGroup& group = observed.groups[static_cast<std::size_t>(place)];
    const auto most =
        std::ranges::max_element(ranks, {}, [](const auto& one) { return one.second.waited; });
    group.last_rank = most->first;
    group.last = most->second.times;
    group.waited = most->second.waited;
  }
}

}  // namespace

bool same_layout(const std::optional<Whole>& a, const std::optional<Whole>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  const auto sizes = [](const Whole& whole) {
    const Parallel& p = whole.parallel;
    return std::tuple(p.tensor, p.context, p.pipeline, p.virtual_stages, p.expert,
                      p.pipeline_inside, whole.micro_batches, whole.shards);
  };
  return sizes(*a) == sizes(*b);
}

bool is_whole(const Trace& trace, TraceTimeline& timeline, const std::vector<Arrival>& arrivals,
              std::vector<RankGroup>& groups) {
  const bool wrapped =
      std::ranges::any_of(trace.host, [](const HostSpan& s) { return s.kind == Host::kForward; });
  if (wrapped || arrivals.empty()) return false;
  groups = groups_of(trace, timeline, arrivals);
  group_by_shapes(trace, timeline, groups);
  return tells_a_cut(timeline, groups);
}

void read_whole(const Trace& trace, TraceTimeline& timeline, const std::vector<Arrival>& arrivals,
                std::vector<RankGroup> groups, Observed& observed,
                std::vector<std::string>& notes) {
  check_groups(trace, timeline, groups);
  const Parallel parallel = layout_of(trace, groups);
  const bool deep_ep = std::ranges::find(trace.parallel, "DeepEP") != trace.parallel.end();
  if (parallel.expert == 1 && deep_ep) refuse_parallel(trace, timeline);
  mark_sums_of_gradients(timeline, arrivals, groups);
  Rank& rank = observed.ranks.front();
  rank.stage = stage_read(trace, groups, parallel, notes);
  std::vector<WholeStep> steps;
  for (const StepWindow& window : windows_of(trace, timeline, arrivals, notes)) {
    WholeStep whole = derive_whole_step(trace, timeline, arrivals, window, groups);
    if (!find_whole_sizes(trace, groups, parallel, rank.stage, whole)) {
      refuse_shapes(trace, timeline, whole.step);
    }
    constexpr Seconds kLongest = 10'000;
    if (whole.step.gpu > kLongest) {
      throw InputError(trace.path + ": step " + std::to_string(whole.step.number) +
                       " lasts longer than hours: its times are damaged");
    }
    if (whole.step.gpu > 0) steps.push_back(std::move(whole));
  }
  if (steps.empty()) throw InputError(trace.path + ": no whole step with work of a GPU in it");
  const std::vector<int> odd = leave_out_odd(steps, [](const WholeStep& whole) {
    return std::pair(whole.passes.size(), whole.step.gradients.size());
  });
  if (!odd.empty()) {
    notes.push_back("steps with other gradients or backward passes than most are left out: " +
                    list_numbers(odd));
  }
  std::vector<Step*> timed;
  for (WholeStep& whole : steps) timed.push_back(&whole.step);
  add_time_between(timed);
  for (const WholeStep& whole : steps) rank.steps.push_back(whole.step);
  const auto typical = static_cast<std::size_t>(&typical_step(rank) - rank.steps.data());
  if (!carries_gradients(steps[typical].step)) refuse_sharded(trace, timeline);
  observed.whole = whole_of(steps[typical], groups, parallel, rank.stage);
  observed.groups = std::move(groups);
  note_carried(steps[typical], notes);
  note_cut(steps[typical], notes);
}

void join_groups(std::vector<std::vector<RankGroup>> told, Observed& observed) {
  observed.groups.clear();
  std::map<decltype(identity_of({})), int> places;
  for (std::size_t r = 0; r < told.size(); ++r) {
    std::vector<int> into;
    for (RankGroup& group : told[r]) {
      const auto [at, first] =
          places.try_emplace(identity_of(group), static_cast<int>(observed.groups.size()));
      into.push_back(at->second);
      group.calls = 0;
      if (first) observed.groups.push_back(std::move(group));
    }
    for (Step& step : observed.ranks[r].steps) {
      for (ObservedExchange& exchange : step.exchanges) {
        if (exchange.in >= 0) exchange.in = into[static_cast<std::size_t>(exchange.in)];
      }
    }
  }
  for (const Rank& rank : observed.ranks) add_figures(typical_step(rank), observed.groups);
  const int typical = typical_step(observed.ranks.front()).number;
  for (const Step& step : observed.ranks.front().steps) {
    match(observed, step.number, step.number == typical);
  }
}

}  // namespace syncline::job::kineto
