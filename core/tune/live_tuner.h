// A search on a machine from start to end: asks the search what to measure next, measures it,
// writes it into the journal, and so on until the search stops, the budget is spent or someone
// interrupts. Killed at any moment and started again with the same journal it repeats no finished
// evaluation and ends with the same answer.
#pragma once

#include <functional>
#include <string>

#include "core/tune/bayesian_search.h"
#include "core/tune/journal.h"
#include "core/tune/live_objective.h"

namespace syncline::tune {

struct LiveSettings {
  SearchSettings search;
  std::uint64_t seed = 1;
  // Called after each evaluation, those of the journal included, with the number done.
  std::function<void(std::size_t)> progress = [](std::size_t) {};
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
                     LiveObjective& objective, Journal* journal);

// The header of a search's journal: what decides which evaluations come and what they measure. The
// budget and the stopping rule are not part of it: a longer search goes on from a shorter one.
// `scenario` is anything that identifies the scenario, for example the document's text.
Json journal_header(const std::string& scenario, const SearchProblem& problem,
                    const LiveSettings& settings, const LiveObjective& objective);

// What to say after an interrupted search: how far it came and how to go on. `command` is the
// command line to repeat, `journal` null if nothing was kept.
std::string resume_advice(const LiveTuning& tuning, const SearchSettings& settings,
                          const Journal* journal, const std::string& command);

}  // namespace syncline::tune
