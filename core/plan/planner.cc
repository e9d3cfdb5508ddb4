#include "core/plan/planner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numbers>
#include <numeric>

#include "core/algorithm.h"
#include "core/base/error.h"
#include "core/collective/nccl.h"
#include "core/compress/dgc.h"
#include "core/plan/compute_fusion.h"
#include "core/plan/local_plan.h"
#include "core/plan/offload.h"
#include "core/plan/pipeline.h"
#include "core/plan/route.h"
#include "core/plan/step_plan.h"

namespace syncline::plan {
namespace {

// Plans one point of the training: a step of a model-parallel job, a plain step, or a period of
// LocalSGD.
Plan plan_of(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
             const TrainingPoint& point) {
  if (workload.parallel.whole_job()) return whole_plan(workload, cluster, strategy, point);
  const LocalSgd& local = strategy.local_sgd;
  const bool warming_up =
      local.warmup_gradients && point.period == 0 && point.step < local.begin_step;
  if (!local.enabled || warming_up) {
    return step_plan(workload, communication_of(workload, cluster, strategy, point));
  }
  if (!point.averaged) {
    // Some steps of many alike.
    const std::int64_t steps = std::clamp<std::int64_t>(point.period, 1, kPlainSteps);
    return local_plan(workload, cluster, strategy, point, steps, false);
  }
  const std::int64_t own = point.step < local.begin_step ? 1 : local.period;
  return local_plan(workload, cluster, strategy, point, point.period > 0 ? point.period : own,
                    true);
}

using Decay = Training::LearningRate::Decay;

// Returns computation time / the workload's: parallel training slows it down, and the slowest block
// of ranks determines it.
double compute_stretch(const Cluster& cluster, const LocalSgd& local) {
  if (cluster.ranks() == 1) return 1;
  return (1 + cluster.device.data_parallel_slowdown) *
         std::ranges::max(block_times(cluster, local));
}

// Returns the phases of a run without regard to ticks: LocalSGD's warm-up and periods, or the
// stretches between changes of the codec's ramp.
std::vector<TrainingPhase> phases_of(const Strategy& strategy, const Training& training) {
  if (!training.steps) {
    TrainingPoint point;
    if (training.step) point.step = *training.step;
    return {{point, 1}};
  }
  const std::int64_t first = training.from;
  const std::int64_t end = first + *training.steps;
  std::vector<TrainingPhase> phases;
  if (strategy.local_sgd.enabled) {
    Training rest = training;
    if (strategy.local_sgd.warmup_gradients) {
      // Steps count from 1: those up to begin_step exchange gradients.
      const std::int64_t warm =
          std::clamp<std::int64_t>(strategy.local_sgd.begin_step - first, 0, *training.steps);
      if (warm > 0) phases.push_back({{0, 0}, warm});
      rest.from += warm;
      *rest.steps -= warm;
      if (*rest.steps == 0) return phases;
    }
    std::ranges::copy(period_shares(strategy.local_sgd, rest), std::back_inserter(phases));
    return phases;
  }
  std::vector<std::int64_t> cuts{first};
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  if (codec != nullptr && (codec->sparse || codec->low_rank)) {
    for (const auto change : compress::sparsity_changes(strategy.compression)) {
      if (change > first && change < end) cuts.push_back(change);
    }
  }
  cuts.push_back(end);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    phases.push_back({{cuts[i], 0}, cuts[i + 1] - cuts[i]});
  }
  return phases;
}

}  // namespace

std::vector<double> block_times(const Cluster& cluster, const LocalSgd& local) {
  const auto at_least_one = [](std::size_t blocks) { return std::max<std::size_t>(1, blocks); };
  const std::size_t blocks =
      std::lcm(at_least_one(cluster.speeds.size()), at_least_one(local.periods.size()));
  std::vector<double> times(blocks, 1.0);
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto of_block = [&](const auto& list) { return list[block * list.size() / blocks]; };
    if (!local.periods.empty()) {
      times[block] =
          static_cast<double>(of_block(local.periods)) / static_cast<double>(local.period);
    }
    if (!cluster.speeds.empty()) times[block] /= of_block(cluster.speeds);
  }
  return times;
}

namespace {

// Throws for a strategy that names no row of a table or has empty groups. Readers of files have
// checked this, callers of the library may not.
void expect_known(const Strategy& strategy) {
  const auto fail = [&](const std::string& what) {
    throw InputError("strategy '" + strategy.name + "': " + what);
  };
  const Hierarchy& hierarchy = strategy.hierarchy;
  for (const std::string& name : {strategy.algorithm, hierarchy.inside, hierarchy.across}) {
    const bool known = name.empty() || name == collective::kNcclName ||
                       collective::find_algorithm(name) != nullptr;
    if (!known) fail("no algorithm is called '" + name + "'");
  }
  const std::string& codec = strategy.compression.codec;
  if (!codec.empty() && compress::find_codec(codec) == nullptr) {
    fail("no codec is called '" + codec + "'");
  }
  if (hierarchy.form != Hierarchy::Form::kFlat && hierarchy.group_size < 1) {
    fail("hierarchy.group_size is " + std::to_string(hierarchy.group_size) +
         ": give the ranks of a group");
  }
}

}  // namespace

Plan make_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
               const TrainingPoint& point) {
  expect_known(strategy);
  if (const auto fused = fused_workload(workload, cluster.device, strategy.compute_fusion)) {
    return make_plan(*fused, cluster, strategy, point);
  }
  if (const double stretch = compute_stretch(cluster, strategy.local_sgd); stretch != 1) {
    // Stretched once, so that predictions of ready times agree with the plan.
    Cluster even = cluster;
    even.device.data_parallel_slowdown = 0;
    even.speeds.clear();
    Strategy alike = strategy;
    alike.local_sgd.periods.clear();
    Plan plan = make_plan(scale_computation(workload, stretch), even, alike, point);
    plan.compute_slowdown = stretch;
    return plan;
  }
  if (const auto offloaded = with_offload(workload, cluster, strategy)) {
    Strategy own = strategy;
    own.offload = Strategy::Offload::kNone;
    Plan plan = make_plan(*offloaded, cluster, own, point);
    plan.updates_on_host = states_on_host(strategy);
    return plan;
  }
  Plan plan = plan_of(workload, cluster, strategy, point);
  const bool each_pass = strategy.each_micro_batch || strategy.regather ||
                         workload.delayed_scaling ||
                         (gathers_each_pass(strategy) && !strategy.after_passes);
  if (!each_pass) plan.passes = static_cast<int>(workload.micro_batches);
  for (const Op& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective != nullptr) expect_ranks(collective->groups, plan.ranks, strategy);
  }
  return plan;
}

Plan exchange_plan(Workload workload, const Cluster& exchanging, const Strategy& strategy) {
  workload.parallel = {};
  return make_plan(workload, exchanging, strategy);
}

std::vector<TrainingPhase> training_phases(const Strategy& strategy, const Training& training) {
  auto phases = phases_of(strategy, training);
  if (strategy.fusion.cycle <= 0) return phases;
  // A step begins anywhere in a cycle: the mean over its moments.
  std::vector<TrainingPhase> ticked;
  for (const auto& phase : phases) {
    for (int tick = 0; tick < kTickPhases; ++tick) {
      ticked.push_back(phase);
      ticked.back().point.tick_phase = tick;
    }
  }
  return ticked;
}

double learning_rate_at(const Training& training, std::int64_t step) {
  const auto& rate = training.learning_rate;
  if (step < rate.warmup) {
    const auto risen = static_cast<double>(std::max<std::int64_t>(1, step));
    return rate.initial * risen / static_cast<double>(rate.warmup);
  }
  if (rate.decay == Decay::kConstant || !(rate.steps || training.steps)) return rate.initial;
  const std::int64_t end = rate.steps ? *rate.steps : training.from + *training.steps;
  const auto falling = static_cast<double>(std::max<std::int64_t>(1, end - rate.warmup));
  const double left = 1.0 - std::min(1.0, static_cast<double>(step - rate.warmup) / falling);
  const double share = rate.decay == Decay::kCosine ? (1 - std::cos(std::numbers::pi * left)) / 2
                                                    : std::pow(left, rate.power);
  return rate.final + (rate.initial - rate.final) * share;
}

double loss_at(const Training& training, std::int64_t step) {
  const auto& loss = training.loss;
  const auto at = static_cast<double>(step);
  const auto after =
      std::ranges::find_if(loss, [&](const auto& point) { return point.first >= at; });
  if (after == loss.end()) return loss.back().second;
  if (after == loss.begin()) return loss.front().second;
  const auto before = after - 1;
  const double share = (at - before->first) / (after->first - before->first);
  return before->second + share * (after->second - before->second);
}

std::int64_t adaptive_period(const LocalSgd& local, double first_rate, double first_loss,
                             double rate, double loss) {
  const auto most = static_cast<double>(local.max_period);
  if (rate <= 0) return local.max_period;
  const double root =
      std::sqrt(first_rate * loss / (rate * first_loss) * static_cast<double>(local.init_period));
  return static_cast<std::int64_t>(std::clamp(std::ceil(root), 1.0, most));
}

std::vector<TrainingPhase> period_shares(const LocalSgd& local, const Training& training) {
  // Steps count from 1; the run covers steps from + 1 .. from + steps.
  const std::int64_t first = training.from + 1;
  const std::int64_t last = training.from + training.steps.value_or(1);
  std::map<std::int64_t, std::int64_t> shares;
  const std::int64_t warm = std::clamp<std::int64_t>(local.begin_step, first - 1, last) - first + 1;
  if (warm > 0) shares[1] += warm;
  std::int64_t step = first + warm;
  std::int64_t left = 0;  // steps after the last averaging
  if (!local.adaptive) {
    // Averaged in steps begin_step + period, begin_step + 2 * period, ...
    const std::int64_t since = (step - 1 - local.begin_step) % local.period;
    const std::int64_t to_next = local.period - since;
    if (step + to_next - 1 <= last) {
      shares[to_next] += to_next;
      step += to_next;
      const std::int64_t whole = (last - step + 1) / local.period * local.period;
      if (whole > 0) shares[local.period] += whole;
      step += whole;
    }
    left = last - step + 1;
  } else {
    const double first_rate = learning_rate_at(training, 1);
    const double first_loss = loss_at(training, 1);
    while (step <= last) {
      // The last averaging, in step - 1, has set the period.
      const std::int64_t period =
          adaptive_period(local, first_rate, first_loss, learning_rate_at(training, step - 1),
                          loss_at(training, step - 1));
      if (step + period - 1 > last) {
        left = last - step + 1;
        break;
      }
      shares[period] += period;
      step += period;
    }
  }
  std::vector<TrainingPhase> list;
  for (const auto& [period, steps] : shares) list.push_back({{last, period}, steps});
  if (left > 0) list.push_back({{last, left, 0, false}, left});
  return list;
}

}  // namespace syncline::plan
