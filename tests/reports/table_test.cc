#include "reports/run_report.h"

#include <gtest/gtest.h>

#include "tests/reports/small_report.h"
#include "tests/support/printed.h"

namespace syncline::reports {
namespace {

using test::report_of;
using test::row;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A whole answer, as a person sees it.
TEST(Table, Golden) {
  measure::Report report = report_of({row("momentum", 1), row("dgc", 1.467)});
  EXPECT_EQ(test::table_of(report), R"(dgc_pays: Does sending a thousandth of the gradients pay?

dgc is the fastest (1.47x over momentum).

Workload resnet50, cluster two_nodes.

              step  throughput,  speedup over  collectives       sent             exposed     lower
strategy      time    samples/s      momentum     per step   per rank   compute     comm.     bound
---------------------------------------------------------------------------------------------------
momentum  372.5 ms        687.2        1.000x          161  128.0 MiB  195.0 ms  177.5 ms  195.0 ms
dgc       253.9 ms      1,008.2        1.467x          161  128.0 MiB  195.0 ms  58.92 ms  195.0 ms

All figures are predicted by the model executor, none is measured.

Sources:
- times measured on one V100
)");
}

TEST(Table, RulesStandBetweenSweepPoints) {
  const std::string text = test::table_of(test::dgc_report());
  std::size_t rules = 0;
  for (auto at = text.find("\n---"); at != text.npos; at = text.find("\n---", at + 1)) ++rules;
  EXPECT_EQ(rules, 3U);
  EXPECT_TRUE(has(text, "\nbandwidth_gbps  strategy "));
  EXPECT_TRUE(has(text, "\n            10  dgc "));
}

TEST(Table, NothingPublishedNothingSaidAboutIt) {
  const std::string text = test::table_of(test::dgc_report());
  for (const char* word : {"published", "error", "accuracy", "use", "alibrat"}) {
    EXPECT_FALSE(has(text, word)) << word;
  }
}

TEST(Table, PublishedFiguresStandBesideThePredictions) {
  const std::string text = test::table_of(test::published_report());
  EXPECT_TRUE(has(text, "370.0 ms  calibrated  +0.7 %    +2.2 %\n"));
  EXPECT_TRUE(has(text, "370.0 ms  predicted   +2.2 %                   76.5\n"));
  EXPECT_TRUE(has(text, "(published)\n"));
  EXPECT_TRUE(has(text, "Calibrated: cluster.inter.latency_us = 35.25.\n"));
  EXPECT_TRUE(has(text,
                  "Left out of the calibration: momentum. Fitted to the rest: "
                  "cluster.inter.latency_us = 36.\n"));
  EXPECT_TRUE(has(text,
                  "Against published figures: 1 row used for calibration, 0.7 % off; 2 rows not "
                  "used for calibration, 1.4 % off in the mean and 2.2 % at most; 1 row left out "
                  "of the calibration in turn, 2.2 % off.\n"));
  EXPECT_TRUE(has(text,
                  "1 parameter is calibrated with the model executor on the 1 "
                  "published row marked calibrated.\n"));
  EXPECT_TRUE(has(text, "- dgc at bandwidth_gbps 100: batch not given\n"));
}

TEST(Table, ThroughputAndSpeedupWhereNoTimeWasPublished) {
  measure::Report report = report_of({row("momentum", 1), row("dgc", 1.467)});
  for (auto& one : report.rows) one.published.emplace();
  report.rows[0].published->throughput = 1234.5;
  report.rows[1].published->speedup = 1.5;
  const std::string text = test::table_of(report);
  EXPECT_TRUE(has(text, "1,234.5 /s  predicted\n"));
  EXPECT_TRUE(has(text, "1.500x  predicted\n"));
}

// A baseline is once as fast as itself by definition; that must not flatter the mean.
TEST(Table, ABaselinesSpeedupIsNoPrediction) {
  measure::Report report = report_of({row("momentum", 1), row("dgc", 1.467)});
  for (auto& one : report.rows) one.published.emplace();
  report.rows[0].published->speedup = 1;
  report.rows[0].error_percent = 0;
  report.rows[1].published->speedup = 1.4;
  report.rows[1].error_percent = 4.8;
  EXPECT_TRUE(has(test::table_of(report), "figures: 1 row not used for calibration, 4.8 % off.\n"));
}

TEST(Table, PublishedBucketsHaveATableOfTheirOwn) {
  measure::Report report = report_of({row("momentum", 1)});
  report.rows[0].published.emplace();
  report.rows[0].published->buckets = {{3, 3.9}, {158, 93.6}};
  report.rows[0].buckets = std::vector<std::pair<std::int64_t, double>>(14, {1, 0.25});
  const std::string text = test::table_of(report);
  EXPECT_TRUE(has(text, "1 of 0.25 MiB and 2 more  3 of 3.9 MiB, 158 of 93.6 MiB\n"));
}

TEST(Table, SaysThatItIsIncomplete) {
  measure::Report report = test::dgc_report();
  report.complete = false;
  report.rows.resize(3);
  const std::string text = test::table_of(report);
  EXPECT_TRUE(has(text, "Interrupted: this report is incomplete"));
  EXPECT_TRUE(has(test::markdown_of(report), "Interrupted: this report is incomplete"));
  report.rows.clear();
  EXPECT_TRUE(has(test::table_of(report), "There is no complete sweep point to compare yet."));
}

TEST(Table, ExecutorsAreNamedWhereTheyDiffer) {
  measure::Report report = report_of({row("momentum", 1), row("momentum", 1)});
  report.rows[1].executor = "sim";
  EXPECT_TRUE(has(test::table_of(report), "strategy  executor "));
  EXPECT_TRUE(has(test::table_of(report), "predicted by the model and sim executors"));
}

TEST(Markdown, HasTheContentOfTheTable) {
  const std::string text = test::markdown_of(test::published_report());
  EXPECT_TRUE(text.starts_with("# dgc_pays\n\nDoes sending"));
  EXPECT_TRUE(has(text, "\n| bandwidth_gbps | strategy | step time |"));
  EXPECT_TRUE(has(text, "| -------------: | :------- | --------: |"));
  EXPECT_TRUE(has(text, "|            100 | momentum |  372.5 ms |"));
  EXPECT_TRUE(has(text, "at 100 it is slower (0.985x).\n"));
  EXPECT_TRUE(has(text, "Sources:\n\n- times measured on one V100\n"));
}

TEST(Markdown, NamesCannotBreakTheTable) {
  const std::string text = test::markdown_of(report_of({row("a|b\nc", 1)}, "a|b\nc"));
  EXPECT_TRUE(has(text, "\n| a\\|b c  |") || has(text, "\n| a\\|b c   |")) << text;
}

}  // namespace
}  // namespace syncline::reports
