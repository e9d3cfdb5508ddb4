#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/job/init.h"
#include "live/processes.h"
#include "reports/compare_report.h"

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
  constexpr std::size_t kMost = 600;
  const std::string end = text.substr(text.size() - std::min(text.size(), kMost));
  return end.empty() ? "it printed nothing" : "it ended with:\n" + end;
}

// What it prints goes to a file in memory, its errors too.
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

std::optional<Seconds> step_in(const std::string& output, const CompareVerb& verb) {
  try {
    return job::step_in(output, verb.figure, verb.rate);
  } catch (const InputError& error) {
    throw InputError(std::string("--figure: ") + error.what());
  }
}

// Commands in turns: first, second, second, first, first, ...; until a signal or a failure.
class Turns {
 public:
  explicit Turns(const CompareVerb& verb) : verb_(verb) {
    step_in("", verb);  // a mistake is told before the first run
  }

  // What to exit with.
  int run() {
    Progress progress("comparing");
    const auto all = static_cast<std::size_t>(2 * verb_.rounds);
    for (std::size_t turn = 0; turn < all; ++turn) {
      const std::size_t which = (turn + 1) / 2 % 2;
      const Ran ran = run_once(verb_.commands[which]);
      if (ran.interrupted != 0) return 128 + ran.interrupted;
      const auto step = step_in(ran.output, verb_);
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

  // Of the rounds that are complete: steps where all runs name them, else whole runs.
  reports::Comparison compared(bool interrupted) const {
    reports::Comparison comparison;
    comparison.interrupted = interrupted;
    const auto named = [](const auto& list) { return std::ranges::find(list, 0) == list.end(); };
    comparison.of_steps = std::ranges::all_of(steps_, named);
    for (const std::size_t which : {0u, 1u}) {
      comparison.commands[which] = verb_.commands[which];
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
  expect_writable({verb.output.html});
  Turns turns(verb);
  int code = 0;
  std::exception_ptr failed;
  try {
    code = turns.run();
  } catch (const std::exception&) {
    failed = std::current_exception();
  }
  const reports::Comparison comparison = turns.compared(code != 0 || failed);
  const bool any = !comparison.times[0].empty();
  if (any || !failed) answer_with({}, reports::answer_of(comparison), verb.output);
  if (failed) std::rethrow_exception(failed);  // what was measured before stands
  return code;
}

}  // namespace

VerbAction add_compare(CLI::App& app) {
  auto options = std::make_shared<CompareVerb>();
  auto* verb = app.add_subcommand("compare", "Run two commands in turns: which is faster, surely");
  verb->add_option("commands", options->commands, "two commands, each as a shell's line")
      ->required()
      ->expected(2);
  verb->add_option("--rounds", options->rounds, "runs of each")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--figure", options->figure,
                   "expression with a group that finds a step's seconds (default: the usual words)")
      ->type_name("REGEX");
  verb->add_flag("--rate", options->rate, "--figure names a rate: more is faster");
  add_format(*verb, options->output);
  add_html(*verb, options->output);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
