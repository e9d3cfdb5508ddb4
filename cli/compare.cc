#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <iostream>
#include <memory>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/verbs.h"
#include "core/error.h"
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

// Steps where both commands name them, else whole runs.
class Rounds {
 public:
  explicit Rounds(const CompareVerb& verb) : verb_(verb) {
    for (const int which : {0, 1}) comparison.commands[which] = verb.commands[which];
    comparison.of_steps = true;
    reports::step_in("", verb.figure, verb.rate);  // a mistake is told before the first run
  }

  // False after Ctrl-C.
  bool run(int round, const std::function<void()>& done) {
    std::array<Ran, 2> ran;
    for (const int turn : {0, 1}) {
      const auto which = static_cast<std::size_t>(round % 2 == 0 ? turn : 1 - turn);
      ran[which] = run_once(comparison.commands[which]);
      signal = ran[which].interrupted;
      if (signal != 0) return false;
      done();
    }
    for (const std::size_t which : {0u, 1u}) {
      whole_[which].push_back(ran[which].seconds);
      const auto step = reports::step_in(ran[which].output, verb_.figure, verb_.rate);
      if (!step && !verb_.figure.empty()) {
        throw InputError("--figure: '" + verb_.figure + "' finds nothing in what '" +
                         comparison.commands[which] + "' prints");
      }
      comparison.of_steps = comparison.of_steps && step.has_value();
      comparison.times[which].push_back(step.value_or(0));
    }
    return true;
  }

  reports::Comparison finished() {
    if (!comparison.of_steps) {
      for (const std::size_t which : {0u, 1u}) comparison.times[which] = whole_[which];
    }
    comparison.interrupted = signal != 0;
    return comparison;
  }

  reports::Comparison comparison;
  int signal = 0;

 private:
  const CompareVerb& verb_;
  std::array<std::vector<Seconds>, 2> whole_;
};

int run(const CompareVerb& verb) {
  expect_writable({verb.output.html});
  Rounds rounds(verb);
  {
    Progress progress("comparing");
    const auto all = static_cast<std::size_t>(2 * verb.rounds);
    std::size_t done = 0;
    for (int round = 0; round < verb.rounds; ++round) {
      if (!rounds.run(round, [&] { progress.update(++done, all); })) break;
    }
  }
  const reports::Comparison comparison = rounds.finished();
  answer_with({}, reports::answer_of(comparison), verb.output);
  return rounds.signal == 0 ? 0 : 128 + rounds.signal;
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
