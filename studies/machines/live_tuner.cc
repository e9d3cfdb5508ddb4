#include "studies/machines/live_tuner.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>

#include "core/run/stragglers.h"
#include "formats/text/fingerprint.h"

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

// Returns an entry as an observation of this problem. Throws InputError if it cannot be one.
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

Measurement summary(const std::vector<Seconds>& steps) {
  assert(!steps.empty() && "a mean is of something");
  const auto count = static_cast<double>(steps.size());
  Measurement result;
  for (const auto step : steps) result.step_time += step / count;
  if (steps.size() < 2) return result;
  double squares = 0;
  for (const auto step : steps) {
    squares += (step - result.step_time) * (step - result.step_time);
  }
  result.standard_error = std::sqrt(squares / (count - 1) / count);
  return result;
}

LiveObjective emulated_objective(std::function<Seconds(const Candidate&)> truth, double noise) {
  char source[64];
  std::snprintf(source, sizeof source, "emulated, %g %% noise per step", noise * 100);
  return {source, [truth = std::move(truth), noise](const Candidate& candidate,
                                                    const Evaluation& evaluation) {
            const Seconds time = truth(candidate);
            Jitter jitter;
            if (noise > 0) {
              jitter.kind = Jitter::Kind::kNormal;
              jitter.relative = noise;
            }
            std::vector<Seconds> steps;
            for (int step = 0; step < evaluation.steps; ++step) {
              steps.push_back(time *
                              run::jitter_factor(jitter, evaluation.seed, evaluation.number, step));
            }
            return summary(steps);
          }};
}

LiveObjective watch_objective(LiveObjective machine, MeasurementWatch watch) {
  const std::string source = machine.source;
  return {source, [machine = std::move(machine), watch = std::move(watch)](
                      const Candidate& candidate, const Evaluation& evaluation) {
            watch.begins(candidate, evaluation);
            const Measurement measured = machine.measure(candidate, evaluation);
            watch.ends(evaluation, measured);
            return measured;
          }};
}

LiveTuning tune_live(const SearchProblem& problem, const LiveSettings& settings,
                     const LiveObjective& objective, Journal* journal) {
  LiveTuning tuning;
  tuning.source = objective.source;
  if (journal != nullptr) {
    for (std::size_t i = 0; i < journal->entries().size(); ++i) {
      tuning.observations.push_back(observation_of(problem, *journal, i));
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
      {"source", objective.source},        {"seed", settings.seed},
      {"steps", settings.search.steps},    {"model_deviation", settings.search.model_deviation}};
}

std::string resume_advice(const LiveTuning& tuning, const SearchSettings& settings,
                          const Journal* journal, const std::string& command) {
  const std::string far = "interrupted after " + std::to_string(tuning.observations.size()) +
                          " of at most " + std::to_string(settings.budget) + " evaluations";
  if (journal == nullptr) return far + "; without a journal they are lost";
  return far + ", all of them in " + journal->path() + "; to go on from there, repeat: " + command;
}

LiveReport begin_report(const Scenario& scenario, const Search& search, const MemberFactors& error,
                        bool all) {
  LiveReport report;
  report.scenario = scenario.name;
  report.workload = scenario.workload.name;
  report.cluster = scenario.cluster.name;
  report.baseline = scenario.baseline;
  LiveSpace space;
  if (all) {
    space.most_rules = 100000;
    space.margin = 1000;
  }
  report.problem = live_problem(scaled_scenario(scenario, error), search, space);
  return report;
}

void search_emulated(Evaluator& model, double noise, const MeasurementWatch& watch,
                     const std::function<Journal*(const LiveObjective&)>& journal,
                     LiveReport& report) {
  const auto truth = [&](const Candidate& candidate) {
    return model.step_time(candidate.strategy);
  };
  const LiveObjective machine = watch_objective(emulated_objective(truth, noise), watch);
  report.tuning = tune_live(report.problem, report.settings, machine, journal(machine));
  KnownTruth& known = report.truth.emplace();
  known.best = known.least = truth(report.best());
  known.baseline = model.step_time(*find_strategy(model.scenario(), report.baseline));
  for (const auto& candidate : report.problem.candidates) {
    known.least = std::min(known.least, truth(candidate));
  }
}

}  // namespace syncline::tune
