// The table of core/collective/library.cc, found again on the logs that it was found on, and how it
// holds on each network that it was not found on.
#include "studies/calibrate/prior_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::calibrate {
namespace {

const std::string kList = SYNCLINE_SOURCE_DIR "/scenarios/measured/networks.json";

void expect_shipped(const PriorFit& fit, const collective::Path& path, const std::string& site) {
  for (std::size_t c = 0; c < kPayloads.size(); ++c) {
    const collective::Prior shipped = collective::nccl_prior(path, kPayloads[c]);
    EXPECT_NEAR(shipped.bias, fit.bias[c], 0.03) << site << ' ' << c;
    EXPECT_NEAR(shipped.spread, fit.spread[c], 0.03) << site << ' ' << c;
  }
}

TEST(Prior, IsWhatTheLogsSay) {
  const std::vector<PriorUnit> units = prior_units(kList);
  EXPECT_GE(units.size(), 20U);
  for (const PriorUnit& unit : units) {
    expect_shipped(prior_fit(units, unit.path), unit.path, unit.site);
  }
  expect_shipped(unnamed_fit(units), {}, "unnamed");
}

// On a network of which nothing was seen, the mean size of log(true / said) falls by a fifth, and
// most of every kind lies inside.
TEST(Prior, PredictsNetworksThatWereLeftOut) {
  double before = 0, rows = 0;
  for (const PriorUnit& unit : prior_units(kList)) {
    for (const auto& errors : unit.rows) {
      for (const auto& [bytes, error] : errors) before += std::fabs(error);
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
  const test::Scratch scratch;
  const std::string path = scratch.path("networks.json");
  test::write_text(path, R"({"logs": ".", "machines": [{"log": "x", "site": "x",
      "compute_capability": 80, "inside_gbytes_per_s": 300, "nic_gbps": 100, "nics": 1,
      "latency_us": 5, "fabric": "eva"}]})");
  const std::string error = test::input_error([&] { prior_units(path); });
  EXPECT_TRUE(test::contains(error, "machines[0].fabric")) << error;
}

}  // namespace
}  // namespace syncline::calibrate
