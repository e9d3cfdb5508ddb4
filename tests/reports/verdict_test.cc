#include "reports/verdict.h"
#include "reports/run_report.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/reports/small_report.h"
#include "tests/support/expect.h"

namespace syncline::reports {
namespace {

using test::at_bandwidth;
using test::report_of;
using test::row;

// Rows of momentum and the given strategies at each bandwidth.
measure::Report swept(const std::vector<std::string>& names,
                      const std::vector<std::pair<int, std::vector<double>>>& points) {
  std::vector<measure::Row> rows;
  for (const auto& [gbps, speedups] : points) {
    rows.push_back(row("momentum", 1, at_bandwidth(gbps)));
    for (std::size_t i = 0; i < names.size(); ++i) {
      rows.push_back(row(names[i], speedups[i], at_bandwidth(gbps)));
    }
  }
  return report_of(rows);
}

TEST(Verdict, OneStrategy) {
  EXPECT_EQ(verdict(report_of({row("momentum", 1)})),
            "momentum takes 372 ms per step, 178 ms of it exposed communication.");
  measure::Report report = report_of({row("momentum", 1, at_bandwidth(10))});
  EXPECT_EQ(verdict(report),
            "momentum takes 372 ms per step at bandwidth_gbps 10, 178 ms of it exposed "
            "communication.");
  report.rows.push_back(row("momentum", 0.5, at_bandwidth(1)));
  EXPECT_EQ(verdict(report),
            "momentum takes from 372 ms per step at bandwidth_gbps 10 to 745 ms per step at "
            "bandwidth_gbps 1.");
  report.rows.pop_back();
  report.rows.push_back(row("momentum", 1, at_bandwidth(1)));
  EXPECT_EQ(verdict(report), "momentum takes 372 ms per step at every sweep point.");
}

// More than 6 % off in the mean, of the rows that were fitted.
TEST(Verdict, AFailedFitIsReportedFirst) {
  const auto said = [](double error, bool calibrated) {
    measure::Row fitted = row("momentum", 1);
    fitted.published.emplace();
    fitted.published->step_time = 300;
    fitted.published->calibrated = calibrated;
    fitted.error_percent = error;
    return verdict(report_of({fitted, row("dgc", 1.467)}));
  };
  EXPECT_TRUE(
      test::says(said(-99.6, true),
                 "The fit failed: 'momentum' was measured at 300 s per step, and the nearest "
                 "that fitted values give is 372 ms.",
                 "dgc is the fastest"));
  // A user of the JSON hears it too.
  measure::Row fitted = row("momentum", 1);
  fitted.published.emplace();
  fitted.published->step_time = 300;
  fitted.published->calibrated = true;
  fitted.error_percent = -99.6;
  EXPECT_EQ(fit_failure(report_of({fitted})).find("The fit failed: "), 0U);
  EXPECT_EQ(said(5.9, true), "dgc is the fastest (1.47x over momentum).");
  EXPECT_EQ(said(-99.6, false), "dgc is the fastest (1.47x over momentum).");
}

// A network that no strategy of the table can use is said ahead of which is fastest.
TEST(Verdict, ANetworkThatIsTooSlowIsReportedFirst) {
  const auto waiting = [](const char* name, double speedup, double share) {
    measure::Row one = row(name, speedup);
    one.rate.ranks = 4;
    one.metrics.exposed = share * one.metrics.step_time;
    return one;
  };
  const std::string slow =
      "The network cannot carry this training: 95.0 % of each step waits for it with every "
      "strategy; syncline tune names remedies. ";
  measure::Report report = report_of({waiting("momentum", 1, 0.99), waiting("fp16", 1.4, 0.95)});
  EXPECT_EQ(verdict(report), slow + "fp16 is the fastest (1.40x over momentum).");
  report.rows.push_back(waiting("overlapped", 1.2, 0.5));
  EXPECT_EQ(verdict(report), "fp16 is the fastest (1.40x over momentum).");
}

// Where steps were measured, they say whether it is the network.
TEST(Verdict, MeasuredStepsSayWhetherItIsTheNetwork) {
  measure::Report report = report_of({row("momentum", 1), row("dgc", 1.467)});
  report.network = {.given = 100, .carried = 20};
  EXPECT_TRUE(verdict(report).starts_with(
      "It is the network in part: of the baseline's 372 ms per step 178 ms wait for it. As "
      "measured, "
      "a port between nodes carries 20 Gbit/s, 20.0 % of the 100 that it is given."))
      << verdict(report);
  report.network->carried = 263;
  EXPECT_TRUE(test::says(verdict(report), "263 Gbit/s would explain them"));
}

TEST(Verdict, TwoStrategiesWithoutASweep) {
  EXPECT_EQ(verdict(report_of({row("momentum", 1), row("dgc", 1.467)})),
            "dgc is the fastest (1.47x over momentum).");
  EXPECT_EQ(verdict(report_of({row("momentum", 1), row("dgc", 0.985)})),
            "dgc is slower (0.985x over momentum).");
  EXPECT_EQ(verdict(report_of({row("momentum", 1), row("dgc", 1.004)})),
            "dgc makes no difference of more than 0.5 % (1.00x over momentum).");
}

// An interval of the gain that contains 1 does not decide which of the two is faster.
TEST(Verdict, UndecidedComparisonsAreReported) {
  measure::Row open = row("dgc", 0.97);
  open.gain = {0.9, 1.1};
  measure::Row sure = row("fp16", 1.5);
  sure.gain = {1.3, 1.6};
  EXPECT_EQ(verdict(report_of({row("momentum", 1), open})),
            "dgc is likely slower (0.970x over momentum, 80 %: 0.900 to 1.10x). dgc may be faster "
            "or slower than momentum: its 80 % interval contains 1.");
  // Several have one sentence.
  EXPECT_EQ(verdict(report_of({row("momentum", 1), sure, open})),
            "fp16 is the fastest (1.50x over momentum, 80 %: 1.30 to 1.60x). dgc may be faster or "
            "slower than momentum: its 80 % interval contains 1.");
  EXPECT_EQ(verdict(report_of({row("momentum", 1), sure})),
            "fp16 is the fastest (1.50x over momentum, 80 %: 1.30 to 1.60x).");
  measure::Row at_one = row("dgc", 0.97, at_bandwidth(1));
  at_one.gain = open.gain;
  EXPECT_TRUE(
      verdict(report_of({row("momentum", 1, at_bandwidth(10)), row("dgc", 1.5, at_bandwidth(10)),
                         row("momentum", 1, at_bandwidth(1)), at_one}))
          .ends_with(
              "dgc may be faster or slower than momentum at bandwidth_gbps 1: its 80 % interval "
              "contains 1."));
}

TEST(Verdict, SlowerBeginsAsFarFromOneAsFaster) {
  EXPECT_EQ(verdict(report_of({row("momentum", 1), row("dgc", 0.9994)})),
            "dgc makes no difference of more than 0.5 % (0.999x over momentum).");
  EXPECT_EQ(verdict(report_of({row("momentum", 1), row("dgc", 0.994)})),
            "dgc is slower (0.994x over momentum).");
}

TEST(Verdict, TwoStrategiesAlongASweep) {
  EXPECT_EQ(verdict(test::dgc_report()),
            "dgc is the fastest at bandwidth_gbps 10 and 1 (1.47x and 6.55x over momentum); at "
            "100 it is slower (0.985x).");
  EXPECT_EQ(verdict(swept({"dgc"}, {{100, {1.002}}, {10, {1.4}}})),
            "dgc is the fastest at bandwidth_gbps 10 (1.40x over momentum); at 100 it makes no "
            "difference of more than 0.5 % (1.00x).");
  EXPECT_EQ(verdict(swept({"dgc"}, {{100, {1.1}}, {10, {1.4}}})),
            "dgc is the fastest at every sweep point (1.10x to 1.40x over momentum).");
  EXPECT_EQ(verdict(swept({"dgc"}, {{100, {0.9}}, {10, {0.8}}})),
            "dgc is slower at any sweep point (0.800x to 0.900x over momentum).");
}

// Along a sweep of ranks alone: what is kept of each rank's samples, and where more ranks are
// slower.
TEST(Verdict, ReportsTheGainOfMoreRanks) {
  const auto at = [](std::int64_t nodes, double efficiency) {
    measure::Row one = row("momentum", 1, SweepPoint{{"cluster.nodes", nodes}});
    one.rate.ranks = nodes;
    one.rate.efficiency = efficiency;
    one.metrics.throughput = 100 * efficiency * static_cast<double>(nodes);
    return one;
  };
  const std::string kept = verdict(report_of({at(1, 1), at(2, 0.9), at(4, 0.8)}));
  EXPECT_TRUE(
      test::says(kept,
                 "'momentum' keeps 80.0 % of its samples per rank from 1 to 4 ranks, where 47.7 % "
                 "of the step waits for communication."));
  const std::string slower = verdict(report_of({at(1, 1), at(2, 0.9), at(4, 0.4)}));
  EXPECT_TRUE(test::says(slower, "; 4 ranks are slower than 2, 160.0 samples/s instead of 180.0."));
  EXPECT_TRUE(test::lacks(verdict(report_of({at(2, 1), at(2, 1)})), "keeps"));
  EXPECT_TRUE(test::lacks(verdict(report_of({at(2, 0), at(4, 0)})), "keeps"));
}

TEST(Verdict, ManyPointsAreSummarised) {
  std::vector<std::pair<int, std::vector<double>>> points;
  for (int gbps = 1; gbps <= 10; ++gbps) points.push_back({gbps, {gbps <= 6 ? 2.0 : 0.9}});
  EXPECT_EQ(verdict(swept({"dgc"}, points)),
            "dgc is the fastest at bandwidth_gbps 1 to 6 (2.00x over momentum); at 7, 8, 9 and 10 "
            "it is slower (0.900x).");
  points[2].second = {0.5};  // no longer next to each other
  EXPECT_EQ(verdict(swept({"dgc"}, points)),
            "dgc is the fastest at 5 of 10 sweep points (2.00x over momentum); at 5 of 10 sweep "
            "points it is slower (0.500x to 0.900x).");
}

TEST(Verdict, SeveralAxesAreNamedTogether) {
  std::vector<measure::Row> rows;
  for (const int streams : {1, 2}) {
    SweepPoint point = at_bandwidth(10);
    point.emplace_back("strategies.dgc.streams", Json(streams));
    rows.push_back(row("momentum", 1, point));
    rows.push_back(row("dgc", streams == 2 ? 1.5 : 0.9, point));
  }
  EXPECT_EQ(verdict(report_of(rows)),
            "dgc is the fastest at bandwidth_gbps 10, dgc.streams 2 (1.50x over momentum); at "
            "bandwidth_gbps 10, dgc.streams 1 it is slower (0.900x).");
}

TEST(Verdict, SeveralStrategies) {
  EXPECT_EQ(verdict(report_of({row("momentum", 1), row("dgc", 1.47), row("fp16", 1.2)})),
            "dgc is the fastest (1.47x over momentum).");
  EXPECT_EQ(verdict(report_of({row("momentum", 1), row("dgc", 1.47), row("fp16", 0.9)})),
            "dgc is the fastest (1.47x over momentum). fp16 is slower (0.900x).");
  EXPECT_EQ(verdict(report_of({row("momentum", 1), row("dgc", 1.003), row("fp16", 0.9)})),
            "No strategy is more than 0.5 % faster than momentum. fp16 is slower (0.900x).");
  EXPECT_EQ(verdict(report_of({row("momentum", 1), row("a", 0.8), row("b", 0.9)})),
            "No strategy is more than 0.5 % faster than momentum. a and b are slower (0.800x and "
            "0.900x).");
}

TEST(Verdict, TiesAreCalledTies) {
  EXPECT_EQ(verdict(report_of({row("momentum", 1), row("dgc", 1.47), row("fp16", 1.468)})),
            "dgc and fp16 are the fastest, within 0.5 % of each other (1.47x over momentum).");
}

TEST(Verdict, LeadersChangeAlongASweep) {
  const measure::Report report =
      swept({"dgc", "fp16"}, {{100, {0.9, 1.2}}, {10, {1.5, 1.3}}, {1, {6.5, 0.99}}});
  EXPECT_EQ(verdict(report),
            "dgc is the fastest at bandwidth_gbps 10 and 1 (1.50x and 6.50x over momentum); fp16 "
            "is the fastest at 100 (1.20x over momentum). dgc is slower at bandwidth_gbps 100 "
            "(0.900x); fp16 is slower at 1 (0.990x).");
}

TEST(Verdict, LosersEverywhereAreNamedTogether) {
  const measure::Report report =
      swept({"dgc", "a", "b"}, {{10, {1.5, 0.9, 0.8}}, {1, {1.6, 0.7, 0.6}}});
  EXPECT_EQ(verdict(report),
            "dgc is the fastest at every sweep point (1.50x to 1.60x over momentum). a and b are "
            "slower at any sweep point (0.600x to 0.900x).");
}

TEST(Verdict, ManyLeadersAreCutShort) {
  std::vector<std::pair<int, std::vector<double>>> points;
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) {
    names.push_back("s" + std::to_string(i));
    points.push_back({i + 1, std::vector<double>(6, 1)});
    points.back().second[static_cast<std::size_t>(i)] = 2;
  }
  const std::string text = verdict(swept(names, points));
  EXPECT_TRUE(test::says(text, "s3 is the fastest at 4 (2.00x",
                         "see the table for the other 2 sweep points."));
}

measure::Row sized(measure::Row row, double gigabytes) {
  row.memory.weights = gigabytes * 1e9;
  row.memory.available = 16e9;
  return row;
}

// Nobody can take what does not fit, however fast it is.
TEST(Verdict, TheFastestIsOneThatFitsInMemory) {
  const auto with = [](double momentum, double fp16, double fsdp) {
    return report_of({sized(row("momentum", 1), momentum), sized(row("fp16", 1.5), fp16),
                      sized(row("fsdp", 0.9), fsdp)});
  };
  EXPECT_EQ(verdict(with(120, 100, 8)),
            "fsdp is the fastest that fits in memory (0.900x over momentum, which does not fit); "
            "fp16 is faster (1.50x) and does not fit.");
  EXPECT_EQ(verdict(with(14, 100, 8)),
            "No strategy that fits is more than 0.5 % faster than momentum; fp16 is faster (1.50x) "
            "and does not fit. fsdp is slower (0.900x).");
  EXPECT_EQ(verdict(with(120, 14, 8)),
            "fp16 is the fastest that fits in memory (1.50x over momentum, which does not fit).");
  const std::string all = "fp16 is the fastest (1.50x over momentum). fsdp is slower (0.900x).";
  EXPECT_EQ(verdict(with(14, 14, 8)), all);
  EXPECT_EQ(verdict(with(120, 100, 90)),
            "Nothing here fits in memory: 'fsdp' needs least, 90 of 16 GB.");
  EXPECT_EQ(tones_of(with(120, 100, 90)), (std::vector<Tone>(3, Tone::kFaint)));
  EXPECT_EQ(verdict(with(14, 14, 100)), "fp16 is the fastest (1.50x over momentum).");
  EXPECT_EQ(tones_of(with(120, 100, 8)),
            (std::vector<Tone>{Tone::kFaint, Tone::kFaint, Tone::kBest}));
  // Nothing that fits is faster than the baseline.
  EXPECT_EQ(tones_of(with(14, 100, 8)),
            (std::vector<Tone>{Tone::kBest, Tone::kFaint, Tone::kFaint}));
  EXPECT_EQ(tones_of(report_of({row("momentum", 1)})), (std::vector<Tone>{Tone::kPlain}));
}

// Two strategies, and a sweep along which memory decides at some points alone.
TEST(Verdict, MemoryDecidesPointByPoint) {
  EXPECT_EQ(verdict(report_of({sized(row("momentum", 1), 14), sized(row("dgc", 1.4), 17)})),
            "No strategy that fits is more than 0.5 % faster than momentum; dgc is faster (1.40x) "
            "and does not fit.");
  EXPECT_EQ(verdict(report_of({sized(row("momentum", 1, at_bandwidth(10)), 14),
                               sized(row("dgc", 1.4, at_bandwidth(10)), 14),
                               sized(row("momentum", 1, at_bandwidth(1)), 17),
                               sized(row("dgc", 0.8, at_bandwidth(1)), 14)})),
            "dgc is the fastest at bandwidth_gbps 10 (1.40x over momentum); dgc is the fastest "
            "that fits in memory at 1 (0.800x over momentum, which does not fit).");
}

// A recommended strategy that fills the memory may not fit: jobs hold more than is counted.
TEST(Verdict, LittleRoomIsReported) {
  EXPECT_EQ(verdict(report_of({sized(row("momentum", 1), 14), sized(row("dgc", 1.4), 15)})),
            "dgc is the fastest (1.40x over momentum). 'dgc' may not fit: 15 of 16 GB are counted, "
            "and jobs take up to 9.0 % more.");
  EXPECT_EQ(verdict(report_of({sized(row("momentum", 1), 15), sized(row("dgc", 1.4), 14)})),
            "dgc is the fastest (1.40x over momentum).");
  EXPECT_TRUE(test::says(verdict(report_of({sized(row("momentum", 1), 15)})),
                         " 'momentum' may not fit: 15 of 16 GB are counted"));
  EXPECT_TRUE(test::says(verdict(report_of({sized(row("momentum", 1, at_bandwidth(10)), 14),
                                            sized(row("dgc", 1.4, at_bandwidth(10)), 14),
                                            sized(row("momentum", 1, at_bandwidth(1)), 14),
                                            sized(row("dgc", 1.8, at_bandwidth(1)), 15)})),
                         " 'dgc' at bandwidth_gbps 1 may not fit: 15 of 16 GB"));
}

TEST(Verdict, IncomparableRowsAreLeftOut) {
  EXPECT_EQ(verdict(report_of({})), "There is no complete sweep point to compare yet.");
  measure::Report interrupted = test::dgc_report();
  interrupted.baseline = "dgc";
  interrupted.rows.resize(1);
  EXPECT_EQ(verdict(interrupted), "There is no complete sweep point to compare yet.");
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(verdict(report_of({row("momentum", 1), row("a", none), row("b", 2)})),
            "b is the fastest (2.00x over momentum).");
}

}  // namespace
}  // namespace syncline::reports
