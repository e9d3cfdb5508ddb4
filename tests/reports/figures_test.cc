#include "reports/bars.h"
#include "reports/explain_report.h"
#include "reports/run_figures.h"
#include "reports/text_plot.h"
#include "reports/validation_report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/reports/small_report.h"
#include "tests/support/dice.h"
#include "tests/support/expect.h"

namespace syncline::reports {
namespace {

template <typename Of>
bool has_figure(const Of& of, const std::string& id) {
  return std::ranges::any_of(figures_of(of), [&](const auto& one) { return one.figure.id == id; });
}

template <typename Of>
chart::Figure figure_of(const Of& of, const std::string& id) {
  for (const auto& picture : figures_of(of)) {
    if (picture.figure.id == id) return picture.figure;
  }
  ADD_FAILURE() << "no figure " << id;
  return {};
}

// Whatever the metrics: the parts of a bar follow each other without a gap and end at the step
// time, and what is hidden lies under computation.
TEST(Figures, BarsEndAtTheStepTime) {
  test::Dice dice(11);
  for (int round = 0; round < 500; ++round) {
    measure::Metrics metrics;
    metrics.compute = dice.between(0, 1000) * 1e-3;
    metrics.comm_overhead = dice.between(0, 200) * 1e-3;
    metrics.step_time = metrics.compute + metrics.comm_overhead + dice.between(1, 1000) * 1e-3;
    metrics.communication = dice.between(0, 2000) * 1e-3;
    const auto figure = step_bars({{"one", metrics}});
    double end = 0;
    for (const auto& box : figure.boxes) {
      if (box.low) {
        EXPECT_LE(box.to, metrics.compute + 1e-12);
        EXPECT_GE(box.from, 0);
        continue;
      }
      EXPECT_NEAR(box.from, end, 1e-12);
      end = box.to;
    }
    EXPECT_NEAR(end, metrics.step_time, 1e-9);
  }
}

TEST(Figures, ASweptNumberHasItsCurve) {
  const auto report = test::dgc_report();
  const chart::Figure curve = figure_of(report, "s-curve-0");
  EXPECT_TRUE(curve.across.logarithmic);  // 1 to 100
  ASSERT_EQ(curve.series.size(), 3U);
  EXPECT_EQ(curve.series[2].name, "dgc");
  ASSERT_EQ(curve.series[2].points.size(), 3U);
  EXPECT_EQ(curve.series[2].points[0].x, 1);
  EXPECT_EQ(curve.series[2].points[0].y, report.rows[5].metrics.step_time);
  EXPECT_EQ(curve.series[2].points[2].x, 100);
  EXPECT_FALSE(has_figure(report, "s-efficiency"));
}

TEST(Figures, ARingMarksTheFastestOfEachSweptPoint) {
  const auto report = test::dgc_report();
  const auto rings = figure_of(report, "s-curve-0").series.front();
  EXPECT_EQ(rings.name, "the fastest");
  ASSERT_EQ(rings.hollow.size(), 3U);
  EXPECT_EQ(rings.hollow[0].y, report.rows[5].metrics.step_time);  // dgc at 1
  EXPECT_EQ(rings.hollow[1].y, report.rows[3].metrics.step_time);  // and at 10
  EXPECT_EQ(rings.hollow[2].y, report.rows[0].metrics.step_time);  // momentum at 100
}

// Bands of many lines would hide each other.
TEST(Figures, TheFastestOfManyLinesHasItsInterval) {
  measure::Report report = test::report_of({}, "0");
  for (const int gbps : {1, 2}) {
    for (int strategy = 0; strategy < 5; ++strategy) {
      report.rows.push_back(
          test::row(std::to_string(strategy), 1 + strategy, test::at_bandwidth(gbps)));
      report.rows.back().step = {0.01, 0.4};
    }
  }
  const auto series = figure_of(report, "s-curve-0").series;
  ASSERT_EQ(series.front().whiskers.size(), 2U);
  EXPECT_EQ(series.front().whiskers[0].high, 0.4);
  EXPECT_TRUE(series.back().band.empty());
  std::erase_if(report.rows, [](const measure::Row& row) { return row.strategy > "2"; });
  const auto banded = figure_of(report, "s-curve-0").series;
  EXPECT_TRUE(banded.front().whiskers.empty());
  EXPECT_EQ(banded.back().band.size(), 2U);
}

TEST(Figures, BarsAreSortedCarryTheirIntervalsAndAStarForTheBest) {
  measure::Report report =
      test::report_of({test::row("momentum", 1), test::row("slow", 0.8), test::row("dgc", 1.5)});
  for (auto& row : report.rows) {
    row.step = {0.9 * row.metrics.step_time, 1.2 * row.metrics.step_time};
  }
  const chart::Figure bars = figure_of(report, "s-bars");
  EXPECT_EQ(bars.up.names, (std::vector<std::string>{"dgc", "momentum", "slow"}));
  EXPECT_EQ(bars.up.best, (std::vector<std::size_t>{0}));
  ASSERT_EQ(bars.ends.size(), 3U);
  EXPECT_EQ(bars.ends[0].x, 0);
  EXPECT_EQ(bars.ends[0].low, report.rows[2].step.low);
  EXPECT_EQ(bars.ends[2].high, report.rows[1].step.high);
  EXPECT_EQ(bars.across.cut, 0);
  EXPECT_TRUE(test::says(bars.note, "Strokes: the 80 % intervals"));
}

// A baseline that nothing beats is the winner; alone it beats nobody.
TEST(Figures, ABaselineThatIsTheFastestHasTheStar) {
  const auto best_of = [](std::vector<measure::Row> rows) {
    return figures_of(test::report_of(std::move(rows))).front().figure.up.best;
  };
  EXPECT_EQ(best_of({test::row("dgc", 0.9), test::row("momentum", 1)}),
            (std::vector<std::size_t>{0}));
  EXPECT_TRUE(best_of({test::row("momentum", 1)}).empty());
}

TEST(Figures, ABarOverFiveTimesTheMedianIsBroken) {
  const auto figure_with = [](double slowest) {
    return figures_of(test::report_of({test::row("momentum", 1), test::row("dgc", 1.2),
                                       test::row("slow", slowest)}))
        .front()
        .figure;
  };
  EXPECT_EQ(figure_with(0.25).across.cut, 0);
  const auto broken = figure_with(0.01);
  EXPECT_EQ(broken.across.cut, 0.3725);
  EXPECT_EQ(broken.up.names.back(), "slow");
  EXPECT_TRUE(test::says(broken.note, "are broken"));
}

TEST(Figures, ACurveWithAnOutlierIsLogarithmic) {
  const auto logarithmic = [](double slow) {
    measure::Report report = test::report_of({});
    for (const int gbps : {1, 2, 3}) {
      report.rows.push_back(test::row("momentum", gbps == 1 ? slow : 1, test::at_bandwidth(gbps)));
    }
    return figure_of(report, "s-curve-0").up.logarithmic;
  };
  EXPECT_FALSE(logarithmic(0.25));
  EXPECT_TRUE(logarithmic(0.15));
}

TEST(Figures, ThereIsNoChartOfOnePoint) {
  measure::Report report = test::report_of({test::row("momentum", 1, test::at_bandwidth(1))});
  report.rows[0].published.emplace();
  report.rows[0].published->step_time = 0.37;
  const auto pictures = figures_of(report);
  ASSERT_EQ(pictures.size(), 1U);
  EXPECT_EQ(pictures[0].figure.id, "s-bars");  // whose bar has several parts

  measure::Validation validation;
  validation.rows.resize(1);
  EXPECT_TRUE(figures_of(validation).empty());
  validation.rows.resize(2);
  EXPECT_EQ(figures_of(validation).size(), 1U);

  measure::Explanation explanation;
  explanation.strategies.resize(1);
  explanation.strategies[0].advice.resize(1);
  EXPECT_TRUE(figures_of(explanation).empty());
  explanation.strategies[0].advice.resize(2);
  EXPECT_EQ(figures_of(explanation).size(), 1U);
}

TEST(Figures, PartsOfEachStepAreSortedWithAStar) {
  measure::Explanation explanation;
  explanation.strategies.resize(3);
  for (std::size_t i = 0; i < 3; ++i) {
    const Seconds step = i == 1 ? 0.1 : 0.2 + 0.1 * static_cast<double>(i);
    auto& one = explanation.strategies[i];
    one.strategy.name = std::to_string(i);
    one.evaluated.metrics.step_time = step;
    one.interval = {0.9 * step, 1.1 * step};
    one.bottleneck.emplace();
    one.bottleneck->step = step;
    one.bottleneck->compute = 0.05;
    one.bottleneck->tensor = step - 0.05;
  }
  const chart::Figure shares = figure_of(explanation, "s-shares");
  EXPECT_EQ(shares.up.names, (std::vector<std::string>{"1", "0", "2"}));
  EXPECT_EQ(shares.up.best, (std::vector<std::size_t>{0}));
  ASSERT_EQ(shares.ends.size(), 3U);
  EXPECT_DOUBLE_EQ(shares.ends[0].low, 0.09);
  EXPECT_DOUBLE_EQ(shares.boxes[1].to, 0.1);  // also what another parallelism takes
  EXPECT_EQ(shares.keys.size(), 2U);
}

TEST(Figures, AHeatMapShowsHowFarEachIsFromTheBest) {
  const auto report = test::dgc_report();
  const chart::Figure heat = figure_of(report, "s-heat");
  ASSERT_EQ(heat.cells.size(), 6U);
  for (const auto& cell : heat.cells) {
    // dgc, the faster one in the mean, stands on top.
    const auto& row = report.rows[static_cast<std::size_t>(2 * cell.column + 1 - cell.lane)];
    EXPECT_EQ(cell.value, row.metrics.step_time);
    EXPECT_EQ(cell.shade == 0, cell.text == "1.00");
  }
  EXPECT_EQ(heat.up.names.front(), "dgc");
  EXPECT_EQ(heat.cells[4].text, "1.00");  // dgc at 1 Gbit/s
  EXPECT_EQ(heat.cells[5].text, "6.55");
  EXPECT_EQ(heat.cells[5].shade, chart::kShades - 1);
}

TEST(Figures, NodesHaveAnEfficiency) {
  measure::Report report = test::report_of({}, "one");
  for (const int nodes : {2, 4, 8}) {
    report.rows.push_back(test::row("one", 1, {{"cluster.nodes", Json(nodes)}}));
    report.rows.back().metrics.throughput = 100 * nodes * (nodes == 8 ? 0.5 : 1);
  }
  const chart::Figure efficiency = figure_of(report, "s-efficiency");
  std::vector<double> shares;
  for (const auto& point : efficiency.series[0].points) shares.push_back(point.y);
  EXPECT_EQ(shares, (std::vector<double>{100, 100, 50}));
}

TEST(Figures, PublishedValuesAreNextToPredictedOnes) {
  measure::Report report = test::published_report();
  const chart::Figure scatter = figure_of(report, "s-published-step");
  ASSERT_EQ(scatter.series.size(), 3U);  // predicted, calibrated, and where both are equal
  EXPECT_EQ(scatter.series[0].points.size(), 2U);
  EXPECT_EQ(scatter.series[1].points.size(), 1U);
  EXPECT_EQ(scatter.series[1].points[0].x, 0.37);
  EXPECT_EQ(scatter.series[1].points[0].y, report.rows[0].metrics.step_time);
  EXPECT_FALSE(has_figure(report, "s-published-throughput"));
  for (auto& row : report.rows) {
    if (!row.published) continue;
    row.published->step_time.reset();
    row.published->throughput = 700;
  }
  EXPECT_FALSE(has_figure(report, "s-published-step"));
  EXPECT_TRUE(has_figure(report, "s-published-throughput"));
}

TEST(Figures, FastestAndBaselineOfManyStrategiesAreNamed) {
  measure::Report report = test::report_of({}, "strategy 0");
  for (int strategy = 0; strategy < 40; ++strategy) {
    for (int point = 1; point <= 2; ++point) {
      report.rows.push_back(test::row("strategy " + std::to_string(strategy),
                                      1 + 0.01 * strategy * point, test::at_bandwidth(point)));
    }
  }
  const chart::Figure bars = figure_of(report, "s-bars");
  EXPECT_EQ(bars.up.names.size(), kBarStrategies);
  EXPECT_EQ(bars.up.names.front(), "strategy 39");
  EXPECT_EQ(bars.up.names.back(), "strategy 0");
  EXPECT_TRUE(test::says(bars.note, "Drawn are 16 of 40 strategies"));
  const chart::Figure curve = figure_of(report, "s-curve-0");
  EXPECT_EQ(std::count_if(curve.series.begin(), curve.series.end(),
                          [](const chart::Series& series) { return !series.faint; }),
            static_cast<std::ptrdiff_t>(kToldApart + 1));  // and the rings
  EXPECT_EQ(curve.series.size(), 41U);
}

// A cell for each kind of link and direction at each switch that has it, the busiest darkest.
TEST(Figures, LinksOfAFabricAreColouredByTheirLoad) {
  measure::Explanation explanation;
  explanation.strategies.resize(2);
  explanation.strategies[1].strategy.name = "ring";
  explanation.strategies[1].links = {
      {"leaf0", "spine", 0.6, 0.3}, {"leaf0", "port", 0.1, 0}, {"leaf1", "spine", 0.3, 0.6}};
  const auto pictures = figures_of(explanation);
  ASSERT_EQ(pictures.size(), 1U);
  const chart::Figure& figure = pictures[0].figure;
  EXPECT_TRUE(test::says(figure.title, "ring"));
  EXPECT_EQ(figure.across.names, (std::vector<std::string>{"leaf0", "leaf1"}));
  EXPECT_EQ(figure.up.names,
            (std::vector<std::string>{"port, out", "port, in", "spine, out", "spine, in"}));
  std::vector<std::vector<double>> cells;
  for (const auto& cell : figure.cells) {
    cells.push_back({1.0 * cell.column, 1.0 * cell.lane, 1.0 * cell.shade, cell.value});
  }
  EXPECT_EQ(cells, (std::vector<std::vector<double>>{{0, 2, 6, 0.6},
                                                     {0, 3, 3, 0.3},
                                                     {0, 0, 1, 0.1},
                                                     {0, 1, 0, 0},
                                                     {1, 2, 3, 0.3},
                                                     {1, 3, 6, 0.6}}));
  EXPECT_EQ(figure.keys.size(), static_cast<std::size_t>(chart::kShades));
  EXPECT_EQ(figure.keys.back().name, "600.0 ms");
}

TEST(Figures, AreEmptyWithoutRows) { EXPECT_TRUE(figures_of(test::report_of({})).empty()); }

const std::vector<tune::CurvePoint> kCurve{{0, 0.4}, {1024, 0.3}, {1 << 20, 0.1}, {1 << 24, 0.2}};

TEST(Curve, AsTextShowsItsRangeAndItsSteps) {
  const std::string text = curve_text(kCurve);
  EXPECT_TRUE(test::says(text, "400.0 ms |*", "100.0 ms |", "1.000 KiB", "16.00 MiB"));
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_LE(end - begin, 80u);
    begin = end + 1;
  }
}

TEST(Curve, IsNotDrawnWithOnePoint) { EXPECT_EQ(curve_text({{0, 1.0}}), ""); }

TEST(Curve, AsCsvHasExactFigures) {
  EXPECT_EQ(curve_csv({{0, 0.1}, {7, 2}}), "bytes,step_time_s\n0,0.1\n7,2\n");
}

}  // namespace
}  // namespace syncline::reports
