#include "cli/live.h"
#include "cli/interrupt.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <thread>

#include "core/error.h"
#include "core/measure/study.h"
#include "core/tune/live_space.h"
#include "core/tune/search_space.h"
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
  WatchedObjective(LiveObjective& machine, int budget, double pace)
      : machine_(machine), budget_(budget), pace_(pace) {}

  std::string source() const override { return machine_.source(); }
  Measurement measure(const Candidate& candidate, const Evaluation& evaluation) override {
    std::cerr << "evaluation " << evaluation.number + 1 << " of at most " << budget_ << ": "
              << one_line(candidate.name) << ": " << std::flush;
    const Measurement measured = machine_.measure(candidate, evaluation);
    if (pace_ > 0) {
      const double seconds = measured.step_time * evaluation.steps * pace_;
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    }
    std::cerr << seconds_text(measured.step_time) << " a step" << std::endl;
    return measured;
  }

 private:
  LiveObjective& machine_;
  int budget_;
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

int tune_live_verb(const LiveVerbOptions& options, const Document& document,
                   const std::function<bool()>& interrupted) {
  const GuideFactors error = guide_error(options.wrong);
  const Document fitted = calibrated(document);
  const Scenario scenario = parse_scenario(fitted);
  const auto own = parse_search(fitted, scenario);

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
  std::cerr << "ranking the candidates by the model" << std::endl;
  report.problem =
      live_problem(scaled_scenario(scenario, error), own ? *own : default_search(scenario));

  Truth truth(scenario);
  EmulatedObjective emulated(
      [&](const Candidate& candidate) { return truth.step_time(candidate.strategy); },
      options.noise / 100);
  WatchedObjective machine(emulated, options.budget, options.pace);
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

  EmulatedTruth& known = report.truth.emplace();
  known.best = known.least = truth.step_time(report.best().strategy);
  known.baseline = truth.step_time(baseline_of(scenario));
  for (const auto& candidate : report.problem.candidates) {
    known.least = std::min(known.least, truth.step_time(candidate.strategy));
  }
  if (!options.emit.empty()) {
    report.emitted_dialect = options.emit;
    report.emitted = truth.emitted(*find_dialect(options.emit), report.best().strategy);
  }
  std::cout << printed(report, options.format);
  if (report.tuning.complete) return 0;
  std::cout.flush();
  std::cerr << resume_advice(report.tuning, report.settings.search, journal.get(), options.command)
            << "\n";
  return kInterruptedExit;
}

}  // namespace syncline
