#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/strategy_option.h"
#include "cli/verbs.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/plan/planner.h"
#include "reports/format.h"
#include "reports/grid.h"

namespace syncline {
namespace {

struct PlanOptions {
  std::string file;
  std::string strategy;
};

std::string stream_name(const Op& op) {
  const StreamId stream = op.stream;
  if (std::holds_alternative<Wait>(op.work)) return "ticks";
  return stream == kComputeStream ? "compute" : "communication " + std::to_string(stream);
}

std::string waits_for(const Op& op) {
  std::string text;
  for (const OpId id : op.after) text += (text.empty() ? "" : ",") + std::to_string(id);
  constexpr std::size_t kLongest = 24;
  if (text.size() > kLongest) {
    text = std::to_string(op.after.front()) + ".." + std::to_string(op.after.back()) + " (" +
           std::to_string(op.after.size()) + ")";
  }
  if (!op.after_previous.empty()) {
    const OpId first = op.after_previous.front();
    text += (text.empty() ? "" : "; ") + std::string("last period's ") + std::to_string(first);
    if (op.after_previous.size() > 1) {
      text += ".. (" + std::to_string(op.after_previous.size()) + ")";
    }
  }
  return text.empty() ? "-" : text;
}

std::string amount(const Op& op, const Plan& plan) {
  if (const auto* collective = std::get_if<Collective>(&op.work)) {
    return bytes_text(static_cast<double>(collective->bytes()));
  }
  if (const auto* encode = std::get_if<Encode>(&op.work)) {
    return std::to_string(plan.buckets[static_cast<std::size_t>(encode->bucket)].kept) + " kept";
  }
  return seconds_text(seconds_of(op.work));
}

void print_plan(const Scenario& scenario, const Strategy& strategy) {
  const auto phases = training_phases(strategy, scenario.training);
  const auto same_tick =
      std::count_if(phases.begin(), phases.end(),
                    [](const TrainingPhase& phase) { return phase.point.tick_phase == 0; });
  for (const auto& phase : phases) {
    if (phase.point.tick_phase > 0) continue;  // the other moments of a cycle look alike
    const Plan plan = make_plan(scenario.workload, scenario.cluster, strategy, phase.point);
    std::cout << "\n"
              << strategy.name << " on " << scenario.cluster.name << ": "
              << plural(static_cast<std::size_t>(plan.ranks), "rank") << ", "
              << plural(static_cast<std::size_t>(plan.streams), "stream") << ", "
              << plural(plan.ops.size(), "operation") << ", "
              << plural(plan.buckets.size(), "bucket");
    if (plan.steps > 1) std::cout << ", one period of " << plan.steps << " steps";
    if (strategy.fusion.cycle > 0) {
      std::cout << ", at the first of " << kTickPhases << " moments of a cycle";
    }
    if (same_tick > 1) std::cout << "; " << phase.steps << " steps of the run are like this";
    std::cout << "\n\n";
    Grid grid{{{"op"}, {"stream", false}, {"what", false}, {"amount"}, {"after", false}}, {}};
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const Op& op = plan.ops[i];
      grid.lines.push_back(
          {{std::to_string(i), stream_name(op), describe(op, plan, scenario.workload),
            amount(op, plan), waits_for(op)},
           false});
    }
    std::cout << plain_grid(grid);
  }
}

int run(const PlanOptions& options) {
  const Document document = read_document(options.file);
  const Scenario scenario = parse_scenario(document);
  print_plan(scenario, chosen_strategy(scenario, options.strategy, options.file));
  return 0;
}

}  // namespace

VerbAction add_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  auto* verb =
      app.add_subcommand("plan", "Print the operations of a strategy without running them");
  verb->add_option("file", options->file, "the scenario (JSON); its sweep is ignored")->required();
  verb->add_option("--strategy", options->strategy, "which strategy; the first one if left out");
  return [options] { return run(*options); };
}

}  // namespace syncline
