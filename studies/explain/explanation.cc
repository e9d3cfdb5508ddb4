#include "studies/explain/explanation.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/base/error.h"
#include "core/executor.h"
#include "core/metrics/bound.h"
#include "core/run/stragglers.h"
#include "formats/input/document.h"
#include "studies/rows/fabric_jobs.h"
#include "studies/rows/fitting.h"
#include "studies/rows/row_evaluator.h"
#include "studies/warnings/warnings.h"

namespace syncline::measure {
namespace {

constexpr std::size_t kMaxAdvice = 3;

// Keeps the best few. Only one may change the training: the others would be alternatives to it.
void keep_few(std::vector<Advice>& advice) {
  bool changed = false;
  std::erase_if(advice, [&](const Advice& one) {
    return one.training == TrainingChange::kChanged && std::exchange(changed, true);
  });
  advice.resize(std::min(kMaxAdvice, advice.size()));
}

Bottleneck of_strategy(const Scenario& scenario, const std::string& name) {
  const auto executor = run::make_model_executor({scenario.cluster, {}, scenario.seed});
  collective::CostCache cache(scenario.cluster);
  const Strategy& strategy = *find_strategy(scenario, name);
  return bottleneck_of(evaluate_strategy(scenario, strategy, *executor, cache), scenario, cache);
}

// Returns a whole job with twice the nodes in the same layout; nullopt if the document's strategies
// do not allow that.
std::optional<Scenario> doubled(const input::Document& document, const Scenario& scenario) {
  if (!scenario.workload.parallel.whole_job() || !scenario.others.empty()) return std::nullopt;
  try {
    return at_point(without_sweep(document), {{"cluster.nodes", Json(2 * scenario.cluster.nodes)}});
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// Explains a strategy on links without other jobs.
Explained strategy_explained(const input::Document& document, const Scenario& scenario,
                             std::size_t which,
                             const std::shared_ptr<collective::CostCache>& shared,
                             Uncertainties& uncertainties) {
  const auto executor = run::make_cached_executor(shared);
  collective::CostCache& cache = *shared;
  const bool alone = scenario.cluster.ranks() == 1;
  Explained one;
  one.strategy = scenario.strategies[which];
  one.evaluated = evaluate_strategy(scenario, one.strategy, *executor, cache);
  Metrics& metrics = one.evaluated.metrics;
  metrics.lower_bound = lower_bound_of(scenario, one.strategy, metrics.step_time, cache);
  const Sensitivity today = uncertainties.sensitivity(one.strategy);
  one.interval = interval_of(metrics.step_time, today);
  if (!alone) one.bottleneck = bottleneck_of(one.evaluated, scenario, cache);
  one.hot_link = find_hot_link(one.evaluated, scenario, one.strategy, cache);
  one.links = switch_loads(one.evaluated, scenario.cluster, cache);
  one.advised = !alone || !scenario.workload.operators->empty();
  if (!one.advised) return one;
  one.advice = advise(scenario, one.strategy, *executor, cache, kMinAdvicePercent,
                      &document.root.at("strategies").at(which));
  keep_few(one.advice);
  for (Advice& advice : one.advice) {
    advice.sensitivity = uncertainties.sensitivity(advice.strategy);
    advice.step = interval_of(advice.metrics.step_time, advice.sensitivity);
    advice.gain = uncertainties.ratio(advice.speedup, {one.strategy, today},
                                      {advice.strategy, advice.sensitivity});
  }
  return one;
}

// Returns a plan's step with instant collectives of buckets and, if `sends`, between stages.
Seconds step_without(plan::Plan plan, const Scenario& scenario, bool sends) {
  constexpr int kPeriods = 3;
  for (plan::Op& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr || (collective->bucket < 0 && !sends)) continue;
    op.work = plan::Busy{};
  }
  const auto executor = run::make_model_executor({scenario.cluster, {}, scenario.seed});
  return step_time_of(plan, executor->run(plan, {}, kPeriods).timeline, 1);
}

// Divides a stage's waits into gradient sums, sends and bubble of the pipeline.
void add_pipeline(const plan::Plan& plan, const Scenario& scenario, Seconds& exposed,
                  Bottleneck& bottleneck) {
  const Seconds without_sums = step_without(plan, scenario, false);
  const Seconds without_sends = step_without(plan, scenario, true);
  const Seconds sums = std::clamp(bottleneck.step - without_sums, 0.0, exposed);
  bottleneck.sends = std::clamp(without_sums - without_sends, 0.0, exposed - sums);
  bottleneck.bubble = exposed - sums - bottleneck.sends;
  exposed = sums;
}

// Moves collectives out of the model's time; the workload's are totals over all stages.
void add_inside(const Workload& workload, Bottleneck& bottleneck) {
  const Parallel& parallel = workload.parallel;
  const double passes = static_cast<double>(workload.micro_batches) / parallel.pipeline;
  bottleneck.tensor = passes * (parallel.forward.tensor + parallel.backward.tensor);
  bottleneck.context = passes * (parallel.forward.context + parallel.backward.context);
  bottleneck.expert = passes * (parallel.forward.expert + parallel.backward.expert);
  bottleneck.compute -= bottleneck.tensor + bottleneck.context + bottleneck.expert;
}

}  // namespace

Explanation explain_strategies(const input::Document& document, Scenario scenario,
                               const std::vector<std::string>& names, const FitErrors& fit_errors) {
  const auto cache = std::make_shared<collective::CostCache>(scenario.cluster);
  Uncertainties uncertainties(scenario, fit_errors);
  Explanation explanation;
  const auto twice = doubled(document, scenario);
  Scenario asked = scenario;
  const std::unordered_set<std::string_view> wanted(names.begin(), names.end());
  std::erase_if(asked.strategies,
                [&](const Strategy& strategy) { return !wanted.contains(strategy.name); });
  explanation.warnings = warnings_of(document, asked);
  for (std::size_t i = 0; i < scenario.strategies.size(); ++i) {
    if (!wanted.contains(scenario.strategies[i].name)) continue;
    if (scenario.others.empty()) {
      explanation.strategies.push_back(
          strategy_explained(document, scenario, i, cache, uncertainties));
    } else {
      const Together all = together(scenario, scenario.strategies[i]);
      Scenario here = scenario;
      here.cluster = all.cluster;
      Uncertainties theirs(here, fit_errors);
      explanation.strategies.push_back(strategy_explained(document, here, i, all.cache, theirs));
    }
    if (twice) {
      explanation.strategies.back().doubled = of_strategy(*twice, scenario.strategies[i].name);
    }
  }
  explanation.shortage = memory_shortage(document, scenario).words();
  explanation.scenario = std::move(scenario);
  return explanation;
}

std::string_view Bottleneck::what() const {
  constexpr double kLittle = 0.1;
  const std::array<std::pair<Seconds, std::string_view>, 7> causes{
      {{communication(), start_up > transfer ? "latency" : "bandwidth"},
       {stragglers, "stragglers"},
       {comm_overhead, "handling gradients"},
       {bubble + sends, "bubble"},
       {tensor, "tensor parallelism"},
       {context, "context parallelism"},
       {expert, "expert parallelism"}}};
  Seconds all = 0;
  for (const auto& [seconds, word] : causes) all += seconds;
  if (all < kLittle * step) return "computation";
  return std::ranges::max_element(causes, {}, &std::pair<Seconds, std::string_view>::first)->second;
}

Bottleneck bottleneck_of(const Evaluated& evaluated, const Scenario& scenario,
                         collective::CostCache& cache) {
  const plan::Plan& plan = evaluated.plan;
  const Cluster& cluster = scenario.cluster;
  Bottleneck bottleneck;
  bottleneck.step = evaluated.metrics.step_time;
  bottleneck.compute = evaluated.metrics.compute / run::expected_slowest(cluster.jitter, plan);
  bottleneck.stragglers = evaluated.metrics.compute - bottleneck.compute;
  bottleneck.overhead =
      std::min(plan::time_before_forward(plan) / plan.steps, evaluated.metrics.comm_overhead);
  bottleneck.comm_overhead = evaluated.metrics.comm_overhead - bottleneck.overhead;

  Seconds all = 0, transfer = 0;
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr || collective->bucket < 0) continue;
    all += cache.time(*collective);
    transfer += cache.cost(*collective).seconds_per_byte * static_cast<double>(collective->bytes());
  }
  Seconds exposed = evaluated.metrics.exposed;
  if (plan.roles > 1) add_pipeline(plan, scenario, exposed, bottleneck);
  add_inside(scenario.workload, bottleneck);
  bottleneck.start_up_share = all > 0 ? (all - transfer) / all : 0;
  bottleneck.start_up = exposed * bottleneck.start_up_share;
  bottleneck.transfer = exposed - bottleneck.start_up;
  return bottleneck;
}

}  // namespace syncline::measure
