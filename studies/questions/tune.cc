#include "studies/questions/tune.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/run/jobs.h"
#include "formats/dialect/dialect.h"
#include "formats/dialect/write.h"
#include "formats/text/files.h"
#include "studies/questions/predictors.h"
#include "studies/questions/strategies.h"
#include "studies/questions/target.h"
#include "studies/tune/thresholds.h"
#include "studies/tune/tuner.h"
#include "studies/worth/curves.h"

namespace syncline::questions {
namespace {

// Throws InputError with the given options that exclude `option`.
void refuse_beside(const std::string& option, const Given& others) {
  std::string given;
  for (const auto& [name, there] : others) {
    if (there) given += (given.empty() ? "" : ", ") + std::string(name);
  }
  if (!given.empty()) throw InputError(option + ": remove " + given);
}

Given and_own(Given others, const Given& own) {
  others.insert(others.end(), own.begin(), own.end());
  return others;
}

// Adds the best layout as settings of the framework, or the reason why it cannot express them.
void add_pasted(const std::string& emit, const input::Document& document, tune::Layouts& layouts) {
  const Scenario scenario = tune::with_layout(document, layouts.ranking.front());
  const Strategy& strategy = scenario.strategies.front();
  const dialect::Dialect& dialect = *dialect::find_dialect(emit);
  try {
    const auto written =
        dialect::write_config(dialect, strategy, scenario.workload, scenario.cluster);
    if (written->exact) {
      layouts.dialect = emit;
      layouts.pasted = dialect::config_text(dialect, written->config, scenario.workload.parallel);
    } else {
      layouts.warnings.push_back(nearest_text(strategy, emit, *written));
    }
  } catch (const InputError& refusal) {
    layouts.warnings.emplace_back(refusal.what());
  }
}

Arguments search_arguments(Tune& question) {
  const std::string group = "Search";
  return {{.name = "top",
           .value = &question.top,
           .help = "rows to print (default 5, with --layouts 10)",
           .low = 1,
           .high = 1000,
           .group = "Output"},
          {.name = "budget",
           .value = &question.budget,
           .help = "most candidates (default 3000, fewer for large models; with --live 12)",
           .low = 0,
           .high = kUnlimited,
           .group = group},
          {.name = "exhaustive",
           .value = &question.exhaustive,
           .help = "evaluate every candidate, after the search with --live gloo",
           .group = group},
          {.name = "layouts",
           .value = &question.choice.layouts,
           .help = "search layouts (tensor, pipeline, context, expert) instead"},
          {.name = "micro-batches",
           .value = &question.choice.micro_batches,
           .help = "search micro-batches of the same step, also with --layouts",
           .group = group},
          {.name = "checkpointing",
           .value = &question.choice.checkpointing,
           .help = "search the recomputation, also with --layouts",
           .group = group},
          {.name = "utilisation",
           .value = &question.utilisation,
           .help = "find the bandwidth between groups for this utilisation, such as 0.95",
           .low = 0.01,
           .high = 0.9999,
           .group = group},
          {.name = "micro-batch-sizes",
           .value = &question.choice.batches,
           .help = "more samples per micro-batch to try, such as 1,2,4, with --layouts",
           .low = 1,
           .high = 1 << 20,
           .group = group},
          {.name = "jobs",
           .value = &question.jobs,
           .help = "processes that share the search",
           .low = 1,
           .high = 4096,
           .shown = "one per core",
           .group = group}};
}

}  // namespace

Arguments arguments_of(Tune& question) {
  Arguments arguments{{.name = "strategy",
                       .value = &question.strategy,
                       .help = "baseline of the search (default: the scenario's)"},
                      {.name = "emit",
                       .value = &question.emit,
                       .help = "write the best configuration of this framework",
                       .words = dialect::written_dialect_names()},
                      {.name = "take",
                       .value = &question.take,
                       .help = "row of the first table to write, with --emit (default: the best)",
                       .group = "Output"},
                      executor_argument(question.executor, "predict candidates with")};
  for (Argument& argument : search_arguments(question)) arguments.push_back(std::move(argument));
  add_arguments(question.objective, arguments);
  return arguments;
}

void expect_fitting(const Tune& question, const Given& own) {
  const bool aimed = question.objective.has_target();
  const bool job = question.choice.any();  // is searched, for one strategy
  if (!question.choice.batches.empty() && !job) {
    throw InputError("--micro-batch-sizes needs --layouts");
  }
  if (!question.take.empty() && (aimed || question.emit.empty())) {
    throw InputError("--take needs --emit, and is not available with --live or --objective");
  }
  if (question.utilisation) {
    refuse_beside("--utilisation answers by the model alone",
                  and_own({{"--emit", !question.emit.empty()},
                           {"--layouts, --micro-batches or --checkpointing", job},
                           {"--objective", aimed},
                           {"--executor sim", question.executor != "model"},
                           {"--top", question.top.has_value()},
                           {"--budget", question.budget.has_value()},
                           {"--exhaustive", question.exhaustive}},
                          own));
  } else if (job) {
    refuse_beside("--layouts, --micro-batches and --checkpointing search for one strategy",
                  and_own({{"--objective", aimed}, {"--take", !question.take.empty()}}, own));
  }
  // Curves also give the final values of a search's trainings, but not on machines.
  ObjectiveOptions objective = question.objective;
  const bool live =
      std::ranges::find(own, std::pair<std::string_view, bool>("--live", true)) != own.end();
  if (!aimed && !live) objective.curves.clear();
  expect_whole(objective);
}

void set_baseline(const Tune& question, input::Document& document) {
  if (question.strategy.empty()) return;
  const std::string chosen =
      chosen_strategy(input::parse_scenario(document), question.strategy, document.file).name;
  document.root["baseline"] = chosen;
  if (document.root.contains("search")) document.root["search"]["base"] = chosen;
}

tune::TuneOptions search_of(const Tune& question) {
  tune::TuneOptions options;
  options.executor = question.executor;
  options.make_executor = predictor_named(question.executor).make;
  constexpr std::size_t kTop = 5, kTopLayouts = 10;
  options.top = question.top.value_or(question.choice.any() ? kTopLayouts : kTop);
  constexpr std::size_t kEvaluatedAtMost = 3000;
  options.budget = question.budget.value_or(kEvaluatedAtMost);
  if (!question.budget) options.work = kEvaluatedAtMost * tune::kMaxExact;
  options.confirm_work = 10000;  // some seconds
  if (question.exhaustive) {
    options.method = tune::TuneOptions::Method::kExhaustive;
    options.budget = options.work = 0;
    options.confirm_work = 0;
  }
  options.parallel_map = run::over_processes(question.jobs);
  options.take = question.take;
  return options;
}

tune::Tuning steps_of(const Tune& question, const input::Document& document,
                      tune::TuneOptions options) {
  const bool simulated = question.executor == "sim";
  if (!simulated) options.confirm = predictor_named("sim").make;
  const std::string& file = question.objective.curves;
  const std::string text = file.empty() ? "" : read_text_file(file, "a CSV file");
  const auto quantity = file.empty() ? worth::Quantity::kAccuracy : worth::find_quantity(text);
  const auto curves =
      file.empty() ? std::vector<worth::Curve>{} : worth::curves_of(text, file, quantity);
  tune::Tuning tuning =
      tune::tune_document(document, options, simulated ? "" : "sim",
                          question.emit.empty() ? nullptr : dialect::find_dialect(question.emit));
  if (!file.empty()) worth::add_outcomes(curves, quantity, tuning);
  return tuning;
}

tune::Layouts layouts_of(const Tune& question, const input::Document& document,
                         tune::TuneOptions options) {
  options.work = 0;
  tune::Layouts layouts = tune::tune_layouts(document, question.choice, options);
  if (!question.emit.empty() && !layouts.ranking.empty()) {
    add_pasted(question.emit, document, layouts);
  }
  return layouts;
}

tune::Utilisation utilisation_of(const Tune& question, const input::Document& document) {
  return tune::utilisation_of(document, *question.utilisation);
}

worth::Worth worth_of(const Tune& question, const input::Document& document,
                      const tune::TuneOptions& options) {
  return worth::worth_of(document, *objective_of(question.objective), question.executor,
                         predictor_named(question.executor).make, options);
}

}  // namespace syncline::questions
