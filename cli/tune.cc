#include "cli/tune.h"
#include "cli/objective.h"
#include "cli/target.h"

#include <iostream>
#include <memory>
#include <utility>

#include "cli/command_line.h"
#include "cli/help.h"
#include "cli/predictors.h"
#include "cli/process.h"
#include "cli/verbs.h"
#include "core/base/error.h"
#include "core/run/jobs.h"
#include "formats/dialect/dialect.h"
#include "formats/dialect/write.h"
#include "formats/input/document.h"
#include "reports/chart/figure.h"
#include "reports/layouts_report.h"
#include "reports/text_plot.h"
#include "reports/tune_figures.h"
#include "reports/tune_report.h"
#include "reports/utilisation_report.h"
#include "reports/worth_report.h"
#include "reports/written.h"
#include "studies/layouts/layouts.h"
#include "studies/layouts/utilisation.h"
#include "studies/tune/thresholds.h"
#include "studies/tune/tuner.h"
#include "studies/tune/tuning.h"
#include "studies/worth/curves.h"

namespace syncline::cli {
namespace {

// How far the search goes, and by which executor.
tune::TuneOptions search_options(const TuneArguments& verb) {
  tune::TuneOptions options;
  options.executor = verb.executor;
  options.make_executor = predictor_named(verb.executor).make;
  constexpr std::size_t kTop = 5, kTopLayouts = 10;
  options.top = verb.top.value_or(verb.layouts ? kTopLayouts : kTop);
  constexpr std::size_t kEvaluatedAtMost = 3000;
  options.budget = verb.budget.value_or(kEvaluatedAtMost);
  if (!verb.budget) options.work = kEvaluatedAtMost * tune::kMostExact;
  options.confirm_work = 10000;  // some seconds
  if (verb.exhaustive) {
    options.method = tune::TuneOptions::Method::kExhaustive;
    options.budget = options.work = 0;
    options.confirm_work = 0;
  }
  options.parallel_map = run::over_processes(verb.jobs);
  options.interrupted = interrupted;
  options.take = verb.take;
  options.by_file = !verb.python.empty();
  return options;
}

// The strategy around which candidates are searched, and which they are compared with.
void start_from(const std::string& name, input::Document& document) {
  if (name.empty()) return;
  const std::string chosen =
      chosen_strategy(input::parse_scenario(document), name, document.file).name;
  document.root["baseline"] = chosen;
  if (document.root.contains("search")) document.root["search"]["base"] = chosen;
}

// How the Python file is used, and what it applies where that is not the choice.
void tell_applied(const std::string& file, const tune::Tuning& tuning, const tune::Ranked& best) {
  std::cerr << "syncline: " << reports::apply_usage(file, best.strategy) << "\n";
  const std::string instead = reports::applied_instead(file, tuning, best);
  if (!instead.empty()) std::cerr << "syncline: " << instead << "\n";
}

// By the model or by simulation.
int tune_steps(const TuneArguments& verb, const input::Document& document) {
  expect_writable({verb.svg, verb.csv, verb.python, verb.output.html});
  Progress progress("syncline tune");
  const bool simulated = verb.executor == "sim";
  tune::TuneOptions options = search_options(verb);
  if (!simulated) options.confirm = predictor_named("sim").make;
  options.progress = [&](std::size_t done, std::size_t wanted) { progress.update(done, wanted); };
  const dialect::Dialect* emit = verb.emit.empty() ? nullptr : dialect::find_dialect(verb.emit);
  const std::string& file = verb.objective.curves;
  const std::string text = file.empty() ? "" : read_text_file(file, "a CSV file");
  const auto quantity = file.empty() ? worth::Quantity::kAccuracy : worth::quantity_in(text);
  const auto curves =
      file.empty() ? std::vector<worth::Curve>{} : worth::curves_of(text, file, quantity);
  tune::Tuning tuning = tune::tune_document(document, options, simulated ? "" : "sim", emit);
  if (!file.empty()) worth::add_outcomes(curves, quantity, tuning);
  if (tuning.taken && !tuning.emitted && verb.python.empty()) {
    throw InputError("--take: no configuration of " + verb.emit + " expresses '" + verb.take +
                     "'; try --python FILE");
  }
  const tune::Tuned& tuned = tuning.tuned;
  const SideFile svg{verb.svg,
                     [&] { return reports::chart::svg_file(reports::size_figure(tuning)); }};
  const SideFile csv{verb.csv, [&] { return reports::curve_csv(tuned.curve); }};
  const tune::Ranked& best = verb.python.empty() ? tuned.winner() : tune::best_to_apply(tuning);
  const SideFile python{
      verb.python, [&] { return apply_file(tuning.scenario, best.strategy, tuning.fit_errors); }};
  answer_with({svg, csv, python}, reports::answer_of(tuning), verb.output);
  if (!verb.python.empty()) tell_applied(verb.python, tuning, best);
  return interrupted() ? kInterruptedExit : 0;
}

// Puts the best layout with the strategy that was held, as the framework's settings are pasted,
// beside the answer; where the framework cannot say them, why.
void add_pasted(const std::string& emit, const input::Document& document, tune::Layouts& layouts) {
  const Scenario scenario = tune::with_layout(document, layouts.ranking.front());
  const Strategy& strategy = scenario.strategies.front();
  const dialect::Dialect& dialect = *dialect::find_dialect(emit);
  try {
    const auto written =
        dialect::write_config(dialect, strategy, scenario.workload, scenario.cluster);
    if (written->exact) {
      layouts.dialect = emit;
      layouts.pasted = dialect::config_text(dialect, written->config);
    } else {
      layouts.warnings.push_back(reports::nearest_text(strategy, emit, *written));
    }
  } catch (const InputError& refusal) {
    layouts.warnings.emplace_back(refusal.what());
  }
}

// With one strategy, the baseline.
int tune_by_layout(const TuneArguments& verb, const input::Document& document) {
  const bool other = !verb.live.machine.empty() || !verb.python.empty() || !verb.take.empty() ||
                     !verb.svg.empty() || !verb.csv.empty() || verb.objective.asked();
  if (other) {
    throw InputError(
        "--layouts searches layouts for one strategy: remove --live, --objective, --python, "
        "--take, --svg and --csv");
  }
  expect_writable({verb.output.html});
  Progress progress("syncline tune");
  tune::TuneOptions options = search_options(verb);
  options.work = 0;
  options.progress = [&](std::size_t done, std::size_t wanted) { progress.update(done, wanted); };
  tune::Layouts layouts = tune::tune_layouts(document, verb.batches, options);
  if (!verb.emit.empty() && !layouts.ranking.empty()) add_pasted(verb.emit, document, layouts);
  answer_with({}, reports::answer_of(layouts), verb.output);
  return interrupted() ? kInterruptedExit : 0;
}

// Each strategy that has a curve is searched by itself: nothing that leaves its training as it is
// changes its steps to the target.
int tune_to_target(const TuneArguments& verb, const input::Document& document,
                   worth::Objective objective) {
  if (!verb.live.machine.empty() || !verb.csv.empty()) {
    throw InputError("--live and --csv are not available with --objective " +
                     verb.objective.objective);
  }
  if (!verb.emit.empty() && verb.python.empty()) {
    throw InputError("--objective " + verb.objective.objective +
                     " writes a Python file only: use --emit pytorch --python FILE");
  }
  expect_writable({verb.svg, verb.output.html, verb.python});
  const worth::Worth worth =
      worth::worth_of(document, std::move(objective), verb.executor,
                      predictor_named(verb.executor).make, search_options(verb));
  const SideFile svg{verb.svg,
                     [&] { return reports::chart::svg_file(reports::worth_figure(worth)); }};
  answer_with({svg}, reports::answer_of(worth, "tune"), verb.output);
  if (!verb.python.empty() && !worth.rows.empty()) {
    write_apply_file(verb.python, worth.scenario, worth.rows.front().strategy, worth.fit_errors);
  }
  return interrupted() ? kInterruptedExit : 0;
}

// What bandwidth between the groups that takes.
int tune_to_utilisation(const TuneArguments& verb, const input::Document& document) {
  const bool other = !verb.live.machine.empty() || !verb.emit.empty() || !verb.csv.empty() ||
                     verb.layouts || verb.objective.asked() || verb.executor != "model";
  if (other) {
    throw InputError(
        "--utilisation needs the model executor: remove --live, --objective, --layouts, --emit, "
        "--csv and --executor sim");
  }
  expect_writable({verb.svg, verb.output.html});
  const tune::Utilisation found = tune::utilisation_of(document, *verb.utilisation);
  const SideFile svg{verb.svg,
                     [&] { return reports::chart::svg_file(reports::utilisation_figure(found)); }};
  answer_with({svg}, reports::answer_of(found), verb.output);
  return 0;
}

int run(const TuneArguments& verb, const std::string& command) {
  if (!verb.batches.empty() && !verb.layouts) {
    throw InputError("--micro-batch-sizes needs --layouts");
  }
  ObjectiveOptions asked = verb.objective;
  // Of a step, curves tell where the trainings of its rows end.
  if (!asked.asked() && verb.live.machine.empty()) asked.curves.clear();
  auto objective = objective_of(asked);
  check_python(verb.python, verb.emit, "--emit");
  if (!verb.python.empty() && !verb.live.machine.empty()) {
    throw InputError("--python is not available with --live");
  }
  if (!verb.take.empty() && (objective || !verb.live.machine.empty() || verb.emit.empty())) {
    throw InputError("--take needs --emit, and is not available with --live or --objective");
  }
  const bool live_ranks = !verb.live.machine.empty() && verb.live.machine != "emulated";
  input::Document document = live_ranks ? read_on_ranks(verb.scenario) : read(verb.scenario);
  start_from(verb.strategy, document);
  catch_interrupts(verb.live.machine.empty() ? kInterruptPatience : 0);
  if (verb.utilisation) return tune_to_utilisation(verb, document);
  if (verb.layouts) return tune_by_layout(verb, document);
  if (objective) return tune_to_target(verb, document, std::move(*objective));
  if (!verb.live.machine.empty()) return tune_live(verb, document, command);
  return tune_steps(verb, document);
}

void add_tune_options(CLI::App& verb, TuneArguments& options) {
  add_scenario(verb, options.scenario, "its sweep is ignored");
  verb.add_option("--strategy", options.strategy,
                  "baseline of the search (default: the scenario's)");
  verb.add_option("--emit", options.emit, "write the best configuration of this framework")
      ->transform(one_of_words(dialect::written_dialect_names()));
  add_file(verb, "--python", options.python,
           "write a Python file that applies the best (--emit pytorch)");
  verb.add_option("--take", options.take,
                  "row of the first table to write, with --emit (default: the best)")
      ->group("Output");
  add_format(verb, options.output);
  add_verbose(verb, options.output);
  add_html(verb, options.output);
  add_file(verb, "--svg", options.svg, "plot step time over bucket size")->group("Output");
  add_file(verb, "--csv", options.csv, "write step time over bucket size as CSV")->group("Output");
  add_executor(verb, options.executor, "predict candidates with");
  verb.add_option("--top", options.top, "rows to print (default 5, with --layouts 10)")
      ->check(CLI::Range(1, 1000))
      ->group("Output");
  verb.add_option("--budget", options.budget,
                  "most candidates (default 3000, fewer for large models; with --live 12)")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.starts_with('-') ? "found " + text + ", expected 0 or more" : "";
          },
          ""));
  verb.add_flag("--exhaustive", options.exhaustive,
                "evaluate every candidate, after the search with --live gloo");
  verb.add_flag("--layouts", options.layouts,
                "search layouts (tensor, pipeline, context, expert) instead");
  verb.add_option("--utilisation", options.utilisation,
                  "find the bandwidth between groups for this utilisation, such as 0.95")
      ->check(CLI::Range(0.01, 0.9999));
  verb.add_option("--micro-batch-sizes", options.batches,
                  "more samples per micro-batch to try, such as 1,2,4, with --layouts")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  add_jobs(verb, options.jobs, "processes that share the search");
  put_in_group(verb, "Search",
               {"--budget", "--exhaustive", "--utilisation", "--micro-batch-sizes", "--jobs"});
  add_objective(verb, options.objective);
  add_live_options(verb, options.live);
}

}  // namespace

VerbAction add_tune(CLI::App& app) {
  auto options = std::make_shared<TuneArguments>();
  auto* verb =
      app.add_subcommand("tune", "Find the fastest strategy, and write it for a framework");
  add_tune_options(*verb, *options);
  return [options, verb] { return run(*options, command_line(*verb)); };
}

}  // namespace syncline::cli
