// The table of core/collective/prior.cc, found again on the logs that it was found on, and how it
// holds on each network that it was not found on.
#include "core/calibrate/prior_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "core/error.h"

namespace syncline::calibrate {
namespace {

const std::string kList = SYNCLINE_SOURCE_DIR "/scenarios/measured/networks.json";

TEST(Prior, IsWhatTheLogsSay) {
  const std::vector<PriorUnit> units = prior_units(kList);
  EXPECT_GE(units.size(), 20U);
  for (const PriorUnit& unit : units) {
    const PriorFit fit = prior_fit(units, unit.path);
    for (std::size_t c = 0; c < kPayloads.size(); ++c) {
      const collective::Prior shipped = collective::nccl_prior(unit.path, kPayloads[c]);
      EXPECT_NEAR(shipped.bias, fit.bias[c], 0.03) << unit.site << ' ' << c;
      EXPECT_NEAR(shipped.spread, fit.spread[c], 0.03) << unit.site << ' ' << c;
    }
  }
  const PriorFit fit = unnamed_fit(units);
  for (std::size_t c = 0; c < kPayloads.size(); ++c) {
    const collective::Prior shipped = collective::nccl_prior({}, kPayloads[c]);
    EXPECT_NEAR(shipped.bias, fit.bias[c], 0.03);
    EXPECT_NEAR(shipped.spread, fit.spread[c], 0.03);
  }
}

// On a network of which nothing was seen, the mean size of log(true / said) falls by a fifth, and
// most of every kind lies inside.
TEST(Prior, HoldsForNetworksThatWereLeftOut) {
  double before = 0, rows = 0;
  for (const PriorUnit& unit : prior_units(kList)) {
    for (const auto& errors : unit.rows) {
      for (const PriorError& row : errors) before += std::fabs(row.error);
      rows += static_cast<double>(errors.size());
    }
  }
  double after = 0, inside = 0;
  const auto tables = prior_fidelity(kList);
  EXPECT_EQ(tables.size(), 8U);
  for (const measure::FidelityTable& table : tables) {
    EXPECT_TRUE(table.by_prior);
    ASSERT_EQ(table.predicted.size(), table.intervals.size());
    const auto count = static_cast<double>(table.predicted.size());
    after += count * measure::summary_of(table.predicted)->mean_log;
    const auto intervals = measure::interval_summary(table.intervals);
    inside += count * intervals->held / 100;
    // Nothing tells of a kind whose one site is left out.
    const bool alone = table.name.ends_with(", 1 site");
    EXPECT_GT(intervals->held, alone ? 5 : 60) << table.name;
  }
  EXPECT_LT(after, 0.82 * before);
  EXPECT_LT(after / rows, 0.5);
  EXPECT_GT(inside / rows, 0.70);
  EXPECT_LT(inside / rows, 0.92);
}

TEST(Prior, AWrongListIsRefused) {
  const std::string path = ::testing::TempDir() + "/networks.json";
  std::ofstream(path) << R"({"logs": ".", "machines": [{"log": "x", "site": "x",
      "compute_capability": 80, "inside_gbytes_per_s": 300, "nic_gbps": 100, "nics": 1,
      "latency_us": 5, "fabric": "eva"}]})";
  try {
    prior_units(path);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("machines[0].fabric"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace syncline::calibrate
