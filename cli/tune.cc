#include <algorithm>
#include <cctype>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/live.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/input/document.h"
#include "core/run/model_executor.h"
#include "core/tune/tuning.h"
#include "reports/curve.h"
#include "reports/tune_report.h"
#include "sim/sim_executor.h"

namespace syncline {
namespace {

struct TuneVerbOptions {
  std::string file;
  std::string emit;
  std::string format = "text";
  std::string svg;
  std::string csv;
  std::string executor = "model";
  std::vector<std::string> set;
  std::size_t top = 5;
  std::optional<std::size_t> budget;
  bool exhaustive = false;
  int jobs = 1;
  LiveVerbOptions live;
};

constexpr std::size_t kPricedAtMost = 3000;
constexpr std::size_t kMeasuredAtMost = 12;

// "cluster.inter.bandwidth_gbps=10": the value as JSON, or as plain text where it is none.
void set_keys(Document& document, const std::vector<std::string>& changes) {
  for (const auto& change : changes) {
    const auto equals = change.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError("--set: found '" + change + "', expected KEY=VALUE");
    }
    const std::string text = change.substr(equals + 1);
    Json value = Json::parse(text, nullptr, false);
    if (value.is_discarded()) value = text;
    set_key(document, change.substr(0, equals), value);
  }
}

std::string printed(const Tuning& tuning, const std::string& format) {
  if (format == "json") return tune_json(tuning);
  if (format == "markdown") return tune_markdown(tuning);
  if (format == "csv") return tune_csv(tuning);
  return tune_text(tuning);
}

// Text as a shell reads it as one word.
std::string shell_word(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string("./_-=,+:@%").find(c) != std::string::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

int run_live(const TuneVerbOptions& verb, const Document& document,
             const std::vector<std::string>& arguments) {
  LiveVerbOptions live = verb.live;
  const std::size_t budget = verb.budget.value_or(kMeasuredAtMost);
  if (budget < 1 || budget > 100000) {
    throw InputError("--budget: found " + std::to_string(budget) +
                     ", expected 1 to 100000 evaluations with --live");
  }
  if (live.machine == "emulated") {
    for (const bool given :
         {live.ranks.ranks != 0, live.calibrate, live.no_check, verb.exhaustive}) {
      if (!given) continue;
      throw InputError(
          "--live emulated: there are no ranks to start, links to measure, values to check or "
          "sweeps to run: --ranks, --calibrate, --no-check and --exhaustive go with --live gloo");
    }
  }
  live.exhaustive = verb.exhaustive;
  live.budget = static_cast<int>(budget);
  live.emit = verb.emit;
  live.format = verb.format;
  live.command = "syncline";
  for (const auto& argument : arguments) live.command += " " + shell_word(argument);
  return tune_live_verb(live, document, interrupted);
}

int run(const TuneVerbOptions& verb, const std::vector<std::string>& arguments) {
  Document document = read_document(verb.file);
  set_keys(document, verb.set);
  catch_interrupts();
  if (!verb.live.machine.empty()) return run_live(verb, document, arguments);
  Progress progress("syncline tune");
  const bool simulated = verb.executor == "sim";
  TuneOptions options;
  options.executor = verb.executor;
  options.make_executor = simulated ? make_sim_executor : make_model_executor;
  if (!simulated) options.confirm = make_sim_executor;
  options.top = verb.top;
  options.budget = verb.budget.value_or(kPricedAtMost);
  if (verb.exhaustive) {
    options.method = TuneOptions::Method::kExhaustive;
    options.budget = 0;
  }
  if (verb.jobs > 1) {
    options.parallel_map = [jobs = verb.jobs](std::size_t count, const auto& work,
                                              const JobHooks& hooks) {
      return run_jobs(count, jobs, work, hooks);
    };
  }
  options.progress = [&](std::size_t done, std::size_t wanted) { progress.update(done, wanted); };
  options.interrupted = interrupted;
  const Dialect* emit = verb.emit.empty() ? nullptr : find_dialect(verb.emit);
  const Tuning tuning = tune_document(document, options, simulated ? "" : "sim", emit);

  if (!verb.svg.empty()) {
    write_file(verb.svg, curve_svg(tuning.tuned.curve, tuning.tuned.winner().metrics.step_time,
                                   tuning.scenario.name));
  }
  if (!verb.csv.empty()) write_file(verb.csv, curve_csv(tuning.tuned.curve));
  std::cout << printed(tuning, verb.format);
  return interrupted() ? kInterruptedExit : 0;
}

void add_live(CLI::App& verb, LiveVerbOptions& live) {
  CLI::Option* machine =
      verb.add_option("--live", live.machine,
                      "search on a machine, where each evaluation costs training steps. gloo: the "
                      "ranks of this machine or of a launcher; emulated: the closed-form model "
                      "with noise stands for the machine")
          ->check(CLI::IsMember({"emulated", "gloo", "nccl"}));
  for (const char* other : {"--svg", "--csv", "--executor", "--top", "--jobs"}) {
    machine->excludes(verb.get_option(other));
  }
  add_ranks_options(verb, live.ranks);
  for (const char* own : {"--ranks", "--timeout", "--meet"}) verb.get_option(own)->needs(machine);
  verb.add_flag("--calibrate", live.calibrate, "measure the links of --live gloo first")
      ->needs(machine);
  verb.add_flag("--no-check", live.no_check,
                "do not compare the values that --live gloo exchanges with the host executor's")
      ->needs(machine);
  constexpr double kMostNoise = 30;  // percent: a normal step time stays above zero
  const auto add = [&](const char* name, auto& value, const char* about) {
    return verb.add_option(name, value, about)->needs(machine)->capture_default_str();
  };
  add("--noise", live.noise, "of an emulated step, its standard deviation in percent")
      ->check(CLI::Range(0.0, kMostNoise));
  add("--steps", live.steps, "training steps an evaluation")->check(CLI::Range(2, 1000000));
  add("--seed", live.seed, "of the noise");
  add("--journal", live.journal,
      "file that keeps every evaluation: killed, the same command goes on from there");
  add("--wrong", live.wrong,
      "guide the search by a model that is off: latency=FACTOR,bandwidth=FACTOR");
  add("--pace", live.pace, "how long an emulated second takes, in seconds; 0: no time")
      ->check(CLI::Range(0.0, 1000.0));
}

// The command line as it was given, the program's name aside.
std::vector<std::string> words_of(const CLI::App& verb) {
  std::vector<std::string> words{verb.get_name()};
  std::vector<const CLI::Option*> said;
  for (const CLI::Option* option : verb.parse_order()) {
    if (std::find(said.begin(), said.end(), option) != said.end()) continue;
    said.push_back(option);
    for (const auto& value : option->results()) {
      if (!option->get_positional()) words.push_back("--" + option->get_single_name());
      if (option->get_type_size() > 0) words.push_back(value);
    }
  }
  return words;
}

}  // namespace

VerbAction add_tune(CLI::App& app) {
  auto options = std::make_shared<TuneVerbOptions>();
  auto* verb = app.add_subcommand(
      "tune", "Find the best strategy, say how good it is, and write it for a framework");
  verb->add_option("file", options->file, "the scenario (JSON); its sweep is left aside")
      ->required();
  verb->add_option(
          "--emit", options->emit,
          "also write the best as the configuration of this framework, or the best that it "
          "can say")
      ->check(CLI::IsMember(written_dialect_names()));
  verb->add_option("--format", options->format, "what is printed")
      ->check(CLI::IsMember({"text", "json", "markdown", "csv"}))
      ->capture_default_str();
  verb->add_option("--svg", options->svg, "file for the curve of step time over bucket size");
  verb->add_option("--csv", options->csv, "file for that curve as bytes,step_time_s");
  verb->add_option(
          "--executor", options->executor,
          "prices the candidates. model: closed form, and the best few simulated; sim: all "
          "of them simulated")
      ->check(CLI::IsMember({"model", "sim"}))
      ->capture_default_str();
  verb->add_option("--top", options->top, "how many of the best are printed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--budget", options->budget,
                   "candidates priced at most, 3000 unless told; 0: no limit. With --live "
                   "evaluations, 12 unless told")
      ->check(CLI::NonNegativeNumber);
  verb->add_flag("--exhaustive", options->exhaustive,
                 "price every candidate, also those that the bounds rule out; with --live "
                 "gloo, measure every candidate after the search, to grade it");
  verb->add_option("--jobs", options->jobs,
                   "processes that share exhaustive walks and simulations; the answer is the same")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  verb->add_option("--set", options->set, "change a key of the scenario first: KEY=VALUE");
  add_live(*verb, options->live);
  return [options, verb] { return run(*options, words_of(*verb)); };
}

}  // namespace syncline
