#include "studies/layouts/utilisation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/base/statistics.h"
#include "core/executor.h"
#include "core/fabric/topology.h"
#include "core/job.h"
#include "core/plan/local_plan.h"
#include "core/plan/planner.h"
#include "core/run/stragglers.h"
#include "formats/input/conflicts.h"
#include "formats/input/document.h"
#include "studies/study/study_calibration.h"
#include "studies/tune/evaluator.h"
#include "studies/warnings/warnings.h"

namespace syncline::tune {
namespace {

// From dial-up to more than any port: 0.1 Mbit/s to 100 Tbit/s.
constexpr BytesPerSecond kMin = 1e-4 * kGigabitPerSecond;
constexpr BytesPerSecond kMax = 1e5 * kGigabitPerSecond;

std::shared_ptr<const fabric::Topology> grown(const fabric::Topology& topology, double growth) {
  auto copy = std::make_shared<fabric::Topology>(topology);
  for (fabric::FabricLink& link : copy->links) link.capacity *= growth;
  if (copy->as_measured != nullptr) copy->as_measured = grown(*copy->as_measured, growth);
  return copy;
}

// Changes the outermost links' bandwidth. A fabric's links grow too, or they would limit the ports.
Cluster with_link(Cluster cluster, BytesPerSecond rated) {
  Tier& tier = cluster.tiers.back();
  const double growth = rated * tier.efficiency / tier.bandwidth;
  tier.bandwidth *= growth;
  if (cluster.topology != nullptr) cluster.topology = grown(*cluster.topology, growth);
  return cluster;
}

Seconds evaluated(Scenario scenario, const Cluster& cluster, const Strategy& strategy) {
  scenario.cluster = cluster;
  return Evaluator(scenario).step_time(strategy);
}

class Search {
 public:
  explicit Search(Scenario scenario) : scenario_(std::move(scenario)) {
    const auto& tiers = scenario_.cluster.tiers;
    group_ = tiers.size() > 1 ? tiers[tiers.size() - 2].span : 1;
  }

  int group() const { return group_; }

  Utilised row(const Strategy& strategy, double target,
               const std::vector<BytesPerSecond>& bandwidths) const {
    Utilised row{strategy, alone(strategy) / mean_speed(), 0, std::nullopt, {}};
    const Tier& link = scenario_.cluster.tiers.back();
    const double waits = waits_between_groups(strategy);
    row.given = at(row, waits, link.bandwidth / link.efficiency);
    for (const BytesPerSecond bandwidth : bandwidths) {
      row.curve.push_back(at(row, waits, bandwidth));
    }
    row.needed = needed(row, waits, target);
    return row;
  }

 private:
  double mean_speed() const {
    const auto& speeds = scenario_.cluster.speeds;
    return speeds.empty() ? 1 : mean(speeds);
  }

  // Returns the step of one of the groups at speed 1, without waits for others.
  Seconds alone(Strategy strategy) const {
    strategy.local_sgd = {};
    if (group_ > 1) {
      Cluster group = group_view(scenario_.cluster, group_);
      group.speeds.clear();
      return evaluated(scenario_, group, strategy);
    }
    Cluster one = scenario_.cluster;
    one.speeds.clear();
    one.nodes = one.gpus_per_node = 1;
    one.tiers.clear();
    return evaluated(scenario_, one, strategy);
  }

  // Returns the factor on a step due to its group's waits for others, without waits inside it.
  double waits_between_groups(Strategy strategy) const {
    const int steps = static_cast<int>(strategy.local_sgd.period);
    const Cluster& cluster = scenario_.cluster;
    const double slowest =
        std::ranges::max(plan::block_times(cluster, strategy.local_sgd)) * mean_speed();
    strategy.local_sgd = {};
    const plan::Plan step = plan::make_plan(scenario_.workload, cluster, strategy);
    run::Waits waits{group_, 1, step.passes, 1};
    const double inside = run::expected_slowest(cluster.jitter, waits);
    waits.groups = cluster.ranks() / group_;
    waits.steps = steps;
    return slowest * run::expected_slowest(cluster.jitter, waits) / inside;
  }

  double at(const Utilised& row, double waits, BytesPerSecond bandwidth) const {
    const Cluster cluster = with_link(scenario_.cluster, bandwidth);
    const LocalSgd& local = row.strategy.local_sgd;
    if (!local.enabled) return row.alone / evaluated(scenario_, cluster, row.strategy);
    const plan::Plan plan =
        plan::local_plan_of_steps(scenario_.workload, cluster, row.strategy, row.alone * waits);
    Cluster even = cluster;
    even.jitter = {};
    const auto executor = run::make_model_executor({even, scenario_.simulation, 1});
    const auto ends = executor->run(plan, {}, 2).timeline.period_ends;
    return row.alone * static_cast<double>(local.period) / (ends[1] - ends[0]);
  }

  // Returns the least bandwidth for a utilisation, which rises with the bandwidth.
  std::optional<BytesPerSecond> needed(const Utilised& row, double waits, double target) const {
    constexpr double kNear = 1.0005;
    double low = kMin, high = kMax;
    if (at(row, waits, high) < target) return std::nullopt;
    if (at(row, waits, low) >= target) return low;
    while (high / low > kNear) {
      const double middle = std::sqrt(low * high);
      (at(row, waits, middle) >= target ? high : low) = middle;
    }
    return high;
  }

  Scenario scenario_;
  int group_ = 1;
};

struct Kind {
  const char* name;
  Outer outer;
  int fragments;
  const char* codec;
};

// Returns the strategies to evaluate that the workload and the cluster allow.
std::vector<Strategy> asked(const Scenario& scenario, const Strategy& base, int group) {
  const Outer mean{Outer::Optimizer::kSgd, 1};
  const Outer nesterov{Outer::Optimizer::kNesterov, 0.7, 0.9, 0};
  const std::array kinds{Kind{"LocalSGD", mean, 1, ""},
                         Kind{"DiLoCo", nesterov, 1, ""},
                         Kind{"DiLoCo, int8", nesterov, 1, "int8"},
                         Kind{"streaming", nesterov, 4, ""},
                         Kind{"streaming", nesterov, 8, ""},
                         Kind{"streaming, int4", nesterov, 8, "int4"}};
  std::vector<Strategy> list;
  for (const Kind& kind : kinds) {
    for (const std::int64_t period : {30, 100, 500}) {
      Strategy strategy = base;
      strategy.name = kind.name;
      strategy.compression = {};
      strategy.compression.codec = kind.codec;
      LocalSgd& local = strategy.local_sgd;
      local.enabled = true;
      local.period = period;
      local.subgroup = group;
      if (group == 1) {
        set_fusion(strategy, {});
        strategy.fusion.rule = Fusion::Rule::kOne;
      }
      local.outer = kind.outer;
      local.fragments = kind.fragments;
      // Five steps: the longest delay without loss of accuracy in Douillard et al. 2025.
      constexpr std::int64_t kFew = 5;
      if (kind.fragments > 1) local.delay = std::min(kFew, period / kind.fragments - 1);
      if (!input::conflict_of(strategy, scenario.workload, scenario.cluster)) {
        list.push_back(std::move(strategy));
      }
    }
  }
  return list;
}

}  // namespace

Utilisation utilisation_of(const input::Document& document, double target) {
  const input::Document fitted = measure::calibrate_document(document).document;
  Utilisation answer;
  answer.scenario = input::parse_lone_scenario(fitted);
  answer.warnings = measure::warnings_of(fitted, answer.scenario);
  if (std::exchange(answer.scenario.cluster.cost_model, nullptr)) {
    answer.warnings.emplace_back(
        "measured times of collectives are of the cluster's own links: here latency and "
        "bandwidth decide");
  }
  answer.target = target;
  const Scenario& scenario = answer.scenario;
  if (scenario.cluster.ranks() == 1) {
    throw InputError(document.file + ": cluster: one rank has nobody to wait for");
  }
  if (scenario.workload.parallel.whole_job()) {
    throw InputError(document.file +
                     ": workload.parallel: averaging is not modelled yet together with it");
  }
  const Search search(scenario);
  answer.ranks = search.group();
  answer.groups = scenario.cluster.ranks() / search.group();
  answer.link = scenario.cluster.tiers.back();
  constexpr int kDecade = 6;  // points per decade
  for (int i = -2 * kDecade; i <= 3 * kDecade; ++i) {
    answer.bandwidths.push_back(std::pow(10.0, static_cast<double>(i) / kDecade) *
                                kGigabitPerSecond);
  }
  Strategy base = *find_strategy(scenario, scenario.baseline);
  base.local_sgd = {};
  std::vector<Strategy> strategies{base};
  strategies.front().name = "plain: " + base.name;
  for (Strategy& strategy : asked(scenario, base, search.group())) {
    strategies.push_back(std::move(strategy));
  }
  for (const Strategy& own : scenario.strategies) {
    const LocalSgd& local = own.local_sgd;
    if (local.enabled && !local.adaptive && local.outer.any() && local.subgroup == search.group()) {
      strategies.push_back(own);
    }
  }
  for (const Strategy& strategy : strategies) {
    answer.rows.push_back(search.row(strategy, target, answer.bandwidths));
  }
  return answer;
}

}  // namespace syncline::tune
