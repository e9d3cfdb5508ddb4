// The table of numerics as it is printed, from results written by hand.
#include "reports/numerics.h"
#include "tests/support/printed.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace syncline::reports {
namespace {

train::Trained trained(double loss) {
  train::Trained run;
  run.train.loss = loss;
  run.test.accuracy = 0.5;
  run.steps = 10;
  run.synchronisations = 10;
  run.sent_bytes = 1024;
  return run;
}

train::Numerics results(const std::vector<double>& first, const std::vector<double>& second) {
  train::Experiment experiment = train::local_sgd_experiment(10);
  experiment.methods.resize(2);
  train::ExperimentResult result{experiment, {}};
  for (const auto& losses : {first, second}) {
    train::MethodResult method{experiment.methods[result.methods.size()].name, {}, {}};
    for (const double loss : losses) method.runs.push_back(trained(loss));
    result.methods.push_back(method);
  }
  train::Numerics numerics;
  numerics.seeds = static_cast<int>(first.size());
  numerics.experiments.push_back(result);
  return numerics;
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

TEST(NumericsReport, AVerdictFollowsTheInterval) {
  // Differences 0.1 and 0.1: no doubt. 0.1 and -0.1: noise.
  EXPECT_TRUE(says(test::table_of(results({1, 2}, {1.1, 2.1})), "+0.100 +- 0.000  worse"));
  EXPECT_TRUE(says(test::table_of(results({1, 2}, {0.9, 1.9})), "-0.100 +- 0.000  better"));
  EXPECT_TRUE(says(test::table_of(results({1, 2}, {1.1, 1.9})), "within noise"));
}

TEST(NumericsReport, OneSeedSaysNothingOfNoise) {
  const std::string text = test::table_of(results({1}, {1.2}));
  EXPECT_TRUE(says(text, "+0.200  one seed"));
  EXPECT_FALSE(says(text, "1.000 +-"));
  const Json json = Json::parse(test::json_of(results({1}, {1.2})));
  const Json& row = json.at("experiments").at(0).at("methods").at(1);
  EXPECT_FALSE(row.contains("within_noise"));
}

TEST(NumericsReport, NothingIsNeverNegative) {
  EXPECT_FALSE(says(test::table_of(results({1, 2}, {0.9999, 1.9999})), "-0.000"));
}

TEST(NumericsReport, ADivergedSeedIsSaid) {
  train::Numerics numerics = results({1, 2}, {1, 2});
  numerics.experiments[0].methods[1].runs[0].diverged = true;
  const std::string text = test::table_of(numerics);
  EXPECT_TRUE(says(text, "diverged"));
  EXPECT_TRUE(says(text, "in 1 of 2 seeds  worse"));
  const Json json = Json::parse(test::json_of(numerics));
  const Json& row = json.at("experiments").at(0).at("methods").at(1);
  EXPECT_EQ(row.at("diverged"), 1);
  EXPECT_FALSE(row.contains("train_loss"));
  EXPECT_TRUE(row.at("train_losses").at(0).is_null());
}

TEST(NumericsReport, ThroughputIsSaidToBePredicted) {
  train::Numerics numerics = results({1, 2}, {1, 2});
  EXPECT_FALSE(says(test::table_of(numerics), "samples/s"));
  numerics.experiments[0].methods[0].throughput = 1234.5;
  numerics.workload = "net";
  numerics.cluster = "racks";
  const std::string text = test::table_of(numerics);
  EXPECT_TRUE(says(text, "1,234.5"));
  EXPECT_TRUE(says(text, "predicted by the model executor for net on racks"));
}

}  // namespace
}  // namespace syncline::reports
