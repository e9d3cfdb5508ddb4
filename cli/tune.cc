#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/apply_file.h"
#include "cli/command_line.h"
#include "cli/cost.h"
#include "cli/executors.h"
#include "cli/exit.h"
#include "cli/files.h"
#include "cli/objective.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/scenario_option.h"
#include "cli/tune_live.h"
#include "cli/verbs.h"
#include "core/dialect/pytorch_apply.h"
#include "core/error.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/tune/tuning.h"
#include "reports/chart/svg.h"
#include "reports/curve.h"
#include "reports/figures.h"
#include "reports/format.h"
#include "reports/tune_report.h"
#include "reports/worth_report.h"

namespace syncline::cli {
namespace {

struct TuneVerbOptions {
  ScenarioOption scenario;
  std::string strategy;
  std::string emit;
  std::string python;
  OutputFormat format;
  std::string svg;
  std::string html;
  std::string csv;
  std::string executor = "model";
  std::size_t top = 5;
  std::optional<std::size_t> budget;
  bool exhaustive = false;
  int jobs = 1;
  LiveVerbOptions live;
  ObjectiveOptions objective;
};

int run_live(const TuneVerbOptions& verb, const input::Document& document,
             const std::string& command) {
  LiveVerbOptions live = verb.live;
  live.exhaustive = verb.exhaustive;
  if (verb.budget) live.budget = *verb.budget;
  live.emit = verb.emit;
  live.format = verb.format;
  live.html = verb.html;
  live.command = command;
  return tune_live_verb(live, document);
}

// The best of what was found that the Python file can carry out; the choice itself where nothing
// is.
const tune::Ranked& best_to_apply(const tune::Tuning& tuning) {
  const tune::Tuned& tuned = tuning.tuned;
  std::vector<const tune::Ranked*> found{&tuned.choice};
  for (const auto& ranked : tuned.ranking) found.push_back(&ranked);
  for (const auto& [kind, ranked] : tuned.best_of_kind) found.push_back(&ranked);
  for (const auto* best : {&tuned.best_explicit, &tuned.best_threshold, &tuned.best_as_before}) {
    if (best->has_value()) found.push_back(&**best);
  }
  found.push_back(&tuned.baseline);
  std::erase_if(found, [&](const tune::Ranked* ranked) {
    return !dialect::apply_obstacle(ranked->strategy, tuning.scenario.workload,
                                    tuning.scenario.cluster)
                .empty();
  });
  if (found.empty() || found.front() == &tuned.choice) return tuned.choice;
  return **std::min_element(found.begin(), found.end(), [](const auto* a, const auto* b) {
    return a->metrics.step_time < b->metrics.step_time;
  });
}

// How the Python file is used, and what it applies where that is not the choice.
void tell_applied(const std::string& file, const tune::Tuning& tuning) {
  if (file.empty()) return;
  const tune::Ranked& best = best_to_apply(tuning);
  std::cerr << "syncline: " << python_usage(file, best.strategy) << "\n";
  if (&best == &tuning.tuned.choice) return;
  std::cerr << "syncline: " << file << " holds '" << best.strategy.name << "' ("
            << reports::seconds_text(best.metrics.step_time) << " a step): the best, '"
            << tuning.tuned.choice.strategy.name << "', cannot be applied by a Python file, as "
            << dialect::apply_obstacle(tuning.tuned.choice.strategy, tuning.scenario.workload,
                                       tuning.scenario.cluster)
            << "\n";
}

// The strategy around which candidates are searched, and which they are compared with.
void start_from(const std::string& name, input::Document& document) {
  if (name.empty()) return;
  const std::string chosen =
      chosen_strategy(input::parse_scenario(document), name, document.file).name;
  document.root["baseline"] = chosen;
  if (document.root.contains("search")) document.root["search"]["base"] = chosen;
}

// How far the search goes, and by which executor.
tune::TuneOptions search_options(const TuneVerbOptions& verb) {
  tune::TuneOptions options;
  options.executor = verb.executor;
  options.make_executor = predictor_named(verb.executor).make;
  options.top = verb.top;
  constexpr std::size_t kPricedAtMost = 3000;
  options.budget = verb.budget.value_or(kPricedAtMost);
  if (!verb.budget) options.work = kPricedAtMost * tune::kMostExact;
  options.confirm_work = 10000;  // some seconds
  if (verb.exhaustive) {
    options.method = tune::TuneOptions::Method::kExhaustive;
    options.budget = options.work = 0;
    options.confirm_work = 0;
  }
  options.parallel_map = run::over_processes(verb.jobs);
  options.interrupted = interrupted;
  return options;
}

// Each strategy that has a curve is searched by itself: nothing that leaves its training as it is
// changes its steps to the target.
int tune_to_target(const TuneVerbOptions& verb, const input::Document& document,
                   worth::Objective objective) {
  if (!verb.live.machine.empty() || !verb.csv.empty()) {
    throw InputError("--live and --csv are for steps: leave them out with --objective " +
                     verb.objective.objective);
  }
  if (!verb.emit.empty() && verb.python.empty()) {
    throw InputError("--objective " + verb.objective.objective +
                     " writes its best as a file: --emit pytorch --python FILE");
  }
  expect_writable({verb.svg, verb.html, verb.python});
  announce(input::parse_scenario(document), measure::Answer::kTune);
  const worth::Worth worth =
      worth::worth_of(document, std::move(objective), verb.executor,
                      predictor_named(verb.executor).make, search_options(verb));
  const reports::Answer answer = reports::answer_of(worth, "tune");
  const SideFile svg{verb.svg,
                     [&] { return reports::chart::svg_file(reports::worth_figure(worth)); }};
  answer_with({svg, html_file(verb.html, answer)}, [&] { print(answer, verb.format); });
  if (!verb.python.empty() && !worth.rows.empty()) {
    const Strategy& best = worth.rows.front().strategy;
    write_file(verb.python, apply_file(worth.scenario, best, worth.pinned));
    std::cerr << "syncline: wrote " << verb.python << "; " << python_usage(verb.python, best)
              << "\n";
  }
  return interrupted() ? kInterruptedExit : 0;
}

int run(const TuneVerbOptions& verb, const std::string& command) {
  auto objective = objective_of(verb.objective);
  check_python(verb.python, verb.emit, "--emit");
  if (!verb.python.empty() && !verb.live.machine.empty()) {
    throw InputError("--python writes what the model found: leave --live out");
  }
  const bool live_ranks = !verb.live.machine.empty() && verb.live.machine != "emulated";
  input::Document document = live_ranks ? read_on_ranks(verb.scenario) : read(verb.scenario);
  start_from(verb.strategy, document);
  catch_interrupts();
  if (objective) return tune_to_target(verb, document, std::move(*objective));
  if (!verb.live.machine.empty()) return run_live(verb, document, command);
  expect_writable({verb.svg, verb.csv, verb.python, verb.html});
  Progress progress("syncline tune");
  const bool simulated = verb.executor == "sim";
  tune::TuneOptions options = search_options(verb);
  if (!simulated) options.confirm = predictor_named("sim").make;
  options.progress = [&](std::size_t done, std::size_t wanted) { progress.update(done, wanted); };
  const dialect::Dialect* emit = verb.emit.empty() ? nullptr : dialect::find_dialect(verb.emit);
  announce(input::parse_scenario(document), measure::Answer::kTune);
  const tune::Tuning tuning = tune::tune_document(document, options, simulated ? "" : "sim", emit);
  const tune::Tuned& tuned = tuning.tuned;
  const SideFile svg{verb.svg,
                     [&] { return reports::chart::svg_file(reports::size_figure(tuning)); }};
  const SideFile csv{verb.csv, [&] { return reports::curve_csv(tuned.curve); }};
  const reports::Answer answer = reports::answer_of(tuning);
  const SideFile python{
      verb.python,
      [&] { return apply_file(tuning.scenario, best_to_apply(tuning).strategy, tuning.pinned); }};
  answer_with({svg, csv, python, html_file(verb.html, answer)},
              [&] { print(answer, verb.format); });
  tell_applied(verb.python, tuning);
  return interrupted() ? kInterruptedExit : 0;
}

}  // namespace

VerbAction add_tune(CLI::App& app) {
  auto options = std::make_shared<TuneVerbOptions>();
  auto* verb = app.add_subcommand(
      "tune", "Find the best strategy, say how good it is, and write it for a framework");
  add_scenario(*verb, options->scenario, "its sweep is ignored");
  verb->add_option("--strategy", options->strategy,
                   "the strategy whose knobs hold where nothing is searched, and which the others "
                   "are compared with; the scenario's own choice if left out");
  verb->add_option(
          "--emit", options->emit,
          "also write the best as the configuration of this framework, or the best that it "
          "can express")
      ->check(CLI::IsMember(dialect::written_dialect_names()));
  verb->add_option("--python", options->python,
                   "with --emit pytorch: file to write that applies the best in a job, also what "
                   "no configuration expresses");
  add_format(*verb, options->format);
  add_html(*verb, options->html);
  verb->add_option("--svg", options->svg, "file for the curve of step time over bucket size");
  verb->add_option("--csv", options->csv, "file for that curve as bytes,step_time_s");
  verb->add_option(
          "--executor", options->executor,
          "prices the candidates. model: closed form, and the best few simulated; sim: all "
          "of them simulated")
      ->check(CLI::IsMember(predictor_names()))
      ->capture_default_str();
  verb->add_option("--top", options->top, "how many of the best are printed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--budget", options->budget,
                   "maximum number of candidates (default 3000, fewer for models of more than 600 "
                   "gradients; 0: unlimited); with --live, of "
                   "evaluations (default 12)")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.starts_with('-') ? "found " + text + ", expected 0 or more" : "";
          },
          ""));
  verb->add_flag("--exhaustive", options->exhaustive,
                 "price every candidate, also those that the bounds rule out; with --live "
                 "gloo, measure every candidate after the search, to grade it");
  verb->add_option("--jobs", options->jobs,
                   "processes that share exhaustive walks and simulations; the answer is the same")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  add_objective(*verb, options->objective);
  add_live_options(*verb, options->live);
  return [options, verb] { return run(*options, command_line(*verb)); };
}

}  // namespace syncline::cli
