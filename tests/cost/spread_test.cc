// How far to trust a cost model's answer: the further from what was measured, the wider, and never
// nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/cost/cost_model.h"
#include "formats/input/cost_model_json.h"
#include "formats/json/reader.h"
#include "studies/calibrate/scale_fit.h"
#include "tests/support/nccl_tables.h"

namespace syncline::cost {
namespace {

using enum collective::CollectiveKind;

// All-reduces of 1 KiB to 1 GiB on a line of latency and bandwidth; each time off by `noise` as a
// standard deviation of its logarithm, the two of a size by `apart`.
MeasuredTable noisy_table(int nodes, int gpus, double noise, std::uint64_t seed, double apart = 0) {
  Random random(seed);
  MeasuredTable table = test::nccl_table(kAllReduce, nodes, gpus);
  for (Bytes size = 1024; size <= Bytes{1} << 30; size *= 2) {
    MeasuredRow row;
    row.size = size;
    const double exact = 40e-6 * nodes + static_cast<double>(size) * 2 / 10e9;
    row.out_of_place = exact * std::exp(noise * random.normal());
    row.in_place = *row.out_of_place * std::exp(apart * random.normal());
    table.rows.push_back(row);
  }
  return table;
}

MeasuredCostModel cost_model_of(const std::vector<MeasuredTable>& tables) {
  return calibrate::calibrate(tables).cost_model;
}

double spread_at(const MeasuredCostModel& cost_model, double bytes, int nodes, int gpus) {
  return cost_model_time(cost_model, kAllReduce, bytes, nodes, gpus)->spread;
}

TEST(Spread, IsPositiveFiniteAndGrowsWithEveryPart) {
  Random random(20240611);
  for (int i = 0; i < 2000; ++i) {
    Support near;
    for (double* part :
         {&near.table, &near.sizes, &near.nodes, &near.gpus, &near.paths, &near.unshown}) {
      *part = random.below(3) == 0 ? 0 : random.uniform();
    }
    near.inside = random.below(2) == 0;
    Support far = near;
    double* const parts[] = {&far.table, &far.sizes, &far.nodes,
                             &far.gpus,  &far.paths, &far.unshown};
    *parts[random.below(std::size(parts))] += random.uniform();
    const double spread = spread_of(near);
    EXPECT_GT(spread, 0);
    EXPECT_TRUE(std::isfinite(spread));
    EXPECT_GT(spread_of(far), spread);
    far = near;
    far.other_kind = true;
    EXPECT_GT(spread_of(far), spread);
  }
}

TEST(Spread, HasNoJumpsBetweenSizes) {
  const std::vector<SizeSpread> spreads = {{1024, 0.1}, {4096, 0.02}, {1 << 20, 0.3}};
  EXPECT_DOUBLE_EQ(size_spread(spreads, 4096), 0.02);
  EXPECT_DOUBLE_EQ(size_spread(spreads, 2048), 0.06);
  EXPECT_DOUBLE_EQ(size_spread(spreads, 1), 0.1);
  EXPECT_DOUBLE_EQ(size_spread(spreads, 1e12), 0.3);
  double before = size_spread(spreads, 1);
  for (double bytes = 1; bytes < 1e12; bytes *= 1.01) {
    const double spread = size_spread(spreads, bytes);
    EXPECT_LT(std::abs(spread - before), 0.002);
    before = spread;
  }
}

// The noise of a table is found again, whatever it was.
TEST(Spread, IsATablesNoise) {
  for (const double noise : {0.01, 0.03, 0.1}) {
    double sum = 0;
    constexpr int kTables = 8;
    for (std::uint64_t seed = 0; seed < kTables; ++seed) {
      sum += spread_at(cost_model_of({noisy_table(4, 1, noise, 100 + seed)}), kMiB, 4, 1);
    }
    EXPECT_GT(sum / kTables, 0.7 * noise) << noise;
    EXPECT_LT(sum / kTables, 1.8 * noise) << noise;
  }
}

TEST(Spread, RepeatsThatDifferAndTablesThatAreNotCleanWidenIt) {
  const double once = spread_at(cost_model_of({noisy_table(4, 1, 0, 1)}), kMiB, 4, 1);
  EXPECT_LT(once, 0.01);
  const MeasuredCostModel twice =
      cost_model_of({noisy_table(4, 1, 0.1, 2), noisy_table(4, 1, 0.1, 3)});
  EXPECT_GT(spread_at(twice, kMiB, 4, 1), 0.06);
  const MeasuredCostModel unclean = cost_model_of({noisy_table(4, 1, 0, 4, 0.3)});
  EXPECT_FALSE(unclean.tables.front().clean);
  EXPECT_GT(spread_at(unclean, kMiB, 4, 1), 0.1);
}

// Farther in sizes, in nodes, in GPUs a node, and over to another collective.
TEST(Spread, GrowsWithTheDistanceFromWhatWasMeasured) {
  const MeasuredCostModel cost_model =
      cost_model_of({noisy_table(2, 4, 0.01, 5), noisy_table(4, 4, 0.01, 6)});
  double before = spread_at(cost_model, 1 << 30, 4, 4);
  for (double bytes = std::exp2(32); bytes < 1e13; bytes *= 4) {
    EXPECT_GT(spread_at(cost_model, bytes, 4, 4), before) << bytes;
    before = spread_at(cost_model, bytes, 4, 4);
  }
  EXPECT_GT(spread_at(cost_model, 64, 4, 4), spread_at(cost_model, 1024, 4, 4));
  EXPECT_GT(spread_at(cost_model, 256 * kMiB, 8, 4), spread_at(cost_model, 256 * kMiB, 4, 4));
  EXPECT_GT(spread_at(cost_model, 256 * kMiB, 64, 4), spread_at(cost_model, 256 * kMiB, 8, 4));
  EXPECT_GT(spread_at(cost_model, 256 * kMiB, 4, 8), spread_at(cost_model, 256 * kMiB, 4, 4));
  EXPECT_GT(cost_model_time(cost_model, kAllGather, 256 * kMiB, 4, 4)->spread,
            spread_at(cost_model, 256 * kMiB, 4, 4));
}

// Tables of two and four nodes speak for up to four times as many, and for twice the GPUs a node.
TEST(Spread, CountsAreInRangeUpToAnEdge) {
  const MeasuredCostModel cost_model =
      cost_model_of({noisy_table(2, 4, 0.01, 5), noisy_table(4, 4, 0.01, 6)});
  const auto in_range = [&](int nodes, int gpus) {
    return cost_model_time(cost_model, kAllReduce, 16 * kMiB, nodes, gpus)->in_range;
  };
  for (const int nodes : {2, 3, 4, 5, 15, 16}) EXPECT_TRUE(in_range(nodes, 4)) << nodes;
  for (const int nodes : {17, 32, 64}) EXPECT_FALSE(in_range(nodes, 4)) << nodes;
}

// Each octave of GPUs a node from the nearest table widens the interval, as each of nodes does.
TEST(Spread, GrowsByOctavesOfEachCount) {
  const MeasuredCostModel exact = cost_model_of({noisy_table(2, 4, 0, 5), noisy_table(4, 4, 0, 6)});
  const auto spread = [&](int nodes, int gpus) {
    return spread_at(exact, 256 * kMiB, nodes, gpus);
  };
  const auto added = [](double farther, double nearer) {
    return std::sqrt(farther * farther - nearer * nearer);
  };
  EXPECT_GT(added(spread(4, 8), spread(4, 4)), 0.055);
  EXPECT_GT(added(spread(4, 16), spread(4, 8)), 0.1);
  EXPECT_GT(added(spread(8, 4), spread(4, 4)), 0.055);
  EXPECT_GT(added(spread(16, 4), spread(8, 4)), 0.1);
  EXPECT_GT(added(spread(4, 2), spread(4, 4)), 0.055);
}

TEST(Spread, EveryAnswerOfAPublishedLogHasOne) {
  const MeasuredCostModel cost_model =
      cost_model_of(test::nccl_logs({"gh200-alps-slingshot-ofi1.9.2_allreduce_n001x4",
                                     "gh200-alps-slingshot-ofi1.9.2_allreduce_n002x4"}));
  Random random(7);
  for (int i = 0; i < 3000; ++i) {
    const double bytes = std::exp2(50 * random.uniform());
    const int nodes = 1 << random.below(11);
    const int gpus = 1 << random.below(5);
    const auto answer = cost_model_time(cost_model, random.below(2) == 0 ? kAllReduce : kAllGather,
                                        bytes, nodes, gpus);
    if (!answer) continue;
    EXPECT_GT(answer->spread, 0) << bytes << ' ' << nodes << ' ' << gpus;
    EXPECT_LT(answer->spread, 10) << bytes << ' ' << nodes << ' ' << gpus;
  }
}

TEST(Spread, SurvivesTheClusterFileAndIsWideWithoutOne) {
  const MeasuredCostModel cost_model = cost_model_of({noisy_table(2, 4, 0.03, 8)});
  Json json = input::cost_model_json(cost_model);
  const MeasuredCostModel read = input::read_cost_model(Reader(json, "x.json", "calibration"));
  EXPECT_EQ(input::cost_model_json(read).dump(), json.dump());
  for (double bytes = 100; bytes < 1e10; bytes *= 3) {
    EXPECT_NEAR(spread_at(read, bytes, 2, 4) / spread_at(cost_model, bytes, 2, 4), 1, 1e-5)
        << bytes;
    EXPECT_NEAR(spread_at(read, bytes, 8, 4) / spread_at(cost_model, bytes, 8, 4), 1, 1e-5)
        << bytes;
  }
  json["tables"][0].erase("spreads");
  const MeasuredCostModel old = input::read_cost_model(Reader(json, "x.json", "calibration"));
  EXPECT_GT(spread_at(old, kMiB, 2, 4), 0.2);
  json["tables"][0]["spreads"] = {{{"bytes", 8}, {"percent", 1}}, {{"bytes", 8}, {"percent", 1}}};
  EXPECT_THROW(input::read_cost_model(Reader(json, "x.json", "calibration")), InputError);
}

}  // namespace
}  // namespace syncline::cost
