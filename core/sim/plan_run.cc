#include "core/sim/sim_executor.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "core/base/index.h"
#include "core/cost.h"
#include "core/run/stragglers.h"
#include "core/run/walk.h"
#include "core/sim/collective_run.h"
#include "core/sim/fluid.h"

namespace syncline::sim {
namespace {

// Returns the ranks with recorded spans. If all of a role are alike, its first represents them.
std::vector<int> traced_ranks(const plan::Plan& plan, bool uneven, const std::vector<int>& named) {
  constexpr int kFirstFew = 4;
  std::vector<int> traced;
  for (int role = 0; role < plan.roles; ++role) traced.push_back(role * plan.role_step);
  for (int rank = 1; uneven && rank < plan.ranks; ++rank) {
    const bool wanted =
        named.empty() ? rank < kFirstFew : std::ranges::find(named, rank) != named.end();
    if (wanted && !std::ranges::binary_search(traced, rank)) {
      traced.insert(std::ranges::upper_bound(traced, rank), rank);
    }
  }
  return traced;
}

// True if a cost model gives some collective's time. It covers the whole collective, so its
// messages are unknown.
bool evaluated_by_cost_model(const plan::Plan& plan, const Cluster& cluster) {
  collective::CostCache cache(cluster);
  return std::ranges::any_of(plan.ops, [&](const plan::Op& op) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    return collective != nullptr && cache.evaluated_by_cost_model(*collective);
  });
}

std::vector<std::unique_ptr<CollectiveRun>> collectives_of(const std::vector<run::Beside>& jobs,
                                                           const Simulation& simulation) {
  const auto& [plan, cluster, seed] = jobs.front();
  if (jobs.size() > 1 || simulation.granularity != Simulation::Granularity::kStep ||
      evaluated_by_cost_model(plan, cluster)) {
    return make_merged_runs(jobs, simulation.fold);
  }
  std::vector<std::unique_ptr<CollectiveRun>> runs;
  runs.push_back(make_step_run(plan, cluster, simulation.fold));
  return runs;
}

class PlanRun {
 public:
  PlanRun(const run::Beside& job, const std::vector<int>& traced, int periods,
          std::unique_ptr<CollectiveRun> collectives, Fluid& fluid)
      : job_(job),
        plan_(job.plan),
        periods_(periods),
        walk_(job.plan, periods),
        collectives_(std::move(collectives)),
        fluid_(fluid) {
    const plan::Plan& plan = job.plan;
    const Jitter& jitter = job.cluster.jitter;
    // A collective of several groups is one operation here, so all ranks would wait for it.
    const run::Waits waits = run::waits_of(plan);
    const bool in_groups = waits.ranks > 1 && waits.groups > 1;
    uneven_ = jitter.kind != Jitter::Kind::kNone && !jitter.guessed && !in_groups;
    if (!uneven_) stretch_ = run::expected_slowest(jitter, waits);
    lane_free_.assign(index(uneven_ ? plan.ranks : plan.roles), 0);
    lane_step_ = uneven_ ? 1 : plan.role_step;
    traced_ = traced_ranks(plan, uneven_, traced);
    begins_.assign(index(walk_.instances()), 0);
  }

  // Starts all periods; again if they are over.
  void begin() {
    first_period_ = static_cast<int>(timeline_.period_ends.size());
    timeline_.period_ends.resize(timeline_.period_ends.size() + index(periods_));
    finished_.resize(timeline_.period_ends.size());
    walk_ = run::Walk(plan_, periods_);
    left_ = walk_.instances();
    awaited_.clear();
    began_ = fluid_.now();
    ready_ = walk_.first();
    start_ready();
  }

  void handle(Fluid::Token token) {
    if (token.kind == kOpDone) {
      finish(token.a);
    } else if (const int ended = collectives_->handle(fluid_, token); ended >= 0) {
      finish(ended);
    }
    start_ready();
  }

  bool over() const { return left_ == 0; }
  bool took_time() const { return fluid_.now() > began_; }

  // Returns the number of complete periods, from the first on.
  std::size_t whole_periods() const {
    const auto whole = [&](std::size_t finished) { return finished == plan_.ops.size(); };
    return index(std::ranges::find_if_not(finished_, whole) - finished_.begin());
  }

  run::Timeline timeline() {
    std::ranges::stable_sort(timeline_.spans, {}, &run::Span::begin);
    return std::move(timeline_);
  }

 private:
  const plan::Op& op_of(int instance) const { return plan_.ops[index(walk_.op(instance))]; }

  // True for work on the compute stream, which each rank does at its own pace.
  bool own_pace(const plan::Op& op) const {
    return plan_.computes(op.stream) && !std::holds_alternative<collective::Collective>(op.work);
  }

  void start_ready() {
    while (!ready_.empty()) {
      const int instance = ready_.back();
      ready_.pop_back();
      start(instance);
    }
  }

  void start(int instance) {
    const plan::Op& op = op_of(instance);
    if (own_pace(op)) {
      advance_lanes(instance, op);
      return;
    }
    Seconds wait = 0;
    if (plan_.computes(op.stream)) {
      // In one stream with the computation: the slowest rank's computation comes first.
      for (const std::size_t lane : lanes_of(op)) {
        wait = std::max(wait, lane_free_[lane] - fluid_.now());
      }
    }
    const bool collective = std::holds_alternative<collective::Collective>(op.work);
    if (wait > 0 && collective && !std::exchange(awaited_[instance], true)) {
      fluid_.start_timer(wait, {kOpDone, ~instance, 0});
      return;
    }
    begins_[index(instance)] = fluid_.now();
    if (!collective) {
      fluid_.start_timer(plan::seconds_of(op.work), {kOpDone, instance, 0});
    } else if (collectives_->start(fluid_, instance, walk_.op(instance))) {
      finish(instance);
    }
  }

  // Does the work on each rank when that is free. The next operation on the stream may queue at
  // once; dependents wait for the slowest rank.
  void advance_lanes(int instance, const plan::Op& op) {
    const Seconds now = fluid_.now();
    const Seconds seconds = plan::seconds_of(op.work);
    const bool computes = std::holds_alternative<plan::Compute>(op.work);
    const bool jittered = computes && uneven_;
    const int period = first_period_ + walk_.period(instance);
    const std::int64_t step = std::int64_t{period} * plan_.steps + op.step;
    Seconds last = now;
    for (const std::size_t lane : lanes_of(op)) {
      const int rank = static_cast<int>(lane) * lane_step_;
      const double factor = jittered ? factor_of(rank, step) : computes ? stretch_ : 1.0;
      const Seconds begin = std::max(lane_free_[lane], now);
      lane_free_[lane] = begin + seconds * factor;
      last = std::max(last, lane_free_[lane]);
      if (std::ranges::binary_search(traced_, rank)) {
        timeline_.spans.push_back({period, walk_.op(instance), rank, begin, lane_free_[lane]});
      }
    }
    fluid_.start_timer(last - now, {kOpDone, instance, 0});
    walk_.pass_stream(instance, ready_);
  }

  // Returns the lanes of the ranks that do an operation, or of their representative.
  std::vector<std::size_t>& lanes_of(const plan::Op& op) {
    auto& lanes = lanes_[index(plan_.role_of(op.stream))];
    if (!lanes.empty()) return lanes;
    for (std::size_t lane = 0; lane < lane_free_.size(); ++lane) {
      const int rank = static_cast<int>(lane) * lane_step_;
      if (plan_.role_of_rank(rank) == plan_.role_of(op.stream)) lanes.push_back(lane);
    }
    return lanes;
  }

  // Returns a rank's factor, which all operations of a step share: it is computed once per step.
  double factor_of(int rank, std::int64_t step) {
    if (step != factors_step_) {
      factors_step_ = step;
      factors_.clear();
      for (int each = 0; each < plan_.ranks; ++each) {
        double sum = 0;
        for (int pass = 0; pass < plan_.passes; ++pass) {
          sum +=
              run::jitter_factor(job_.cluster.jitter, job_.seed, each, step * plan_.passes + pass);
        }
        factors_.push_back(sum / plan_.passes);
      }
    }
    return factors_[index(rank)];
  }

  void finish(int instance) {
    if (instance < 0) {  // waited only for the computation before it
      start(~instance);
      return;
    }
    const Seconds now = fluid_.now();
    const int period = first_period_ + walk_.period(instance);
    --left_;
    ++finished_[index(period)];
    auto& end = timeline_.period_ends[index(period)];
    end = std::max(end, now);
    if (!own_pace(op_of(instance))) {
      for (const int rank : traced_) {
        if (plan_.role_of_rank(rank) != plan_.role_of(op_of(instance).stream)) continue;
        timeline_.spans.push_back(
            {period, walk_.op(instance), rank, begins_[index(instance)], now});
      }
      walk_.pass_stream(instance, ready_);
    }
    walk_.pass_dependents(instance, ready_);
  }

  const run::Beside& job_;
  const plan::Plan& plan_;
  int periods_;           // of one walk
  int first_period_ = 0;  // of the current walk
  Seconds began_ = 0;     // of the current walk
  run::Walk walk_;
  int left_ = 0;                       // instances of the walk
  std::vector<std::size_t> finished_;  // operations, by period
  std::unique_ptr<CollectiveRun> collectives_;
  Fluid& fluid_;
  std::vector<int> ready_;
  std::vector<Seconds> lane_free_;  // time when each rank's compute stream is free, or each role's
  int lane_step_ = 1;               // ranks from one lane to the next
  bool uneven_ = false;             // true: ranks' factors are drawn
  double stretch_ = 1;              // otherwise: expected factor of computation
  std::vector<std::vector<std::size_t>> lanes_{index(plan_.roles)};  // by role
  std::vector<Seconds> begins_;                                      // by instance
  std::unordered_map<int, bool> awaited_;
  std::vector<double> factors_;
  std::int64_t factors_step_ = -1;
  std::vector<int> traced_;  // ranks whose spans are recorded
  run::Timeline timeline_;
};

}  // namespace

run::Outcome simulate(const plan::Plan& plan, const run::ExecutorSettings& settings, int periods) {
  std::vector<run::Beside> jobs{{plan, settings.cluster, settings.seed}};
  jobs.insert(jobs.end(), settings.others.begin(), settings.others.end());
  auto collectives = collectives_of(jobs, settings.simulation);
  const FluidPlan network = collectives.front()->fluid_plan();
  Fluid fluid(network.links, network.routes);
  std::vector<std::unique_ptr<PlanRun>> runs;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    runs.push_back(std::make_unique<PlanRun>(jobs[job], settings.traced_ranks, periods,
                                             std::move(collectives[job]), fluid));
    fluid.serve(static_cast<std::int32_t>(job));
    runs.back()->begin();
  }
  fluid.run([&](Fluid::Token token) {
    if (runs.front()->over()) return;
    PlanRun& run = *runs[index(token.job)];
    fluid.serve(token.job);
    run.handle(token);
    if (token.job > 0 && run.over() && run.took_time()) run.begin();
  });
  run::Outcome outcome;
  outcome.timeline = runs.front()->timeline();
  for (std::size_t job = 1; job < runs.size(); ++job) {
    std::vector<Seconds> ends = runs[job]->timeline().period_ends;
    ends.resize(runs[job]->whole_periods());
    outcome.others.push_back(std::move(ends));
  }
  return outcome;
}

}  // namespace syncline::sim
