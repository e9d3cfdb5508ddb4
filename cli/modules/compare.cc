#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/modules/live.h"
#include "cli/modules/step_log.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/process.h"
#include "core/base/error.h"
#include "core/base/statistics.h"
#include "live/processes.h"
#include "reports/format.h"
#include "reports/table.h"
#include "studies/rows/uncertainty.h"

namespace syncline::cli {
namespace {

struct CompareVerb {
  std::vector<std::string> commands;
  int rounds = 5;
  std::string figure;
  bool rate = false;
  Output output;
};

struct Ran {
  std::string output;
  Seconds seconds = 0;
  int interrupted = 0;
};

std::string last_lines(const std::string& text) {
  constexpr std::size_t kMax = 600;
  const std::string end = text.substr(text.size() - std::min(text.size(), kMax));
  return end.empty() ? "it printed nothing" : "it ended with:\n" + end;
}

// Runs the command once; its output and errors go to a file in memory.
Ran run_once(const std::string& command) {
  const int file = ::memfd_create("syncline compare", MFD_CLOEXEC);
  if (file < 0) throw MachineError("compare: no memory for what a command prints");
  live::RankCommand shell;
  shell.words = {"/bin/sh", "-c", command};
  shell.out = shell.err = file;
  const auto begin = std::chrono::steady_clock::now();
  const live::JobEnd end = live::run_ranks({shell}, {});
  Ran ran;
  ran.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ran.interrupted = end.interrupted;
  std::array<char, 1 << 16> piece{};
  ::lseek(file, 0, SEEK_SET);
  for (ssize_t got = 0; (got = ::read(file, piece.data(), piece.size())) > 0;) {
    ran.output.append(piece.data(), static_cast<std::size_t>(got));
  }
  ::close(file);
  const int code = end.ranks.front().code;
  if (ran.interrupted == 0 && code != 0) {
    throw MachineError("compare: '" + command + "' ended with " + std::to_string(code) + "; " +
                       last_lines(ran.output));
  }
  return ran;
}

std::optional<Seconds> find_step_time(const std::string& output, const CompareVerb& verb) {
  try {
    return cli::find_step_time(output, verb.figure, verb.rate);
  } catch (const InputError& error) {
    throw InputError(std::string("--figure: ") + error.what());
  }
}

// Times of each round: a step's, or the whole run's.
struct Comparison {
  std::vector<std::string> commands;
  std::vector<Seconds> times[2];
  bool of_steps = false;  // times are of steps, else of whole runs
  bool interrupted = false;
};

// The ratio of the first command's time to the second's, with a 95 % interval by Student's t over
// the rounds' logarithms. No interval for fewer than two rounds.
struct FasterBy {
  double factor = 1;
  std::optional<measure::Interval> interval = {};
};

FasterBy faster_by(const Comparison& comparison) {
  std::vector<double> logs;
  for (std::size_t r = 0; r < comparison.times[1].size(); ++r) {
    logs.push_back(std::log(comparison.times[0][r] / comparison.times[1][r]));
  }
  constexpr double kShare = 0.95;
  FasterBy by{std::exp(mean(logs))};
  if (logs.size() < 2) return by;
  const auto rounds = static_cast<double>(logs.size());
  const double half = student_t(kShare, rounds - 1) * sample_deviation(logs) / std::sqrt(rounds);
  by.interval = {by.factor * std::exp(-half), by.factor * std::exp(half)};
  return by;
}

reports::Table rounds_of(const Comparison& comparison) {
  reports::Table table{
      reports::columns(reports::table_column("round", "round", reports::Kind::kInteger),
                       reports::table_column("first", "first_s", reports::Kind::kSeconds),
                       reports::table_column("second", "second_s", reports::Kind::kSeconds),
                       reports::table_column("times faster", "speedup", reports::Kind::kSpeedup))};
  for (std::size_t r = 0; r < comparison.times[1].size(); ++r) {
    const Seconds first = comparison.times[0][r];
    const Seconds second = comparison.times[1][r];
    table.add(r + 1, first, second, first / second);
  }
  return table;
}

std::string verdict_of(const Comparison& comparison) {
  if (comparison.times[1].empty()) return "Nothing was compared: no round is complete.";
  const FasterBy by = faster_by(comparison);
  const std::string what = comparison.of_steps ? " per step" : " per run";
  const std::string times =
      reports::seconds_text(median(comparison.times[0]), reports::kSaidDigits) + " -> " +
      reports::seconds_text(median(comparison.times[1]), reports::kSaidDigits) + what;
  const std::string rounds = reports::plural(comparison.times[1].size(), "round");
  if (!by.interval) {
    return "The second took " + times + ", " + reports::short_speedup_text(by.factor) +
           " as fast, in " + rounds + ": one round says nothing of the noise.";
  }
  const std::string range = reports::short_speedup_text(by.interval->low) + " to " +
                            reports::short_speedup_text(by.interval->high);
  if (by.interval->low <= 1 && by.interval->high >= 1) {
    return "Not decided by " + rounds + ": the second is " +
           reports::short_speedup_text(by.factor) + " as fast (95 %: " + range + "), " + times +
           ". More --rounds narrow that.";
  }
  const bool faster = by.factor > 1;
  return std::string("The second is ") + (faster ? "faster: " : "slower: ") +
         reports::short_speedup_text(by.factor) + " as fast (95 %: " + range + "), " + times +
         ", in " + rounds + ".";
}

reports::Page page_of(const Comparison& comparison) {
  reports::Page page;
  page.title = "Comparison";
  page.add(verdict_of(comparison));
  page.add(rounds_of(comparison));
  page.add(reports::Items{"Commands", comparison.commands});
  page.add(
      std::string("Measured: the commands ran alternately, the first one first in odd rounds. ") +
      (comparison.of_steps ? "A time is the median of the later three quarters of a run's steps."
                           : "A time is that of the whole run: its output names no step times "
                             "(--figure finds them)."));
  if (comparison.interrupted) page.add("Interrupted: rounds are missing.");
  return page;
}

Json json_of(const Comparison& comparison) {
  Json json{{"first", comparison.commands[0]},
            {"second", comparison.commands[1]},
            {"of", comparison.of_steps ? "steps" : "runs"},
            {"complete", !comparison.interrupted},
            {"rows", reports::json_of(rounds_of(comparison))},
            {"verdict", verdict_of(comparison)}};
  if (comparison.times[1].empty()) return json;
  const FasterBy by = faster_by(comparison);
  json["speedup"] = reports::exact(by.factor);
  if (by.interval)
    json["speedup_interval"] = {reports::exact(by.interval->low),
                                reports::exact(by.interval->high)};
  return json;
}

// Runs commands in turns: first, second, second, first, first, ...; until a signal or a failure.
class Turns {
 public:
  explicit Turns(const CompareVerb& verb) : verb_(verb) {
    find_step_time("", verb);  // reports a mistake before the first run
  }

  // Returns the exit code.
  int run() {
    Progress progress("comparing");
    const auto all = static_cast<std::size_t>(2 * verb_.rounds);
    for (std::size_t turn = 0; turn < all; ++turn) {
      const std::size_t which = (turn + 1) / 2 % 2;
      const Ran ran = run_once(verb_.commands[which]);
      if (ran.interrupted != 0) return 128 + ran.interrupted;
      const auto step = find_step_time(ran.output, verb_);
      if (!step && !verb_.figure.empty()) {
        throw InputError("--figure: '" + verb_.figure + "' finds nothing in what '" +
                         verb_.commands[which] + "' prints");
      }
      steps_[which].push_back(step.value_or(0));
      whole_[which].push_back(ran.seconds);
      progress.update(turn + 1, all);
    }
    return 0;
  }

  // Returns the complete rounds: times of steps if all runs print them, else of whole runs.
  Comparison compared(bool is_interrupted) const {
    Comparison comparison{verb_.commands, {}, false, is_interrupted};
    const auto named = [](const auto& list) { return std::ranges::find(list, 0) == list.end(); };
    comparison.of_steps = std::ranges::all_of(steps_, named);
    for (const std::size_t which : {0u, 1u}) {
      comparison.times[which] = (comparison.of_steps ? steps_ : whole_)[which];
      comparison.times[which].resize(std::min(whole_[0].size(), whole_[1].size()));
    }
    return comparison;
  }

 private:
  const CompareVerb& verb_;
  std::array<std::vector<Seconds>, 2> steps_, whole_;
};

int run(const CompareVerb& verb) {
  note_files_of(verb.commands);
  expect_writable({verb.output.html});
  Turns turns(verb);
  int code = 0;
  std::exception_ptr failed;
  try {
    code = turns.run();
  } catch (const std::exception&) {
    failed = std::current_exception();
  }
  const Comparison comparison = turns.compared(code != 0 || failed);
  if (!comparison.times[0].empty() || !failed) {
    const auto answer =
        reports::make_answer("compare", "", comparison, page_of, rounds_of, json_of);
    write_answer({}, answer, verb.output);
  }
  if (failed) std::rethrow_exception(failed);  // earlier measurements remain
  return code;
}

}  // namespace

VerbAction add_compare(CLI::App& verb) {
  auto options = std::make_shared<CompareVerb>();
  verb.add_option("commands", options->commands, "two shell commands")->required()->expected(2);
  verb.add_option("--rounds", options->rounds, "runs of each")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb.add_option("--figure", options->figure,
                  "regex, its group the step time in seconds (default: usual logs)")
      ->type_name("REGEX");
  verb.add_flag("--rate", options->rate, "--figure names a rate: more is faster");
  add_format(verb, options->output);
  add_html(verb, options->output);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
