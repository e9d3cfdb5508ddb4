#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/strategy_option.h"
#include "cli/verbs.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/measure/advice.h"
#include "core/measure/study.h"
#include "core/plan/planner.h"
#include "core/run/model_executor.h"
#include "reports/explanation.h"
#include "reports/format.h"

namespace syncline::cli {
namespace {

struct ExplainOptions {
  std::string file;
  std::string strategy;
};

// Changes that gain less are not worth a sentence.
constexpr double kLeastPercent = 0.5;
constexpr std::size_t kMostAdvice = 3;

// The strategy as it stands in the scenario, where its dialect and configuration are found.
const Json& written_in(const input::Document& document, const Strategy& strategy) {
  const Json& strategies = document.root.at("strategies");
  return *std::find_if(strategies.begin(), strategies.end(),
                       [&](const Json& item) { return item.at("name") == strategy.name; });
}

void explain_exchange(const measure::Priced& priced, const Cluster& cluster,
                      collective::PriceBook& book) {
  const measure::Metrics& metrics = priced.metrics;
  const measure::Bottleneck bottleneck = measure::bottleneck_of(priced, cluster, book);
  std::cout << "  traffic   " << reports::traffic_sentence(priced.plan) << "\n"
            << "  overlap   "
            << reports::overlap_sentence(priced.plan, metrics, bottleneck.communication()) << "\n"
            << "  bound by  " << reports::bottleneck_sentence(bottleneck) << "\n"
            << "  at best   " << reports::seconds_text(metrics.lower_bound)
            << " a step with this algorithm, whatever is fused\n";
  if (cluster.step_overhead() > 0) {
    std::cout << "  overhead  " << reports::seconds_text(cluster.step_overhead())
              << " per step on the host, for data-parallel execution\n";
  }
}

void explain(const Scenario& scenario, const Strategy& strategy, const Json& written) {
  const auto executor = run::make_model_executor({scenario.cluster, {}, scenario.seed});
  collective::PriceBook book(scenario.cluster);
  const measure::Priced priced = measure::price_strategy(scenario, strategy, *executor, book);
  const measure::Metrics& metrics = priced.metrics;

  std::cout << "\n" << strategy.name;
  if (!strategy.dialect.empty()) std::cout << " (" << strategy.dialect << ")";
  std::cout << ": " << reports::seconds_text(metrics.step_time) << " a step, "
            << reports::throughput_text(metrics.throughput) << " samples/s\n";
  if (scenario.cluster.ranks() == 1) {
    std::cout << "  one rank exchanges nothing\n";
    if (scenario.workload.operators.empty()) return;
  } else {
    explain_exchange(priced, scenario.cluster, book);
  }
  for (const auto& note : strategy.notes) std::cout << "  note      " << note << "\n";
  const auto advice = measure::advise(scenario, strategy, *executor, book, kLeastPercent, &written);
  if (advice.empty()) {
    std::cout << "  advice    no single change gains " << reports::share_text(kLeastPercent)
              << "\n";
  }
  for (std::size_t i = 0; i < std::min(kMostAdvice, advice.size()); ++i) {
    std::cout << (i == 0 ? "  advice    " : "            ") << advice[i].change << ": "
              << reports::share_text(advice[i].gain_percent) << " shorter, "
              << reports::seconds_text(advice[i].step_time)
              << (advice[i].changes_training ? "; changes the training" : "") << "\n";
  }
}

int run(const ExplainOptions& options) {
  const input::Document document = input::read_document(options.file);
  const Scenario scenario = input::parse_scenario(document);
  std::cout << scenario.name << ": " << scenario.workload.name << " on " << scenario.cluster.name
            << ", predicted by the model executor\n";
  if (!options.strategy.empty()) {
    const Strategy& chosen = chosen_strategy(scenario, options.strategy, options.file);
    explain(scenario, chosen, written_in(document, chosen));
    return 0;
  }
  for (const auto& strategy : scenario.strategies) {
    explain(scenario, strategy, written_in(document, strategy));
  }
  return 0;
}

}  // namespace

VerbAction add_explain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  auto* verb = app.add_subcommand(
      "explain", "Say in words what each strategy does here, and which changes would gain most");
  verb->add_option("file", options->file, "the scenario (JSON); its sweep is ignored")->required();
  verb->add_option("--strategy", options->strategy, "which strategy; all of them if left out");
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
