#include "core/measure/tracing.h"

#include <algorithm>
#include <utility>

#include "core/measure/company.h"
#include "core/measure/row_evaluator.h"

namespace syncline::measure {
namespace {

bool is_one_of(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

void show_ranks(const std::vector<int>& ranks, run::Timeline& timeline) {
  auto& spans = timeline.spans;
  const bool alike = std::all_of(spans.begin(), spans.end(), [&](const run::Span& span) {
    return span.rank == spans.front().rank;
  });
  std::vector<run::Span> shown;
  for (const auto& span : spans) {
    if (!alike && is_one_of(ranks, span.rank)) shown.push_back(span);
    for (const int rank : alike ? ranks : std::vector<int>{}) {
      shown.push_back(span);
      shown.back().rank = rank;
    }
  }
  spans = std::move(shown);
}

Report chosen_timelines(const input::Document& document, const TraceChoice& choice,
                        const ExecutorFactory& factory, const Report& report) {
  const Scenario scenario =
      at_point(with_fitted(without_sweep(document), report.fitted, choice.point), choice.point);
  const auto executor =
      factory({scenario.cluster, scenario.simulation, scenario.seed, choice.ranks});
  collective::CostCache cache(scenario.cluster);
  Report chosen;
  chosen.scenario = report.scenario;
  chosen.executor = report.executor;
  chosen.fitted = report.fitted;
  chosen.traced_workload = scenario.workload;
  for (const auto& name : choice.strategies) {
    Evaluated evaluated =
        evaluate_strategy(scenario, *find_strategy(scenario, name), *executor, cache);
    if (!choice.ranks.empty()) show_ranks(choice.ranks, evaluated.timeline);
    auto links = hottest_links(evaluated.plan, scenario.cluster, cache);
    chosen.traced.push_back(
        {name, std::move(evaluated.plan), std::move(evaluated.timeline), std::move(links)});
  }
  return chosen;
}

}  // namespace syncline::measure
