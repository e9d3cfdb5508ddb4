// What the table of numerics must show, on fewer seeds and steps, and how it is put together.
#include "core/train/numerics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/input/document.h"
#include "reports/numerics.h"
#include "tests/support/printed.h"

namespace syncline::train {
namespace {

TEST(Seeds, MeanAndDeviation) {
  const SeedMean mean = mean_of_seeds({1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(mean.mean, 2.5);
  EXPECT_DOUBLE_EQ(mean.deviation, std::sqrt(5.0 / 3));
  EXPECT_EQ(mean_of_seeds({7}).deviation, 0);
}

// Differences 1, 2, 3, 4, 5: mean 3, standard error sqrt(0.5), t of four degrees 2.776.
TEST(Seeds, DifferencesArePaired) {
  const auto over = paired_difference({11, 22, 33, 44, 55}, {10, 20, 30, 40, 50});
  EXPECT_DOUBLE_EQ(over.mean, 3);
  EXPECT_NEAR(over.half_width, 2.7764451051977987 * std::sqrt(0.5), 1e-12);
  EXPECT_FALSE(over.within_noise());
  EXPECT_TRUE(paired_difference({1, -1, 0.5}, {0, 0, 0}).within_noise());
  EXPECT_TRUE(std::isinf(paired_difference({1}, {0}).half_width));
}

// Under the sanitizers training takes ten times as long.
#ifdef SYNCLINE_SANITIZED
constexpr int kSeeds = 1;
#else
constexpr int kSeeds = 2;
#endif

// A smaller network at a rate that is dense momentum's limit, without clipping, and all weights
// sparse: what makes a step coarser shows within 400 steps.
Experiment hard() {
  Experiment experiment = compression_experiment("hard", 400, 0.3);
  experiment.task.train = 4096;
  experiment.network.widths = {experiment.task.features, 64, 64, experiment.task.classes};
  experiment.course.workers = 4;
  experiment.course.clip = 0;
  experiment.course.training.learning_rate.power = 1;
  for (auto& method : experiment.methods) {
    if (!method.compression.codec.empty()) method.compression.min_elements = 512;
  }
  return experiment;
}

double loss_of(const ExperimentResult& result, const std::string& name) {
  for (const auto& method : result.methods) {
    if (method.name == name) return method.train_loss().mean;
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(Numerics, EachPartOfDgcEarnsItsPlace) {
  NumericsSettings settings;
  settings.seeds = kSeeds;
  settings.jobs = 2;
  const Numerics numerics = run_numerics(settings, {hard()});
  const auto& result = numerics.experiments.front();
  const double whole = loss_of(result, "DGC");
  const double dense = loss_of(result, "dense momentum");
  EXPECT_LT(whole, dense + 0.1);
  EXPECT_GT(loss_of(result, "without momentum correction"), whole + 0.1);
  EXPECT_GT(loss_of(result, "without masking"), whole + 0.1);
  EXPECT_GT(loss_of(result, "without warm-up"), whole + 0.1);
  EXPECT_GT(loss_of(result, "without any of them"), whole + 0.1);
}

TEST(Numerics, LocalSgdTradesLossForSynchronisations) {
  NumericsSettings settings;
  settings.seeds = kSeeds;
  settings.jobs = 2;
  Experiment local = local_sgd_experiment(400);
  local.task.train = 4096;
  local.network.widths = {local.task.features, 64, 64, local.task.classes};
  const Numerics numerics = run_numerics(settings, {local});
  const auto& result = numerics.experiments.front();
  EXPECT_GT(loss_of(result, "k=16"), loss_of(result, "k=1") + 0.02);
  EXPECT_GT(loss_of(result, "k=16"), loss_of(result, "k=4"));
  EXPECT_LT(loss_of(result, "adaptive"), loss_of(result, "k=16"));
  const auto& adaptive = result.methods.back();
  EXPECT_LT(adaptive.synchronisations(), result.methods.front().synchronisations() * 0.8);

  const std::string scenario =
      std::string(SYNCLINE_SOURCE_DIR) + "/scenarios/published/localsgd_resnet50.json";
  const Numerics with = priced(numerics, input::read_document(scenario));
  double before = 0;
  for (int row = 0; row < 5; ++row) {  // k = 1, 2, 4, 8, 16
    const auto& method = with.experiments[0].methods[static_cast<std::size_t>(row)];
    ASSERT_TRUE(method.throughput);
    EXPECT_GT(*method.throughput, before);
    before = *method.throughput;
  }
  const double last = *with.experiments[0].methods.back().throughput;
  EXPECT_GT(last, *with.experiments[0].methods[0].throughput);
  EXPECT_LT(last, *with.experiments[0].methods[4].throughput);
  const Json json = Json::parse(test::json_of(with));
  EXPECT_EQ(json.at("experiments").at(0).at("methods").size(), 6U);
  EXPECT_TRUE(json.at("experiments").at(0).at("methods").at(0).contains("throughput"));
}

TEST(Numerics, JobsGiveTheSameBytes) {
  NumericsSettings settings;
  settings.seeds = 1;
  Experiment small = local_sgd_experiment(20);
  small.task.train = 512;
  const std::string alone = test::csv_of(run_numerics(settings, {small}));
  settings.jobs = 3;
  EXPECT_EQ(test::csv_of(run_numerics(settings, {small})), alone);
}

TEST(Numerics, ADivergedSeedIsWorseAndHasNoFigures) {
  NumericsSettings settings;
  settings.seeds = 1;
  Experiment small = local_sgd_experiment(20);
  small.task.train = 512;
  small.course.training.learning_rate.initial = 1e20;
  const Numerics numerics = run_numerics(settings, {small});
  EXPECT_EQ(numerics.experiments[0].methods[0].diverged(), 1);
  EXPECT_FALSE(numerics.experiments[0].over_first(numerics.experiments[0].methods[1]));
  EXPECT_NE(test::csv_of(numerics).find("LocalSGD,k=1,1,1,,,,"), std::string::npos);
}

}  // namespace
}  // namespace syncline::train
