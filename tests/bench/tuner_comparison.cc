// Our tuner chooses buckets, guided by a model whose latency and time a byte may be wrong by a
// stated factor; Horovod's chooses threshold and cycle time and knows no model. One evaluation is
// 50 steps for both, with the same noise a step. The regret is the true step time of the answer
// over the optimum, in percent of the whole iteration; the cost of tuning is the mean true regret
// of the evaluations on the way.
#include "tests/bench/tuner_comparison.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "core/base/statistics.h"
#include "core/run/stragglers.h"
#include "studies/machines/live_tuner.h"

namespace syncline::test {
namespace {

double percent_over(Seconds time, Seconds optimum) { return 100 * (time / optimum - 1); }

// The scores of single searches, gathered.
class Scores {
 public:
  void add(double regret, const std::vector<double>& on_the_way) {
    regrets_.push_back(regret);
    cost_ += std::accumulate(on_the_way.begin(), on_the_way.end(), 0.0);
    evaluations_ += static_cast<double>(on_the_way.size());
    most_evaluations_ = std::max(most_evaluations_, static_cast<int>(on_the_way.size()));
  }

  TunerScore score() const {
    TunerScore score;
    score.median = percentile(regrets_, 0.5);
    score.least = percentile(regrets_, 0);
    score.most = percentile(regrets_, 1);
    score.tuning_cost = cost_ / evaluations_;
    score.evaluations = evaluations_ / static_cast<double>(regrets_.size());
    score.most_evaluations = most_evaluations_;
    return score;
  }

 private:
  std::vector<double> regrets_;
  double cost_ = 0;
  double evaluations_ = 0;
  int most_evaluations_ = 0;
};

std::string score_text(const TunerScore& score) {
  char text[128];
  std::snprintf(text, sizeof text, "%6.2f %6.2f %6.2f %8.2f %6.1f", score.median, score.least,
                score.most, score.tuning_cost, score.evaluations);
  return text;
}

}  // namespace

TunerScore score_bayesian_search(const NoisyCase& noisy, const MemberError& error,
                                 const NoisySettings& settings) {
  const AffineCost member{noisy.truth.latency * error.latency,
                          noisy.truth.seconds_per_byte * error.transfer};
  const tune::SearchProblem problem = bucket_problem(noisy.trace, member);
  const auto truth = [&](const tune::Candidate& candidate) {
    return step_time(noisy.trace, candidate, noisy.truth);
  };
  const tune::LiveObjective machine = tune::emulated_objective(truth, settings.noise);
  const Seconds optimum = optimal_step_time(noisy.trace, noisy.truth);
  Scores scores;
  for (int seed = 1; seed <= settings.seeds; ++seed) {
    std::vector<tune::Observation> seen;
    std::vector<double> on_the_way;
    tune::SearchState state = tune::search_state(problem, settings.search, seen);
    while (state.next) {
      const tune::Candidate& candidate = problem.candidates[*state.next];
      const tune::Evaluation evaluation{static_cast<int>(seen.size()), settings.search.steps,
                                        static_cast<std::uint64_t>(seed)};
      const tune::Measurement measured = machine.measure(candidate, evaluation);
      seen.push_back({*state.next, measured.step_time, measured.standard_error});
      on_the_way.push_back(percent_over(truth(candidate), optimum));
      state = tune::search_state(problem, settings.search, seen);
    }
    scores.add(percent_over(truth(problem.candidates[state.best]), optimum), on_the_way);
  }
  return scores.score();
}

TunerScore score_horovod(const NoisyCase& noisy, const NoisySettings& settings) {
  const Seconds optimum = optimal_step_time(noisy.trace, noisy.truth);
  const auto& sizes = noisy.trace.gradients.bytes;
  const double bytes = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  Jitter noise;
  noise.kind = Jitter::Kind::kNormal;
  noise.relative = settings.noise;
  Scores scores;
  for (int seed = 1; seed <= settings.seeds; ++seed) {
    // The truth of the knobs at hand is evaluated once; each step of it is drawn again.
    HorovodKnobs evaluated{-1, -1};
    Seconds truth = 0;
    std::int64_t step = 0;
    const auto tuning = emulate_horovod_autotune(
        bytes, static_cast<std::uint64_t>(seed), [&](const HorovodKnobs& knobs) {
          if (knobs.threshold_mib != evaluated.threshold_mib ||
              knobs.cycle_ms != evaluated.cycle_ms) {
            evaluated = knobs;
            truth = horovod_step_time(noisy.trace, noisy.truth, knobs);
          }
          return truth * run::jitter_factor(noise, static_cast<std::uint64_t>(seed), 0, step++);
        });
    std::vector<double> on_the_way;
    for (const auto& trial : tuning.trials) {
      const Seconds time = horovod_step_time(noisy.trace, noisy.truth, trial.knobs);
      on_the_way.push_back(percent_over(time, optimum));
    }
    scores.add(on_the_way[tuning.best], on_the_way);
  }
  return scores.score();
}

ComparedTuners compare_tuners(const NoisyCase& noisy, const std::vector<MemberError>& errors,
                              const NoisySettings& settings) {
  ComparedTuners row;
  row.noisy = noisy;
  row.optimum = optimal_step_time(noisy.trace, noisy.truth);
  row.horovod_default =
      percent_over(horovod_step_time(noisy.trace, noisy.truth, HorovodKnobs{}), row.optimum);
  row.horovod = score_horovod(noisy, settings);
  for (const auto& error : errors) {
    row.ours.emplace_back(error, score_bayesian_search(noisy, error, settings));
  }
  return row;
}

std::string comparison_table(const std::vector<ComparedTuners>& rows) {
  char line[256];
  std::vector<std::string> names;
  int width = 0;
  for (const auto& row : rows) {
    std::snprintf(line, sizeof line, "%s, %s (%.2f ms)", row.noisy.model.c_str(),
                  row.noisy.network.c_str(), row.optimum / kMillisecond);
    names.emplace_back(line);
    width = std::max(width, static_cast<int>(names.back().size()));
  }
  std::string table =
      "Percent over the optimum (whole iteration); cost: mean over the evaluations on the way.\n"
      "Ours is guided by a model whose latency and time a byte are the truth's times two "
      "factors.\n";
  std::snprintf(line, sizeof line, "%-*s %-26s %6s %6s %6s %8s %6s\n", width, "case", "tuner",
                "median", "least", "most", "cost", "evals");
  table += line;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto add = [&](const std::string& tuner, const std::string& text) {
      std::snprintf(line, sizeof line, "%-*s %-26s %s\n", width, names[i].c_str(), tuner.c_str(),
                    text.c_str());
      table += line;
    };
    std::snprintf(line, sizeof line, "%6.2f", rows[i].horovod_default);
    add("Horovod default", std::string(line));
    add("Horovod autotune", score_text(rows[i].horovod));
    for (const auto& [error, score] : rows[i].ours) {
      char tuner[64];
      std::snprintf(tuner, sizeof tuner, "ours, guide x%g x%g", error.latency, error.transfer);
      add(tuner, score_text(score));
    }
  }
  return table;
}

}  // namespace syncline::test
