#include "cli/live.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <thread>

#include "cli/interrupt.h"
#include "core/error.h"
#include "core/fingerprint.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/measure/study.h"
#include "core/plan/planner.h"
#include "core/run/model_executor.h"
#include "core/tune/live_space.h"
#include "core/tune/search_space.h"
#include "live/link_calibration.h"
#include "live/value_check.h"
#include "reports/format.h"
#include "reports/live_report.h"

namespace syncline {
namespace {

// "latency=2,bandwidth=0.5": what the guiding model takes for the machine's, as factors of them.
GuideFactors guide_error(const std::string& text) {
  constexpr double kMost = 1000;
  GuideFactors error;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    double factor = 0;
    if (equals != std::string::npos) {
      const char* last = part.data() + part.size();
      const auto read = std::from_chars(part.data() + equals + 1, last, factor);
      if (read.ec != std::errc() || read.ptr != last) factor = 0;
    }
    const bool known = key == "latency" || key == "bandwidth";
    if (!known || !(factor >= 1 / kMost && factor <= kMost)) {
      throw InputError("--wrong: found '" + part +
                       "', expected latency=FACTOR or bandwidth=FACTOR, from 0.001 to 1000");
    }
    (key == "latency" ? error.latency : error.transfer) = key == "latency" ? factor : 1 / factor;
    begin = end + 1;
  }
  return error;
}

std::string guide_words(const GuideFactors& error) {
  std::string words = "the closed-form model";
  if (error.latency == 1 && error.transfer == 1) return words;
  words += ", made wrong on purpose: latency x";
  return words + plain_number(error.latency) + ", bandwidth x" + plain_number(1 / error.transfer);
}

// Prices strategies on the scenario as it stands.
class Truth {
 public:
  explicit Truth(const Scenario& scenario)
      : scenario_(scenario),
        book_(scenario.cluster),
        executor_(make_model_executor({scenario.cluster, scenario.simulation, scenario.seed})) {}

  Seconds step_time(const Strategy& strategy) {
    return price_strategy(scenario_, strategy, *executor_, book_).metrics.step_time;
  }
  Emitted emitted(const Dialect& dialect, const Strategy& strategy) {
    return best_config(dialect, strategy, scenario_, *executor_, book_);
  }

 private:
  const Scenario& scenario_;
  PriceBook book_;
  std::unique_ptr<Executor> executor_;
};

// Says on stderr what is being measured, and takes the time that the machine would.
class WatchedObjective final : public LiveObjective {
 public:
  // Says "WHAT 3 of COUNT: ...".
  WatchedObjective(LiveObjective& machine, std::string what, std::string count, double pace)
      : machine_(machine), what_(std::move(what)), count_(std::move(count)), pace_(pace) {}

  std::string source() const override { return machine_.source(); }
  Measurement measure(const Candidate& candidate, const Evaluation& evaluation) override {
    // Whole lines: a failure of the machine is told on one of its own.
    const std::string which =
        what_ + " " + std::to_string(evaluation.number + 1) + " of " + count_ + ": ";
    std::cerr << which << one_line(candidate.name) << std::endl;
    const Measurement measured = machine_.measure(candidate, evaluation);
    if (pace_ > 0) {
      const double seconds = measured.step_time * evaluation.steps * pace_;
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    }
    std::cerr << which << seconds_text(measured.step_time) << " a step" << std::endl;
    return measured;
  }

 private:
  LiveObjective& machine_;
  std::string what_;
  std::string count_;
  double pace_;
};

std::string printed(const LiveReport& report, const std::string& format) {
  if (format == "json") return live_json(report);
  if (format == "markdown") return live_markdown(report);
  if (format == "csv") return live_csv(report);
  return live_text(report);
}

// Which machine the search believes in is part of what it is.
std::string identity(const Document& document, const LiveVerbOptions& options) {
  return document.root.dump() + "\n" + options.wrong;
}

const Strategy& baseline_of(const Scenario& scenario) {
  return *std::find_if(scenario.strategies.begin(), scenario.strategies.end(),
                       [&](const Strategy& s) { return s.name == scenario.baseline; });
}

}  // namespace

namespace {

// What every rank of a live search knows alike: the candidates and how they are ranked.
LiveReport begun(const LiveVerbOptions& options, const Scenario& scenario, const Search& search,
                 const std::function<bool()>& interrupted) {
  const GuideFactors error = guide_error(options.wrong);
  LiveReport report;
  report.scenario = scenario.name;
  report.workload = scenario.workload.name;
  report.cluster = scenario.cluster.name;
  report.baseline = scenario.baseline;
  report.guide = guide_words(error);
  report.settings.search.budget = options.budget;
  report.settings.search.steps = options.steps;
  report.settings.seed = options.seed;
  report.settings.interrupted = interrupted;
  LiveSpace space;
  if (options.exhaustive) {
    // Nothing is left out beforehand: the sweep is to show what that would have cost.
    space.most_rules = 100000;
    space.margin = 1000;
  }
  report.problem = live_problem(scaled_scenario(scenario, error), search, space);
  return report;
}

// Searches, with the journal if there is one. Gives what to say where it was interrupted.
std::string search_on(LiveObjective& machine, const LiveVerbOptions& options,
                      const Document& document, LiveReport& report) {
  std::unique_ptr<Journal> journal;
  if (!options.journal.empty()) {
    const Json header =
        journal_header(identity(document, options), report.problem, report.settings, machine);
    journal = std::make_unique<Journal>(options.journal, header);
    const std::size_t known = journal->entries().size();
    if (known > 0) {
      std::cerr << "resumed: " << plural(known, "evaluation") << " from " << options.journal
                << std::endl;
    }
  }
  report.tuning = tune_live(report.problem, report.settings, machine, journal.get());
  return report.tuning.complete
             ? ""
             : resume_advice(report.tuning, report.settings.search, journal.get(), options.command);
}

int answer(const LiveReport& report, const LiveVerbOptions& options, const std::string& advice) {
  std::cout << printed(report, options.format);
  if (report.tuning.complete) return 0;
  std::cout.flush();
  std::cerr << advice << "\n";
  return kInterruptedExit;
}

void emit(const LiveVerbOptions& options, Truth& truth, LiveReport& report) {
  if (options.emit.empty()) return;
  report.emitted_dialect = options.emit;
  report.emitted = truth.emitted(*find_dialect(options.emit), report.best().strategy);
}

// The ranks of a live backend run candidates together. Rank 0 searches and says which; the others
// follow.
class RanksObjective final : public LiveObjective {
 public:
  RanksObjective(Meeting& meeting, const Scenario& scenario, const SearchProblem& problem,
                 const LiveVerbOptions& options)
      : meeting_(meeting),
        scenario_(scenario),
        problem_(problem),
        backend_(options.machine),
        check_(!options.no_check),
        executor_(backend_named(options.machine)(scenario.workload, meeting)) {
    input_.resize(static_cast<std::size_t>(meeting.ranks()));
  }

  std::string source() const override {
    return "measured with " + backend_ + " on " +
           plural(static_cast<std::size_t>(meeting_.ranks()), "rank");
  }

  Measurement measure(const Candidate& candidate, const Evaluation& evaluation) override {
    const auto index = static_cast<std::size_t>(&candidate - problem_.candidates.data());
    meeting_.from_first(std::to_string(index) + " " + std::to_string(evaluation.steps),
                        Meeting::kPatient);
    return run(candidate.strategy, evaluation.steps);
  }

  // The baseline, which need not be a candidate.
  Measurement measure_baseline(int steps) {
    meeting_.from_first("baseline " + std::to_string(steps), Meeting::kPatient);
    return run(baseline_of(scenario_), steps);
  }

  // What ranks other than 0 do, until rank 0 is done.
  void follow() {
    for (;;) {
      const std::string order = meeting_.from_first("", Meeting::kPatient);
      const auto space = order.find(' ');
      if (space == std::string::npos) return;
      const int steps = std::stoi(order.substr(space));
      const bool baseline = order.rfind("baseline", 0) == 0;
      run(baseline ? baseline_of(scenario_) : problem_.candidates[std::stoul(order)].strategy,
          steps);
    }
  }

  void dismiss() { meeting_.from_first("done", Meeting::kPatient); }

 private:
  static constexpr std::uint64_t kSeed = 1;

  RankGradients& own_input() { return input_[static_cast<std::size_t>(meeting_.rank())]; }

  Measurement run(const Strategy& strategy, int steps) {
    const Plan plan = make_plan(scenario_.workload, scenario_.cluster, strategy);
    const SampleValues values = exact_values(plan);
    if (own_input().empty() || values != values_) {
      values_ = values;
      own_input() =
          sample_gradients(scenario_.workload, meeting_.rank(), meeting_.ranks(), kSeed, values);
    }
    constexpr int kWarmup = 1;
    const int periods = (steps + plan.steps - 1) / plan.steps;
    Outcome outcome = executor_->run(plan, input_, kWarmup + std::max(2, periods));
    const auto& ends = outcome.timeline.period_ends;
    std::vector<Seconds> lengths;
    for (std::size_t p = kWarmup; p < ends.size(); ++p) {
      lengths.push_back((ends[p] - ends[p - 1]) / plan.steps);
    }
    const auto rank = static_cast<std::size_t>(meeting_.rank());
    if (check_ &&
        !values_match(meeting_, scenario_.workload, plan, outcome.gradients[rank], kSeed, values)) {
      throw MachineError("'" + one_line(strategy.name) +
                         "' did not end with the values of the host executor");
    }
    return summary(lengths);
  }

  Meeting& meeting_;
  const Scenario& scenario_;
  const SearchProblem& problem_;
  std::string backend_;
  bool check_;
  std::unique_ptr<LiveExecutor> executor_;
  Gradients input_;
  SampleValues values_ = SampleValues::kIntegers;
};

// Every candidate as the machine has it: how good the answer is in truth.
KnownTruth sweep(RanksObjective& machine, const LiveReport& report) {
  WatchedObjective watched(machine, "sweep", std::to_string(report.problem.candidates.size()), 0);
  KnownTruth truth;
  truth.measured = true;
  Evaluation evaluation{0, report.settings.search.steps, report.settings.seed};
  const auto& candidates = report.problem.candidates;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    evaluation.number = static_cast<int>(i);
    const Seconds time = watched.measure(candidates[i], evaluation).step_time;
    if (i == 0 || time < truth.least) truth.least = time;
    if (i == report.tuning.state.best) truth.best = time;
  }
  truth.baseline = machine.measure_baseline(evaluation.steps).step_time;
  return truth;
}

int tune_on_ranks(const LiveVerbOptions& options, const Document& document, Meeting& meeting,
                  const std::function<bool()>& interrupted) {
  Scenario scenario = parse_scenario(calibrated(document));
  const auto own = parse_search(document, scenario);
  if (scenario.cluster.ranks() != meeting.ranks()) {
    throw InputError(document.file + ": cluster: has " + std::to_string(scenario.cluster.ranks()) +
                     " ranks, but " + std::to_string(meeting.ranks()) + " were started");
  }
  const bool first = meeting.rank() == 0;
  if (options.calibrate) {
    if (first) std::cerr << "calibrating the links" << std::endl;
    scenario.cluster =
        calibrate_links(meeting, backend_named(options.machine), scenario.cluster, {}).cluster;
  }
  if (first) std::cerr << "ranking the candidates by the model" << std::endl;
  LiveReport report = begun(options, scenario, own ? *own : default_search(scenario), interrupted);
  RanksObjective machine(meeting, scenario, report.problem, options);
  if (!first) {
    machine.follow();
    return 0;
  }
  WatchedObjective watched(machine, "evaluation", "at most " + std::to_string(options.budget), 0);
  const std::string advice = search_on(watched, options, document, report);
  if (options.exhaustive && report.tuning.complete) {
    std::cerr << "every candidate, to see how good that is" << std::endl;
    report.truth = sweep(machine, report);
  }
  machine.dismiss();
  Truth model(scenario);
  emit(options, model, report);
  return answer(report, options, advice);
}

}  // namespace

int tune_live_verb(const LiveVerbOptions& options, const Document& document,
                   const std::function<bool()>& interrupted) {
  if (options.machine != "emulated") {
    const std::string key =
        fingerprint(identity(document, options) + options.machine + std::to_string(options.steps));
    return with_ranks(options.ranks, key, [&](Meeting& meeting) {
      return tune_on_ranks(options, document, meeting, interrupted);
    });
  }
  const Document fitted = calibrated(document);
  const Scenario scenario = parse_scenario(fitted);
  const auto own = parse_search(fitted, scenario);
  std::cerr << "ranking the candidates by the model" << std::endl;
  LiveReport report = begun(options, scenario, own ? *own : default_search(scenario), interrupted);

  Truth truth(scenario);
  EmulatedObjective emulated(
      [&](const Candidate& candidate) { return truth.step_time(candidate.strategy); },
      options.noise / 100);
  WatchedObjective machine(emulated, "evaluation", "at most " + std::to_string(options.budget),
                           options.pace);
  const std::string advice = search_on(machine, options, document, report);

  KnownTruth& known = report.truth.emplace();
  known.best = known.least = truth.step_time(report.best().strategy);
  known.baseline = truth.step_time(baseline_of(scenario));
  for (const auto& candidate : report.problem.candidates) {
    known.least = std::min(known.least, truth.step_time(candidate.strategy));
  }
  emit(options, truth, report);
  return answer(report, options, advice);
}

}  // namespace syncline
