// A search on a machine from start to end: asks the search what to measure next, measures it,
// writes it into the journal, and so on until the search stops, the budget is spent or someone
// interrupts. Killed at any moment and started again with the same journal it repeats no finished
// evaluation and ends with the same answer.
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

// One evaluation of a search. `number` counts from 0 over the whole search, resumed or not: an
// objective that draws at random draws by seed and number, so that a resumed search sees what an
// uninterrupted one would have seen.
struct Evaluation {
  int number = 0;
  int steps = 50;
  std::uint64_t seed = 1;
};

struct Measurement {
  Seconds step_time = 0;       // mean over the steps
  Seconds standard_error = 0;  // of that mean, from the spread of the steps
};

// Mean and standard error of single steps. Requires at least one; of one step the error is 0.
Measurement summary(const std::vector<Seconds>& steps);

// What a live search measures: the step time of a candidate on some machine.
struct LiveObjective {
  // Where the figures come from: "measured with gloo on 2 nodes", "emulated, 2 % noise".
  std::string source;
  // Runs `steps` training steps with the candidate. Throws MachineError.
  std::function<Measurement(const Candidate&, const Evaluation&)> measure;
};

// A machine whose true step time is a function, with normal noise on each step of `noise` times the
// truth. A pure function of candidate and evaluation.
LiveObjective emulated_objective(std::function<Seconds(const Candidate&)> truth, double noise);

// Told when a measurement begins and ends, for progress lines and for emulations that take the time
// that a machine would.
struct MeasurementWatch {
  std::function<void(const Candidate&, const Evaluation&)> begins = [](const Candidate&,
                                                                       const Evaluation&) {};
  std::function<void(const Evaluation&, const Measurement&)> ends = [](const Evaluation&,
                                                                       const Measurement&) {};
};
LiveObjective watched(LiveObjective machine, MeasurementWatch watch);

struct LiveSettings {
  SearchSettings search;
  std::uint64_t seed = 1;
  // Asked before each evaluation; true ends the search with what is known so far.
  std::function<bool()> interrupted = [] { return false; };
};

struct LiveTuning {
  std::vector<Observation> observations;  // in order
  std::size_t resumed = 0;                // of them, how many came from the journal
  SearchState state;
  bool complete = true;  // false: interrupted
  std::string source;    // of the figures
};

// `journal` may be null: nothing is kept then. Throws InputError if the journal's entries cannot be
// of this search, MachineError as objective and journal do.
LiveTuning tune_live(const SearchProblem& problem, const LiveSettings& settings,
                     const LiveObjective& objective, Journal* journal);

// The header of a search's journal: what decides which evaluations come and what they measure. The
// budget and the stopping rule are not part of it: a longer search goes on from a shorter one.
// `scenario` is anything that identifies the scenario, for example the document's text.
Json journal_header(const std::string& scenario, const SearchProblem& problem,
                    const LiveSettings& settings, const LiveObjective& objective);

// What to say after an interrupted search: how far it came and how to go on. `command` is the
// command line to repeat, `journal` null if nothing was kept.
std::string resume_advice(const LiveTuning& tuning, const SearchSettings& settings,
                          const Journal* journal, const std::string& command);

// How good the answer really is: known of an emulated machine, of others where a sweep over all
// candidates was measured.
struct KnownTruth {
  bool measured = false;  // by a sweep over all candidates
  Seconds best = 0;       // the answer's true step time
  Seconds least = 0;      // the least of all candidates
  Seconds baseline = 0;   // the scenario's baseline
};

// A search whole: the scenario's candidates as the model ranks them, what was measured of them, and
// how good the answer is in truth, where that is known.
struct LiveReport {
  std::string scenario;  // names, as the scenario gives them
  std::string workload;
  std::string cluster;
  std::string baseline;
  std::string member;  // what ranked the candidates, in words
  SearchProblem problem;
  LiveSettings settings;
  LiveTuning tuning;
  std::optional<KnownTruth> truth;
  std::optional<Emitted> emitted;
  std::string emitted_dialect;

  const Candidate& best() const { return problem.candidates[tuning.state.best]; }
};

// The scenario's candidates, ranked by a model whose latencies and bandwidths are off by `error`:
// the names and the problem. `all`: no candidate is left out beforehand, so that a sweep over them
// shows what leaving some out would have cost.
LiveReport begin_report(const Scenario& scenario, const Search& search, const MemberFactors& error,
                        bool all);

// The begun report's search on a machine that is this model of its scenario, with `noise` a step:
// fills tuning and truth. `journal` as in tune_live, of a search on this objective.
void search_emulated(Evaluator& model, double noise, const MeasurementWatch& watch,
                     const std::function<Journal*(const LiveObjective&)>& journal,
                     LiveReport& report);

}  // namespace syncline::tune
