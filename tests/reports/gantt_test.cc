#include "reports/gantt.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/reports/small_report.h"
#include "tests/reports/traced_plan.h"
#include "tests/support/dice.h"
#include "tests/support/text.h"

namespace syncline::reports {
namespace {

measure::Report traced_report(const std::vector<std::string>& strategies,
                              const std::vector<int>& ranks, int periods) {
  measure::Report report = test::report_of({});
  report.traced_workload = test::named_workload(3);
  for (const auto& strategy : strategies) {
    const plan::Plan plan = test::small_plan(3);
    report.traced.push_back({strategy, plan, test::even_timeline(plan, ranks, periods)});
  }
  return report;
}

TEST(Gantt, ShowsTheLastStepOfEachStream) {
  const auto figure = gantt(traced_report({"one", "two"}, {0}, 3), {0, 1}).figure;
  EXPECT_EQ(figure.up.names, (std::vector<std::string>{"one: compute", "one: communication 1",
                                                       "two: compute", "two: communication 1"}));
  // Of the seven operations of a period one takes no time; the exchange is exposed.
  EXPECT_EQ(figure.boxes.size(), 2U * (6 + 1));
  for (const auto& box : figure.boxes) {
    EXPECT_GE(box.from, 0);
    EXPECT_LE(box.to, 0.006 + 1e-12);
  }
  EXPECT_TRUE(figure.boxes[0].name.starts_with("forward, 1.000 ms"));
  EXPECT_DOUBLE_EQ(figure.boxes[0].from, 0);
}

TEST(Gantt, MarksWhatNothingHides) {
  const auto figure = gantt(traced_report({"one"}, {0}, 3), {0}).figure;
  const auto exposed = std::find_if(figure.boxes.begin(), figure.boxes.end(), [](const auto& box) {
    return box.colour == chart::kVermilion;
  });
  ASSERT_NE(exposed, figure.boxes.end());
  EXPECT_EQ(exposed->lane, 0);
  EXPECT_NEAR(exposed->from, 0.002, 1e-12);
  EXPECT_NEAR(exposed->to, 0.003, 1e-12);
}

TEST(Gantt, ABucketLeadsToItsTensors) {
  const auto picture = gantt(traced_report({"one", "two"}, {0}, 3), {0, 1});
  ASSERT_EQ(picture.ids.size(), 2U);
  EXPECT_EQ(picture.details.lines[0].cells[4], "layer0.weight, layer1.weight, layer2.weight");
  for (const auto& box : picture.figure.boxes) {
    if (box.link.empty()) continue;
    EXPECT_NE(std::find(picture.ids.begin(), picture.ids.end(), box.link), picture.ids.end());
  }
}

TEST(Gantt, SaysWhichStreamsItLeftOut) {
  std::vector<int> ranks;
  for (int rank = 0; rank < 20; ++rank) ranks.push_back(rank);
  const auto figure = gantt(traced_report({"one"}, ranks, 2), {0}).figure;
  EXPECT_EQ(figure.up.names.size(), kGanttLanes);
  EXPECT_TRUE(test::contains(figure.note, "28 streams of further ranks left out"));
}

// However many operations there are: few bars, which cover what the operations covered.
TEST(Gantt, JoinsShortNeighbours) {
  test::Dice dice(3);
  measure::Report report = traced_report({"one"}, {0}, 1);
  auto& timeline = report.traced[0].timeline;
  timeline.spans.clear();
  double now = 0, busy = 0;
  for (int i = 0; i < 20000; ++i) {
    const double length = dice.between(1, 1000) * 1e-6;
    timeline.spans.push_back({0, i % 2, 0, now, now + length});
    busy += length;
    now += length;
  }
  timeline.period_ends = {now};
  const auto figure = gantt(report, {0}).figure;
  EXPECT_LE(figure.boxes.size(), kGanttBars);
  double drawn = 0;
  for (const auto& box : figure.boxes) drawn += box.to - box.from;
  EXPECT_NEAR(drawn, busy, 1e-6 * busy);
}

TEST(Gantt, OfNothingIsEmpty) {
  EXPECT_TRUE(gantt(traced_report({"one"}, {0}, 0), {0}).figure.boxes.empty());
}

}  // namespace
}  // namespace syncline::reports
