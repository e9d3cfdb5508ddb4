#include "core/tune/live_tuner.h"

#include <cmath>

#include "core/digits.h"

namespace syncline::tune {
namespace {

Json entry_of(const SearchProblem& problem, std::size_t number, const Observation& seen) {
  return {{"evaluation", number},
          {"candidate", seen.candidate},
          {"name", problem.candidates[seen.candidate].name},
          {"step_time_s", seen.step_time},
          {"standard_error_s", seen.standard_error}};
}

double number_of(const Journal& journal, std::size_t index, const char* key) {
  const Json& entry = journal.entries()[index];
  const auto it = entry.find(key);
  if (it == entry.end() || !it->is_number()) {
    journal.refuse(index, std::string(key) + ": a number is missing");
  }
  return it->get<double>();
}

// An entry as an observation of this problem; every way in which it cannot be one is refused.
Observation observation_of(const SearchProblem& problem, const Journal& journal,
                           std::size_t index) {
  if (number_of(journal, index, "evaluation") != static_cast<double>(index)) {
    journal.refuse(
        index, "evaluation: expected " + std::to_string(index) + ": lines are missing or repeated");
  }
  Observation seen;
  const double candidate = number_of(journal, index, "candidate");
  const auto count = static_cast<double>(problem.candidates.size());
  if (!(candidate >= 0 && candidate < count && candidate == std::floor(candidate))) {
    journal.refuse(index, "candidate: this search has " +
                              std::to_string(problem.candidates.size()) + " of them");
  }
  seen.candidate = static_cast<std::size_t>(candidate);
  const Json& entry = journal.entries()[index];
  if (entry.value("name", Json()) != Json(problem.candidates[seen.candidate].name)) {
    journal.refuse(index, "name: candidate " + std::to_string(seen.candidate) + " is \"" +
                              problem.candidates[seen.candidate].name + "\" in this search");
  }
  seen.step_time = number_of(journal, index, "step_time_s");
  seen.standard_error = number_of(journal, index, "standard_error_s");
  if (!(seen.step_time > 0 && seen.standard_error >= 0)) {
    journal.refuse(index, "step_time_s: a step takes time");
  }
  return seen;
}

}  // namespace

LiveTuning tune_live(const SearchProblem& problem, const LiveSettings& settings,
                     LiveObjective& objective, Journal* journal) {
  LiveTuning tuning;
  tuning.source = objective.source();
  if (journal != nullptr) {
    for (std::size_t i = 0; i < journal->entries().size(); ++i) {
      tuning.observations.push_back(observation_of(problem, *journal, i));
      settings.progress(tuning.observations.size());
    }
    tuning.resumed = tuning.observations.size();
  }
  tuning.state = search_state(problem, settings.search, tuning.observations);
  while (tuning.state.next) {
    if (settings.interrupted()) {
      tuning.complete = false;
      return tuning;
    }
    const std::size_t candidate = *tuning.state.next;
    const std::size_t number = tuning.observations.size();
    const Measurement measured =
        objective.measure(problem.candidates[candidate],
                          {static_cast<int>(number), settings.search.steps, settings.seed});
    const Observation seen{candidate, measured.step_time, measured.standard_error};
    if (journal != nullptr) journal->append(entry_of(problem, number, seen));
    tuning.observations.push_back(seen);
    settings.progress(tuning.observations.size());
    tuning.state = search_state(problem, settings.search, tuning.observations);
  }
  return tuning;
}

Json journal_header(const std::string& scenario, const SearchProblem& problem,
                    const LiveSettings& settings, const LiveObjective& objective) {
  std::string candidates;
  for (const auto& candidate : problem.candidates) candidates += candidate.name + "\n";
  return {
      {"journal", "syncline tune"},        {"version", 1},
      {"scenario", fingerprint(scenario)}, {"candidates", fingerprint(candidates)},
      {"source", objective.source()},      {"seed", settings.seed},
      {"steps", settings.search.steps},    {"model_deviation", settings.search.model_deviation}};
}

std::string resume_advice(const LiveTuning& tuning, const SearchSettings& settings,
                          const Journal* journal, const std::string& command) {
  const std::string far = "interrupted after " + std::to_string(tuning.observations.size()) +
                          " of at most " + std::to_string(settings.budget) + " evaluations";
  if (journal == nullptr) return far + "; without a journal they are lost";
  return far + ", all of them in " + journal->path() + "; to go on from there, repeat: " + command;
}

}  // namespace syncline::tune
