#include "core/measure/bottleneck.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/run/model_executor.h"
#include "core/run/stragglers.h"

namespace syncline::measure {
namespace {

// A plan's step in which collectives take nothing, those of buckets or those between stages too.
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

// Of what a stage waits for, its part of the pipeline's.
void add_pipeline(const plan::Plan& plan, const Scenario& scenario, Seconds& exposed,
                  Bottleneck& bottleneck) {
  const Seconds without_sums = step_without(plan, scenario, false);
  const Seconds without_sends = step_without(plan, scenario, true);
  const Seconds sums = std::clamp(bottleneck.step - without_sums, 0.0, exposed);
  bottleneck.sends = std::clamp(without_sums - without_sends, 0.0, exposed - sums);
  bottleneck.bubble = exposed - sums - bottleneck.sends;
  exposed = sums;
}

// What is in the model's own time: the workload's is of all stages together.
void add_inside(const Workload& workload, Bottleneck& bottleneck) {
  const Parallel& parallel = workload.parallel;
  const double passes = static_cast<double>(workload.micro_batches) / parallel.pipeline;
  bottleneck.tensor = passes * (parallel.forward.tensor + parallel.backward.tensor);
  bottleneck.context = passes * (parallel.forward.context + parallel.backward.context);
  bottleneck.expert = passes * (parallel.forward.expert + parallel.backward.expert);
  bottleneck.compute -= bottleneck.tensor + bottleneck.context + bottleneck.expert;
}

}  // namespace

std::string_view Bottleneck::what() const {
  constexpr double kLittle = 0.1;
  const std::array<std::pair<Seconds, std::string_view>, 7> causes{
      {{communication(), start_up > transfer ? "latency" : "bandwidth"},
       {stragglers, "stragglers"},
       {handling, "handling gradients"},
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
      std::min(plan::ahead_of_forward(plan) / plan.steps, evaluated.metrics.handling);
  bottleneck.handling = evaluated.metrics.handling - bottleneck.overhead;

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
