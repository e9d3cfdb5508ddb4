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

namespace syncline::cli {
namespace {

struct PlanOptions {
  std::string file;
  std::string strategy;
};

std::string stream_name(const plan::Op& op) {
  const plan::StreamId stream = op.stream;
  if (std::holds_alternative<plan::Wait>(op.work)) return "ticks";
  return stream == plan::kComputeStream ? "compute" : "communication " + std::to_string(stream);
}

std::string waits_for(const plan::Op& op) {
  std::string text;
  for (const plan::OpId id : op.after) text += (text.empty() ? "" : ",") + std::to_string(id);
  constexpr std::size_t kLongest = 24;
  if (text.size() > kLongest) {
    text = std::to_string(op.after.front()) + ".." + std::to_string(op.after.back()) + " (" +
           std::to_string(op.after.size()) + ")";
  }
  if (!op.after_previous.empty()) {
    const plan::OpId first = op.after_previous.front();
    text += (text.empty() ? "" : "; ") + std::string("last period's ") + std::to_string(first);
    if (op.after_previous.size() > 1) {
      text += ".. (" + std::to_string(op.after_previous.size()) + ")";
    }
  }
  return text.empty() ? "-" : text;
}

std::string amount(const plan::Op& op, const plan::Plan& plan) {
  if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
    return reports::bytes_text(static_cast<double>(collective->bytes()));
  }
  if (const auto* encode = std::get_if<plan::Encode>(&op.work)) {
    return std::to_string(plan.buckets[static_cast<std::size_t>(encode->bucket)].kept) + " kept";
  }
  return reports::seconds_text(plan::seconds_of(op.work));
}

void print_plan(const Scenario& scenario, const Strategy& strategy) {
  const auto phases = plan::training_phases(strategy, scenario.training);
  const auto same_tick =
      std::count_if(phases.begin(), phases.end(),
                    [](const plan::TrainingPhase& phase) { return phase.point.tick_phase == 0; });
  for (const auto& phase : phases) {
    if (phase.point.tick_phase > 0) continue;  // the other moments of a cycle look alike
    const plan::Plan plan =
        plan::make_plan(scenario.workload, scenario.cluster, strategy, phase.point);
    std::cout << "\n"
              << strategy.name << " on " << scenario.cluster.name << ": "
              << reports::plural(static_cast<std::size_t>(plan.ranks), "rank") << ", "
              << reports::plural(static_cast<std::size_t>(plan.streams), "stream") << ", "
              << reports::plural(plan.ops.size(), "operation") << ", "
              << reports::plural(plan.buckets.size(), "bucket");
    if (plan.steps > 1) std::cout << ", one period of " << plan.steps << " steps";
    if (strategy.fusion.cycle > 0) {
      std::cout << ", at the first of " << plan::kTickPhases << " moments of a cycle";
    }
    if (same_tick > 1) std::cout << "; " << phase.steps << " steps of the run are like this";
    std::cout << "\n\n";
    reports::Grid grid{{{"op"}, {"stream", false}, {"what", false}, {"amount"}, {"after", false}},
                       {}};
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const plan::Op& op = plan.ops[i];
      grid.lines.push_back(
          {{std::to_string(i), stream_name(op), plan::describe(op, plan, scenario.workload),
            amount(op, plan), waits_for(op)},
           false});
    }
    std::cout << reports::plain_grid(grid);
  }
}

int run(const PlanOptions& options) {
  const input::Document document = input::read_document(options.file);
  const Scenario scenario = input::parse_scenario(document);
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

}  // namespace syncline::cli
