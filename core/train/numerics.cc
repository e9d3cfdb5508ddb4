#include "core/train/numerics.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/input/document.h"
#include "core/train/throughput.h"

namespace syncline::train {
namespace {

// Jobs answer in text. Doubles come back as they were.
std::string packed(const Trained& run) {
  Json periods = Json::array();
  for (const auto& share : run.periods) periods.push_back({share.period, share.steps});
  Json seen = Json::array();
  // A loss that is no number has no JSON: it is nothing.
  for (const auto& at : run.seen) seen.push_back({at.step, at.test.loss, at.test.accuracy});
  return Json{{"train", {run.train.loss, run.train.accuracy}},
              {"test", {run.test.loss, run.test.accuracy}},
              {"diverged", run.diverged},
              {"steps", run.steps},
              {"synchronisations", run.synchronisations},
              {"sent_bytes", run.sent_bytes},
              {"periods", periods},
              {"seen", seen}}
      .dump();
}

Trained unpacked(const std::string& text) {
  const Json json = Json::parse(text);
  Trained run;
  run.diverged = json.at("diverged");
  run.steps = json.at("steps");
  run.synchronisations = json.at("synchronisations");
  run.sent_bytes = json.at("sent_bytes");
  for (const auto& share : json.at("periods")) run.periods.push_back({share[0], share[1]});
  for (const auto& at : json.at("seen")) {
    const double loss = at[1].is_null() ? std::nan("") : at[1].get<double>();
    run.seen.push_back({at[0], {loss, at[2]}});
  }
  if (run.diverged) return run;  // its scores may be no numbers
  run.train = {json.at("train")[0], json.at("train")[1]};
  run.test = {json.at("test")[0], json.at("test")[1]};
  return run;
}

template <typename Value>
std::vector<double> over_seeds(const std::vector<Trained>& runs, Value value) {
  std::vector<double> values;
  for (const auto& run : runs) values.push_back(value(run));
  return values;
}

std::vector<double> losses(const MethodResult& method) {
  return over_seeds(method.runs, [](const Trained& run) { return run.train.loss; });
}

}  // namespace

int MethodResult::diverged() const {
  return static_cast<int>(
      std::count_if(runs.begin(), runs.end(), [](const Trained& run) { return run.diverged; }));
}

SeedMean MethodResult::train_loss() const { return mean_of_seeds(losses(*this)); }

SeedMean MethodResult::test_accuracy() const {
  return mean_of_seeds(over_seeds(runs, [](const Trained& run) { return run.test.accuracy; }));
}

double MethodResult::synchronisations() const {
  return mean_of_seeds(over_seeds(runs,
                                  [](const Trained& run) {
                                    return static_cast<double>(run.synchronisations);
                                  }))
      .mean;
}

double MethodResult::sent_bytes() const {
  return mean_of_seeds(over_seeds(runs, [](const Trained& run) { return run.sent_bytes; })).mean;
}

std::optional<PairedDifference> ExperimentResult::over_first(const MethodResult& method) const {
  const MethodResult& first = methods.front();
  if (&method == &first || method.diverged() > 0 || first.diverged() > 0) return std::nullopt;
  return paired_difference(losses(method), losses(first));
}

Numerics run_numerics(const NumericsSettings& settings) {
  const std::int64_t half = std::max<std::int64_t>(1, settings.steps / 2);
  Experiment best = compression_experiment("DGC at 99.9 %", settings.steps, 0.2);
  best.about =
      "Of the rates 0.1, 0.2 and 0.3 dense momentum does best at this one (4,000 steps). The "
      "weights of "
      "the last layer and the biases, 1,546 parameters, are always dense.";
  Experiment large = compression_experiment("DGC at 99.9 %, too large a learning rate", half, 0.5);
  large.about =
      "At a rate that is too large for dense momentum, what makes a step coarser weighs more. "
      "Compared with the whole of DGC.";
  std::swap(large.methods[0], large.methods[1]);
  return run_numerics(settings, {best, large, local_sgd_experiment(half)});
}

Numerics run_numerics(const NumericsSettings& settings, std::vector<Experiment> experiments) {
  struct Piece {
    const Experiment& experiment;
    const TrainingMethod& method;
    std::uint64_t seed;
  };
  std::vector<Piece> pieces;
  constexpr std::int64_t kLooks = 40;
  for (auto& experiment : experiments) {
    const std::int64_t steps = *experiment.course.training.steps;
    if (settings.curves) experiment.course.look = std::max<std::int64_t>(1, steps / kLooks);
  }
  for (const auto& experiment : experiments) {
    for (const auto& method : experiment.methods) {
      for (int seed = 1; seed <= settings.seeds; ++seed) {
        pieces.push_back({experiment, method, static_cast<std::uint64_t>(seed)});
      }
    }
  }
  run::JobHooks hooks = settings.hooks;
  hooks.name = [&](std::size_t index) {
    return pieces[index].method.name + ", seed " + std::to_string(pieces[index].seed);
  };
  const auto answers = run::run_jobs(
      pieces.size(), settings.jobs,
      [&](std::size_t index) {
        const Piece& piece = pieces[index];
        const Task task = make_task(piece.experiment.task, piece.seed);
        return packed(train(task, piece.experiment.network, piece.experiment.course, piece.method,
                            piece.seed));
      },
      hooks);

  Numerics numerics;
  numerics.seeds = settings.seeds;
  numerics.complete = answers.size() == pieces.size();
  auto answer = answers.begin();
  for (auto& experiment : experiments) {
    ExperimentResult result;
    for (const auto& method : experiment.methods) {
      if (answers.end() - answer < settings.seeds) break;
      MethodResult row{method.name, {}, {}};
      for (int seed = 0; seed < settings.seeds; ++seed) row.runs.push_back(unpacked(*answer++));
      result.methods.push_back(std::move(row));
    }
    result.experiment = std::move(experiment);
    if (!result.methods.empty()) numerics.experiments.push_back(std::move(result));
  }
  return numerics;
}

Numerics priced(Numerics numerics, const input::Document& document) {
  PeriodPrices prices(document);
  numerics.workload = prices.workload();
  numerics.cluster = prices.cluster();
  numerics.calibrated = prices.calibrated();
  for (auto& result : numerics.experiments) {
    for (auto& method : result.methods) {
      std::vector<plan::PeriodShare> all;  // of all seeds
      for (const auto& run : method.runs) {
        if (!run.diverged) all.insert(all.end(), run.periods.begin(), run.periods.end());
      }
      if (!all.empty()) method.throughput = prices.throughput(all);
    }
  }
  return numerics;
}

}  // namespace syncline::train
