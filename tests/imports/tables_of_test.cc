#include "imports/cluster_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/base/statistics.h"
#include "studies/calibrate/calibration.h"
#include "tests/support/jobs.h"

namespace syncline::job {
namespace {

Observed job(int ranks, int devices_a_node) {
  Observed observed;
  observed.file = "job.json";
  observed.world_size = ranks;
  observed.devices_a_node = devices_a_node;
  observed.device = "NVIDIA H100 80GB HBM3";
  for (int rank = 0; rank < ranks; ++rank) observed.ranks.push_back({rank, {}});
  return observed;
}

ObservedExchange exchange(std::int64_t elements, Seconds time, int ranks = 0) {
  ObservedExchange one;
  one.kind = "all_reduce";
  one.elements = elements;
  one.ranks = ranks;
  one.duration = one.time = time;
  return one;
}

void add_to_all(Observed& observed, std::size_t step, const ObservedExchange& one) {
  for (Rank& rank : observed.ranks) {
    rank.steps.resize(std::max(rank.steps.size(), step + 1));
    rank.steps[step].exchanges.push_back(one);
  }
}

TEST(TablesOf, RandomJobsGiveTheMedianOfTheirSteps) {
  test::Dice dice(11);
  for (int round = 0; round < 100; ++round) {
    const int devices = dice.between(1, 4);
    const int nodes = dice.between(1, 3);
    if (devices * nodes < 2) continue;
    Observed observed = job(devices * nodes, devices);
    std::map<Bytes, std::vector<Seconds>> truth;
    const int steps = dice.between(1, 7);
    for (int step = 0; step < steps; ++step) {
      for (const std::int64_t elements : {1000, 250000, 6553600}) {
        const Seconds time = dice.between(10, 4000) * 1e-6;
        add_to_all(observed, static_cast<std::size_t>(step), exchange(elements, time));
        truth[4 * elements].push_back(time);
      }
    }
    const auto tables = tables_of(observed);
    ASSERT_EQ(tables.size(), 1u);
    EXPECT_EQ(tables[0].nodes, nodes);
    EXPECT_EQ(tables[0].gpus_per_node, devices);
    EXPECT_EQ(tables[0].device, observed.device);
    ASSERT_EQ(tables[0].rows.size(), truth.size());
    for (const cost::MeasuredRow& row : tables[0].rows) {
      EXPECT_DOUBLE_EQ(*row.out_of_place, median(truth[row.size]));
      EXPECT_EQ(row.spread > 0, steps >= 3);
    }
    EXPECT_FALSE(calibrate::calibration_of(tables, {}, "job").cost_model.tables.empty());
  }
}

TEST(TablesOf, GiveNoneWithoutMeasurements) {
  Observed observed = job(4, 4);
  add_to_all(observed, 0, exchange(1000, 1e-4));
  EXPECT_EQ(tables_of(observed).size(), 1u);
  // One alone; three of four ranks: who came last may be the fourth.
  for (const std::size_t ranks : {1, 3}) {
    Observed some = observed;
    some.ranks.resize(ranks);
    EXPECT_TRUE(tables_of(some).empty()) << ranks;
  }
  observed.devices_a_node = 0;
  EXPECT_TRUE(tables_of(observed).empty());
}

TEST(TablesOf, GroupsThatLieNobodyKnowsHowAreLeftOut) {
  Observed observed = job(8, 4);
  add_to_all(observed, 0, exchange(1000, 1e-4));
  add_to_all(observed, 0, exchange(500, 1e-4, 2));
  ObservedExchange odd = exchange(1000, 1e-4);
  odd.kind = "all_to_all";
  add_to_all(observed, 0, odd);
  add_to_all(observed, 0, exchange(2000, 0));
  const auto tables = tables_of(observed);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].ranks, 8);
  EXPECT_EQ(tables[0].rows.size(), 1u);
  // On one node they can only lie there.
  observed.devices_a_node = 8;
  EXPECT_EQ(tables_of(observed).size(), 2u);
}

// DLRM on 8 V100: three all-reduces, 86, 20 and 69 us once all ranks are there.
TEST(TablesOf, EightRanksOfARealJobMakeANetwork) {
  const auto tables = tables_of(read_job(test::dlrm_files()));
  const auto found =
      std::ranges::find(tables, collective::CollectiveKind::kAllReduce, &cost::MeasuredTable::kind);
  ASSERT_NE(found, tables.end());
  EXPECT_EQ(found->nodes, 1);
  EXPECT_EQ(found->gpus_per_node, 8);
  const std::pair<std::int64_t, double> expected[] = {{112, 20}, {226960, 69}, {394241, 86}};
  for (const auto& [elements, microseconds] : expected) {
    const auto row = std::ranges::find(found->rows, 4 * elements, &cost::MeasuredRow::size);
    ASSERT_NE(row, found->rows.end()) << elements;
    EXPECT_NEAR(*row->out_of_place * 1e6, microseconds, 1) << elements;
  }
  const auto calibration = calibrate::calibration_of({*found}, {}, "dlrm");
  const auto answer =
      cost::cost_model_time(calibration.cost_model, *found->kind, 4.0 * 226960, 1, 8);
  ASSERT_TRUE(answer);
  EXPECT_NEAR(answer->time * 1e6, 69, 10);
  // One step was recorded: nothing shows how well a time repeats.
  EXPECT_FALSE(answer->in_range);
  EXPECT_TRUE(test::any_contains(calibration.warnings, "each size has one time"));
}

}  // namespace
}  // namespace syncline::job
