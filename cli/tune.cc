#include "cli/tune.h"

#include <iostream>
#include <memory>
#include <utility>

#include "cli/apply_file.h"
#include "cli/command_line.h"
#include "cli/executors.h"
#include "cli/exit.h"
#include "cli/files.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/input/read_scenario.h"
#include "core/tune/applicable.h"
#include "core/tune/tuning.h"
#include "core/worth/outcomes.h"
#include "reports/applied.h"
#include "reports/chart/svg.h"
#include "reports/curve.h"
#include "reports/figures.h"
#include "reports/tune_report.h"

namespace syncline::cli {
namespace {

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
int tune_steps(const TuneVerbOptions& verb, const input::Document& document) {
  expect_writable({verb.svg, verb.csv, verb.python, verb.html});
  Progress progress("syncline tune");
  const bool simulated = verb.executor == "sim";
  tune::TuneOptions options = search_options(verb);
  if (!simulated) options.confirm = predictor_named("sim").make;
  options.progress = [&](std::size_t done, std::size_t wanted) { progress.update(done, wanted); };
  const dialect::Dialect* emit = verb.emit.empty() ? nullptr : dialect::find_dialect(verb.emit);
  const bool curves = !verb.objective.curves.empty();
  const Outcomes outcomes = curves ? outcomes_of(verb.objective.curves) : Outcomes{};
  tune::Tuning tuning = tune::tune_document(document, options, simulated ? "" : "sim", emit);
  if (curves) worth::add_outcomes(outcomes.curves, outcomes.quantity, tuning);
  if (tuning.taken && !tuning.emitted && verb.python.empty()) {
    throw InputError("--take: no configuration of " + verb.emit + " says '" + verb.take +
                     "'; --python FILE writes what applies it, where a file can");
  }
  const tune::Tuned& tuned = tuning.tuned;
  const SideFile svg{verb.svg,
                     [&] { return reports::chart::svg_file(reports::size_figure(tuning)); }};
  const SideFile csv{verb.csv, [&] { return reports::curve_csv(tuned.curve); }};
  const reports::Answer answer = reports::answer_of(tuning);
  const tune::Ranked& best = verb.python.empty() ? tuned.winner() : tune::best_to_apply(tuning);
  const SideFile python{verb.python,
                        [&] { return apply_file(tuning.scenario, best.strategy, tuning.pinned); }};
  answer_with({svg, csv, python, html_file(verb.html, answer)},
              [&] { print(answer, verb.format); });
  if (!verb.python.empty()) tell_applied(verb.python, tuning, best);
  return interrupted() ? kInterruptedExit : 0;
}

int run(const TuneVerbOptions& verb, const std::string& command) {
  ObjectiveOptions asked = verb.objective;
  // Of a step, curves tell where the trainings of its rows end.
  if (!asked.asked() && verb.live.machine.empty()) asked.curves.clear();
  auto objective = objective_of(asked);
  check_python(verb.python, verb.emit, "--emit");
  if (!verb.python.empty() && !verb.live.machine.empty()) {
    throw InputError("--python writes what the model found: leave --live out");
  }
  if (!verb.take.empty() && (objective || !verb.live.machine.empty() || verb.emit.empty())) {
    throw InputError(
        "--take names a row to write: it needs --emit, and neither --live nor --objective");
  }
  const bool live_ranks = !verb.live.machine.empty() && verb.live.machine != "emulated";
  input::Document document = live_ranks ? read_on_ranks(verb.scenario) : read(verb.scenario);
  start_from(verb.strategy, document);
  catch_interrupts();
  if (objective) return tune_to_target(verb, document, std::move(*objective));
  if (!verb.live.machine.empty()) return run_live(verb, document, command);
  return tune_steps(verb, document);
}

}  // namespace

VerbAction add_tune(CLI::App& app) {
  auto options = std::make_shared<TuneVerbOptions>();
  auto* verb = app.add_subcommand(
      "tune", "Find the best strategy, say how good it is, and write it for a framework");
  add_tune_options(*verb, *options);
  return [options, verb] { return run(*options, command_line(*verb)); };
}

}  // namespace syncline::cli
