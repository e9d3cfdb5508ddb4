// Runs a search on a machine: asks the search for the next candidate, measures it and writes it
// into the journal. It ends if the search stops, the budget is spent or the user interrupts.
// Restarted with the same journal it repeats no finished evaluation and ends with the same answer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "studies/machines/bayesian_search.h"
#include "studies/machines/journal.h"
#include "studies/machines/live_space.h"
#include "studies/tune/dialect_search.h"

namespace syncline::tune {

// One evaluation of a search. `number` counts from 0 over the whole search, resumed or not. Random
// objectives draw by seed and number, so that a resumed search sees the values of an uninterrupted
// one.
struct Evaluation {
  int number = 0;
  int steps = 50;
  std::uint64_t seed = 1;
};

struct Measurement {
  Seconds step_time = 0;       // mean over the steps
  Seconds standard_error = 0;  // error of `step_time`, from the spread of the steps
};

// Returns mean and standard error (0 for one step) of single steps. Requires at least one.
Measurement summary(const std::vector<Seconds>& steps);

// Objective of a live search: the step time of a candidate on some machine.
struct LiveObjective {
  // Origin of the figures: "measured with gloo on 2 nodes", "emulated, 2 % noise".
  std::string source;
  // Runs `steps` training steps with the candidate. Throws MachineError.
  std::function<Measurement(const Candidate&, const Evaluation&)> measure;
};

// Returns a machine with the given true step time and normal noise on each step of `noise` times
// the truth. The noise depends only on candidate and evaluation.
LiveObjective emulated_objective(std::function<Seconds(const Candidate&)> truth, double noise);

// Callbacks when a measurement begins and ends, for progress lines and for emulations that take the
// time of a machine.
struct MeasurementWatch {
  std::function<void(const Candidate&, const Evaluation&)> begins = [](const Candidate&,
                                                                       const Evaluation&) {};
  std::function<void(const Evaluation&, const Measurement&)> ends = [](const Evaluation&,
                                                                       const Measurement&) {};
};
LiveObjective watch_objective(LiveObjective machine, MeasurementWatch watch);

struct LiveSettings {
  SearchSettings search;
  std::uint64_t seed = 1;
  // Returns true to end the search with the observations so far; called before each evaluation.
  std::function<bool()> interrupted = [] { return false; };
};

struct LiveTuning {
  std::vector<Observation> observations;  // in order
  std::size_t resumed = 0;                // observations that came from the journal
  SearchState state;
  bool complete = true;  // false: interrupted
  std::string source;    // origin of the figures
};

// Runs the search. If `journal` is null, no observation is stored. Throws InputError if the
// journal's entries cannot be from this search, MachineError as objective and journal do.
LiveTuning tune_live(const SearchProblem& problem, const LiveSettings& settings,
                     const LiveObjective& objective, Journal* journal);

// Returns the header of a search's journal: all settings that decide its evaluations and
// measurements. Budget and stopping rule are not included, so that a longer search continues a
// shorter one. `scenario` is any text that identifies the scenario, for example the document.
Json journal_header(const std::string& scenario, const SearchProblem& problem,
                    const LiveSettings& settings, const LiveObjective& objective);

// Returns the message after an interrupted search: its progress and how to continue. `command` is
// the command line to repeat; `journal` is null if there is none.
std::string resume_advice(const LiveTuning& tuning, const SearchSettings& settings,
                          const Journal* journal, const std::string& command);

// True quality of the answer: known for an emulated machine, and after a measured sweep over all
// candidates.
struct KnownTruth {
  bool measured = false;  // true: by a sweep over all candidates
  Seconds best = 0;       // the answer's true step time
  Seconds least = 0;      // least of all candidates
  Seconds baseline = 0;   // the scenario's baseline
};

// A whole search: the scenario's candidates as ranked by the model, their measurements, and the
// quality of the answer, if known.
struct LiveReport {
  std::string scenario;  // names from the scenario
  std::string workload;
  std::string cluster;
  std::string baseline;
  std::string member;  // model that ranked the candidates, in words
  SearchProblem problem;
  LiveSettings settings;
  LiveTuning tuning;
  std::optional<KnownTruth> truth;
  std::optional<Emitted> emitted;
  std::string emitted_dialect;

  const Candidate& best() const { return problem.candidates[tuning.state.best]; }
};

// Returns a report with the names and the problem: the scenario's candidates, ranked by a model
// with latencies and bandwidths off by `error`. `all`: no candidate is dropped, so that a sweep
// shows the cost of dropping some.
LiveReport begin_report(const Scenario& scenario, const Search& search, const MemberFactors& error,
                        bool all);

// Searches on an emulated machine, this model of the report's scenario with `noise` on each step.
// Fills in tuning and truth. `journal` returns tune_live's journal for an objective.
void search_emulated(Evaluator& model, double noise, const MeasurementWatch& watch,
                     const std::function<Journal*(const LiveObjective&)>& journal,
                     LiveReport& report);

}  // namespace syncline::tune
