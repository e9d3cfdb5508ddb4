#include "cli/tune.h"
#include "cli/objective.h"

#include <iostream>
#include <memory>
#include <utility>

#include "cli/backends.h"
#include "cli/command_line.h"
#include "cli/help.h"
#include "cli/modules.h"
#include "cli/process.h"
#include "cli/verbs.h"
#include "core/base/error.h"
#include "formats/dialect/dialect.h"
#include "formats/input/document.h"
#include "reports/chart/figure.h"
#include "reports/layouts_report.h"
#include "reports/text_plot.h"
#include "reports/tune_figures.h"
#include "reports/tune_report.h"
#include "reports/utilisation_report.h"
#include "reports/worth_report.h"
#include "reports/written.h"
#include "studies/tune/tuner.h"
#include "studies/tune/tuning.h"

namespace syncline::cli {
namespace {

// Returns the search's options, with progress on the terminal.
tune::TuneOptions search_options(const TuneArguments& verb, Progress& progress) {
  tune::TuneOptions options = questions::search_of(verb);
  options.interrupted = is_interrupted;
  options.by_file = !verb.python.empty();
  options.progress = [&](std::size_t done, std::size_t wanted) { progress.update(done, wanted); };
  return options;
}

// Prints the use of the Python file, and the strategy it applies if that is not the choice.
void tell_applied(const std::string& file, const tune::Tuning& tuning, const tune::Ranked& best) {
  std::cerr << "syncline: " << reports::apply_usage(file, best.strategy) << "\n";
  const std::string instead = reports::other_strategy_note(file, tuning, best);
  if (!instead.empty()) std::cerr << "syncline: " << instead << "\n";
}

// Tunes the time of a step, by the model or by simulation.
int tune_steps(const TuneArguments& verb, const input::Document& document) {
  expect_writable({verb.svg, verb.csv, verb.python, verb.output.html});
  Progress progress("syncline tune");
  const tune::Tuning tuning = questions::steps_of(verb, document, search_options(verb, progress));
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
  write_answer({svg, csv, python}, reports::answer_of(tuning), verb.output);
  if (!verb.python.empty()) tell_applied(verb.python, tuning, best);
  return is_interrupted() ? kInterruptedExit : 0;
}

// Tunes layouts with one strategy, the baseline.
int tune_by_layout(const TuneArguments& verb, const input::Document& document) {
  expect_writable({verb.output.html});
  Progress progress("syncline tune");
  const tune::Layouts layouts =
      questions::layouts_of(verb, document, search_options(verb, progress));
  write_answer({}, reports::answer_of(layouts), verb.output);
  return is_interrupted() ? kInterruptedExit : 0;
}

int tune_to_target(const TuneArguments& verb, const input::Document& document) {
  if (!verb.live.machine.empty() || !verb.csv.empty()) {
    throw InputError("--live and --csv are not available with --objective " +
                     verb.objective.objective);
  }
  if (!verb.emit.empty() && verb.python.empty()) {
    throw InputError("--objective " + verb.objective.objective +
                     " writes a Python file only: use --emit pytorch --python FILE");
  }
  expect_writable({verb.svg, verb.output.html, verb.python});
  tune::TuneOptions options = questions::search_of(verb);
  options.interrupted = is_interrupted;
  options.by_file = !verb.python.empty();
  const worth::Worth worth = questions::worth_of(verb, document, options);
  const SideFile svg{verb.svg,
                     [&] { return reports::chart::svg_file(reports::worth_figure(worth)); }};
  write_answer({svg}, reports::answer_of(worth, "tune"), verb.output);
  if (!verb.python.empty() && !worth.rows.empty()) {
    write_apply_file(verb.python, worth.scenario, worth.rows.front().strategy, worth.fit_errors);
  }
  return is_interrupted() ? kInterruptedExit : 0;
}

// Finds the bandwidth between groups that a utilisation requires.
int tune_to_utilisation(const TuneArguments& verb, const input::Document& document) {
  expect_writable({verb.svg, verb.output.html});
  const tune::Utilisation found = questions::utilisation_of(verb, document);
  const SideFile svg{verb.svg,
                     [&] { return reports::chart::svg_file(reports::utilisation_figure(found)); }};
  write_answer({svg}, reports::answer_of(found), verb.output);
  return 0;
}

int run(const TuneArguments& verb, const std::string& command) {
  const bool live = !verb.live.machine.empty();
  questions::Given own{{"--live", live}, {"--csv", !verb.csv.empty()}};
  if (!verb.utilisation) {
    own.insert(own.end(), {{"--python", !verb.python.empty()}, {"--svg", !verb.svg.empty()}});
  }
  questions::expect_fitting(verb, own);
  check_python(verb.python, verb.emit, "--emit");
  if (!verb.python.empty() && live) {
    throw InputError("--python is not available with --live");
  }
  if (!verb.take.empty() && live) {
    throw InputError("--take needs --emit, and is not available with --live or --objective");
  }
  const bool live_ranks = live && verb.live.machine != kEmulated;
  input::Document document = live_ranks ? read_on_ranks(verb.scenario) : read(verb.scenario);
  questions::set_baseline(verb, document);
  catch_interrupts(live ? 0 : kInterruptWait);
  if (verb.utilisation) return tune_to_utilisation(verb, document);
  if (verb.choice.any()) return tune_by_layout(verb, document);
  if (verb.objective.has_target()) return tune_to_target(verb, document);
  if (live) return module_rows("live").tune_live(verb, document, command);
  return tune_steps(verb, document);
}

// Adds the options that go with --live. Requires that the verb's options that exclude it were
// added.
void add_live_options(CLI::App& verb, LiveOptions& live) {
  std::vector<std::string> machines = backend_names();
  machines.insert(machines.begin(), std::string(kEmulated));
  CLI::Option* machine = verb.add_option("--live", live.machine, "measure candidates on")
                             ->transform(one_of_words(machines));
  for (const char* other : {"--svg", "--csv", "--executor", "--top", "--jobs"}) {
    machine->excludes(verb.get_option(other));
  }
  add_ranks_options(verb, live.ranks, machine);
  verb.add_flag("--calibrate", live.calibrate, "measure the links of --live gloo first")
      ->needs(machine);
  verb.add_flag("--no-check", live.no_check, "skip the check of the all-reduced values")
      ->needs(machine);
  constexpr double kMaxNoise = 30;  // percent: a normal step time stays above zero
  const auto add = [&](const char* name, auto& value, const char* about) {
    return verb.add_option(name, value, about)->needs(machine)->capture_default_str();
  };
  add("--noise", live.noise, "standard deviation of an emulated step in percent")
      ->check(number_between(0.0, kMaxNoise));
  add("--steps", live.steps, "training steps per evaluation")->check(CLI::Range(2, 1000000));
  add("--seed", live.seed, "seed of the noise");
  add("--journal", live.journal, "record every evaluation; the same command resumes from there")
      ->type_name("FILE");
  add("--wrong", live.wrong,
      "distort the model that guides the search, in latency, bandwidth or both")
      ->type_name("KEY=FACTOR,...");
  add("--pace", live.time_scale, "seconds that an emulated second takes")
      ->check(number_between(0.0, 1000.0));
  put_in_group(verb, "Search on a machine (with --live)",
               {"--ranks", "--timeout", "--meet", "--calibrate", "--no-check", "--noise", "--steps",
                "--seed", "--journal", "--wrong", "--pace"});
}

void add_tune_options(CLI::App& verb, TuneArguments& options) {
  add_scenario(verb, options.scenario, "its sweep is ignored");
  const questions::Arguments arguments = arguments_of(options);
  add_arguments(verb, arguments, {"strategy", "emit"});
  add_file(verb, "--python", options.python,
           "write a Python file that applies the best (--emit pytorch)");
  add_arguments(verb, arguments, {"take"});
  add_format(verb, options.output);
  add_verbose(verb, options.output);
  add_html(verb, options.output);
  add_file(verb, "--svg", options.svg, "plot step time over bucket size")->group("Output");
  add_file(verb, "--csv", options.csv, "write step time over bucket size as CSV")->group("Output");
  add_arguments(verb, arguments);
  add_live_options(verb, options.live);
}

}  // namespace

VerbAction add_tune(CLI::App& verb) {
  auto options = std::make_shared<TuneArguments>();
  add_tune_options(verb, *options);
  return [options, &verb] { return run(*options, command_line(verb)); };
}

}  // namespace syncline::cli
