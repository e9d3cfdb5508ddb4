#include "reports/run_report.h"

#include <gtest/gtest.h>

#include "tests/reports/small_report.h"

namespace syncline::reports {
namespace {

std::vector<std::string> names(const std::vector<std::string>& paths) {
  measure::Row row;
  for (const auto& path : paths) row.sweep.emplace_back(path, Json(1));
  std::vector<std::string> result;
  for (const auto& axis : axes_of({row})) result.push_back(axis.name);
  return result;
}

using Names = std::vector<std::string>;

TEST(Axes, NamesAreAsShortAsTheyCanBe) {
  EXPECT_EQ(names({"cluster.inter.bandwidth_gbps"}), Names{"bandwidth_gbps"});
  EXPECT_EQ(names({"seed"}), Names{"seed"});
  EXPECT_EQ(names({"cluster.inter.bandwidth_gbps", "cluster.intra.bandwidth_gbps", "seed"}),
            (Names{"inter.bandwidth_gbps", "intra.bandwidth_gbps", "seed"}));
  EXPECT_EQ(names({"x.latency", "cluster.x.latency"}), (Names{"x.latency", "cluster.x.latency"}));
}

TEST(Axes, AStrategysKeyKeepsItsName) {
  EXPECT_EQ(names({"strategies.dgc.streams"}), Names{"dgc.streams"});
}

TEST(Axes, PointsAreToldApart) {
  const auto rows = test::dgc_report().rows;
  EXPECT_TRUE(same_point(rows[0], rows[1]));
  EXPECT_FALSE(same_point(rows[1], rows[2]));
  EXPECT_EQ(point_text(rows[0], axes_of(rows)), "bandwidth_gbps 100");
}

}  // namespace
}  // namespace syncline::reports
