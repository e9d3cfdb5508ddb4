// A live search that is killed, interrupted and resumed: no finished evaluation is repeated and the
// answer is that of an undisturbed run.
#include "studies/machines/live_tuner.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <regex>
#include <sstream>
#include <thread>
#include <tuple>

#include "core/base/error.h"
#include "tests/support/bucket_search.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::tune {
namespace {

using std::chrono::milliseconds;
using test::AffineCost;
using test::Scratch;
using test::StepTrace;
using test::text_of;
using test::write_text;

StepTrace small_trace() {
  StepTrace trace;
  trace.forward = 0.02;
  Seconds now = 0;
  for (int i = 0; i < 24; ++i) {
    trace.gradients.ready.push_back(now += 1e-3 + 1e-4 * (i % 5));
    trace.gradients.bytes.push_back(2e5 * (1 + i % 7));
  }
  return trace;
}

constexpr AffineCost kTruth{6e-4, 1.1e-9};

const SearchProblem& problem() {
  static const SearchProblem made = test::bucket_problem(small_trace(), {3e-4, 2e-9}, 12);
  return made;
}

LiveSettings settings() {
  LiveSettings live;
  live.seed = 5;
  live.search.stop_at_noise_share = 0;  // the whole budget, so that there is much to interrupt
  live.search.budget = 8;
  return live;
}

// A machine that takes its time, and notes in a file when it begins which evaluation.
LiveObjective sleeping_machine(milliseconds nap, const std::string& notes) {
  MeasurementWatch watch;
  watch.begins = [=](const Candidate&, const Evaluation& evaluation) {
    const std::string text = std::to_string(evaluation.number) + "\n";
    if (!notes.empty()) {
      const int file = ::open(notes.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
      EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
      ::close(file);
    }
    std::this_thread::sleep_for(nap);
  };
  const auto truth = [](const Candidate& candidate) {
    return step_time(small_trace(), candidate, kTruth);
  };
  return watch_objective(emulated_objective(truth, 0.02), watch);
}

LiveTuning tune_with(const std::string& path, milliseconds nap, const std::string& notes,
                     const LiveSettings& live) {
  const LiveObjective machine = sleeping_machine(nap, notes);
  Journal journal(path, journal_header("scenario", problem(), live, machine));
  return tune_live(problem(), live, machine, &journal);
}

LiveTuning undisturbed(const std::string& path, const LiveSettings& live = settings()) {
  return tune_with(path, milliseconds(0), "", live);
}

// Runs `child` in a process of its own; gives the process.
template <typename Work>
pid_t forked(const Work& child) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  try {
    child();
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);
}

int status_of(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

long lines_in(const std::string& path) {
  const std::string text = text_of(path);
  return std::count(text.begin(), text.end(), '\n');
}

// Killed at random moments until it gets through. Each life begins with the first evaluation that
// the journal lacks, so a finished one is never measured again; and the journal ends up byte for
// byte that of a run which nobody disturbed.
TEST(LiveTuner, KilledAtRandomPointsLosesNothing) {
  const Scratch scratch;
  const LiveTuning whole = undisturbed(scratch.path("whole.jsonl"));
  ASSERT_EQ(whole.observations.size(), 8U);

  std::mt19937 random(11);
  int kills = 0;
  for (int round = 0; round < 3; ++round) {
    const std::string path = scratch.path("killed-" + std::to_string(round) + ".jsonl");
    const std::string notes = scratch.path("notes-" + std::to_string(round));
    bool through = false;
    for (int life = 0; life < 200 && !through; ++life) {
      const long finished = std::max(0L, lines_in(path) - 1);
      const std::size_t noted = text_of(notes).size();
      const pid_t child = forked([&] { tune_with(path, milliseconds(8), notes, settings()); });
      // Later lives live longer, so that slow machines get through as well.
      std::this_thread::sleep_for(
          milliseconds(std::uniform_int_distribution<int>(1, 30 * (1 + life / 4))(random)));
      ::kill(child, SIGKILL);
      const int status = status_of(child);
      through = WIFEXITED(status);
      if (through) {
        ASSERT_EQ(WEXITSTATUS(status), 0);
      }
      kills += through ? 0 : 1;
      // What this life began: `finished`, `finished` + 1, ...
      std::istringstream began(text_of(notes).substr(noted));
      long number = 0;
      for (long expected = finished; began >> number; ++expected) ASSERT_EQ(number, expected);
    }
    ASSERT_TRUE(through);
    EXPECT_EQ(text_of(path), text_of(scratch.path("whole.jsonl")));
    const LiveTuning again = tune_with(path, milliseconds(0), notes, settings());
    EXPECT_EQ(again.resumed, 8U);
    EXPECT_EQ(again.state.best, whole.state.best);
    EXPECT_EQ(again.state.estimates[again.state.best].step_time,
              whole.state.estimates[whole.state.best].step_time);
  }
  EXPECT_GE(kills, 3);
}

volatile std::sig_atomic_t interrupts = 0;

// Ctrl-C in the middle of an evaluation: it is finished and kept, the search says how to go on, and
// goes on.
TEST(LiveTuner, InterruptLosesNothing) {
  const Scratch scratch;
  const std::string path = scratch.path("tune.jsonl");
  const std::string advice = scratch.path("advice");
  const pid_t child = forked([&] {
    std::signal(SIGINT, [](int) { interrupts = 1; });
    LiveSettings live = settings();
    live.interrupted = [] { return interrupts != 0; };
    const LiveObjective machine = sleeping_machine(milliseconds(30), scratch.path("notes"));
    Journal journal(path, journal_header("scenario", problem(), live, machine));
    const LiveTuning tuning = tune_live(problem(), live, machine, &journal);
    if (tuning.complete) ::_exit(9);
    write_text(advice, resume_advice(tuning, live.search, &journal, "syncline tune x.json"));
  });
  while (lines_in(scratch.path("notes")) < 3) std::this_thread::sleep_for(milliseconds(1));
  ::kill(child, SIGINT);
  const int status = status_of(child);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0);

  const long kept = lines_in(path) - 1;
  EXPECT_EQ(kept, lines_in(scratch.path("notes")));  // the one under way was finished
  EXPECT_LT(kept, 8);
  const std::string said = text_of(advice);
  for (const std::string& part : {"interrupted after " + std::to_string(kept) + " of at most 8",
                                  path, std::string("repeat: syncline tune x.json")}) {
    EXPECT_TRUE(test::contains(said, part)) << said;
  }

  const LiveTuning resumed = undisturbed(path);
  EXPECT_EQ(resumed.resumed, static_cast<std::size_t>(kept));
  undisturbed(scratch.path("whole.jsonl"));
  EXPECT_EQ(text_of(path), text_of(scratch.path("whole.jsonl")));
}

// A larger budget goes on from the smaller one's journal and ends where it would have ended.
TEST(LiveTuner, ALargerBudgetGoesOn) {
  const Scratch scratch;
  LiveSettings small = settings();
  small.search.budget = 3;
  undisturbed(scratch.path("a.jsonl"), small);
  const LiveTuning grown = undisturbed(scratch.path("a.jsonl"));
  EXPECT_EQ(grown.resumed, 3U);
  const LiveTuning whole = undisturbed(scratch.path("b.jsonl"));
  EXPECT_EQ(grown.state.best, whole.state.best);
  EXPECT_EQ(text_of(scratch.path("a.jsonl")), text_of(scratch.path("b.jsonl")));
}

TEST(LiveTuner, RefusesAJournalOfAnotherSearch) {
  const Scratch scratch;
  const std::string path = scratch.path("tune.jsonl");
  undisturbed(path);
  LiveSettings other = settings();
  other.seed = 6;
  EXPECT_THROW(undisturbed(path, other), InputError);
}

// Lines that are JSON and cannot be of this search.
TEST(LiveTuner, RefusesEntriesThatCannotBe) {
  const Scratch scratch;
  const std::string path = scratch.path("tune.jsonl");
  undisturbed(path);
  // As from before checksums, which would say all of it first.
  const std::string whole =
      std::regex_replace(text_of(path), std::regex(",\"sum\":\"[0-9a-f]{16}\""), "");
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    write_text(path, text);
    return test::input_error([&] { undisturbed(path); });
  };
  for (const auto& [from, to, why] : std::vector<std::tuple<const char*, const char*, const char*>>{
           {R"("evaluation":1)", R"("evaluation":4)", "line 3: evaluation"},
           {R"("candidate":)", R"("candidate":1000)", "line 2: candidate"},
           {R"("candidate":)", R"("candidate":0.5,"x":)", path.c_str()},
           {"buckets", "baskets", "line 2: name"},
           {R"("step_time_s":)", R"("step_time_s":-)", "line 2: step_time_s"},
           {R"("step_time_s":)", R"("step_time_s":null,"x":)", path.c_str()}}) {
    EXPECT_TRUE(test::contains(refused(from, to), why)) << refused(from, to);
  }
}

TEST(LiveObjective, SummaryIsMeanAndItsError) {
  const Measurement four = summary({1, 2, 3, 4});
  EXPECT_EQ(four.step_time, 2.5);
  EXPECT_NEAR(four.standard_error, std::sqrt(5.0 / 3 / 4), 1e-12);
  EXPECT_EQ(summary({2}).standard_error, 0);
}

// The emulated noise is what it says: 2 % a step, so 2 % / sqrt(50) an evaluation.
TEST(LiveObjective, EmulatedNoiseIsAsStated) {
  const auto machine = emulated_objective([](const Candidate&) { return 2.0; }, 0.02);
  double squares = 0;
  constexpr int kCount = 2000;
  for (int i = 0; i < kCount; ++i) {
    const Measurement measured = machine.measure({}, {i, 50, 3});
    squares += (measured.step_time / 2 - 1) * (measured.step_time / 2 - 1) / kCount;
  }
  EXPECT_NEAR(std::sqrt(squares), 0.02 / std::sqrt(50.0), 1e-4);
  EXPECT_EQ(machine.measure({}, {4, 50, 3}).step_time, machine.measure({}, {4, 50, 3}).step_time);
  EXPECT_NE(machine.measure({}, {4, 50, 3}).step_time, machine.measure({}, {5, 50, 3}).step_time);
}

}  // namespace
}  // namespace syncline::tune
