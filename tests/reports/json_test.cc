#include "reports/run_report.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/reports/small_report.h"
#include "tests/support/printed.h"

namespace syncline::reports {
namespace {

using Names = std::vector<std::string>;

Names keys(const Json& object) {
  Names names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

TEST(JsonReport, HasExactlyTheDocumentedKeys) {
  const Json json = Json::parse(test::json_of(test::dgc_report()));
  EXPECT_EQ(keys(json), (Names{"syncline", "format", "verb", "scenario", "rows", "provenance"}));
  EXPECT_EQ(keys(json["rows"][0]),
            (Names{"strategy", "executor", "sweep", "step_time_s", "throughput", "speedup",
                   "collectives", "bytes_on_wire_per_rank", "compute_s", "communication_s",
                   "exposed_communication_s", "handling_s", "lower_bound_s"}));
  EXPECT_EQ(keys(json["provenance"]),
            (Names{"executor", "baseline", "workload", "cluster", "seed", "sources", "figures"}));
  EXPECT_EQ(json["rows"].size(), 6U);
  EXPECT_EQ(json["rows"][3]["sweep"], (Json{{test::kBandwidth, 10}}));
  EXPECT_EQ(json["rows"][3]["speedup"], 1.467);
  EXPECT_EQ(json["rows"][3]["collectives"].dump(), "161");
  EXPECT_EQ(json["provenance"]["seed"], 7);
  EXPECT_EQ(json["provenance"]["figures"],
            "All figures are predicted by the model executor, none is measured.");
}

TEST(JsonReport, NothingVariesAnEmptySweep) {
  const Json json = Json::parse(test::json_of(test::report_of({test::row("momentum", 1)})));
  EXPECT_EQ(json["rows"][0]["sweep"].dump(), "{}");
}

TEST(JsonReport, PublishedAndCalibrated) {
  measure::Report report = test::published_report();
  report.rows[1].published->buckets = {{3, 3.9}, {158, 93.6}};
  report.rows[1].buckets = {{161, 97.5}};
  const Json json = Json::parse(test::json_of(report));
  EXPECT_EQ(keys(json), (Names{"syncline", "format", "verb", "scenario", "rows", "calibration",
                               "splits", "provenance"}));
  EXPECT_EQ(json["calibration"].dump(), R"({"parameters":{"cluster.inter.latency_us":35.25}})");
  EXPECT_EQ(json["rows"][0]["published"].dump(),
            R"({"step_time_s":0.37,"use":"calibrated","source":"a table"})");
  EXPECT_EQ(json["rows"][0]["left_out_error_percent"], 2.25);
  EXPECT_FALSE(json["rows"][0].contains("buckets"));
  EXPECT_EQ(json["rows"][1]["published"].dump(),
            R"({"step_time_s":0.37,"accuracy":76.5,"buckets":[[3,3.9],[158,93.6]],)"
            R"("use":"predicted","source":"a table","note":"batch not given"})");
  EXPECT_EQ(json["rows"][1]["buckets"].dump(), "[[161,97.5]]");
  EXPECT_FALSE(json["rows"][5].contains("published"));
  EXPECT_FALSE(json["rows"][5].contains("error_percent"));
  EXPECT_EQ(keys(json["splits"][0]), (Names{"left_out", "parameters", "rows"}));
  EXPECT_EQ(json["splits"][0]["rows"][0]["strategy"], "momentum");
}

TEST(JsonReport, IncompleteOnlyWhereInterrupted) {
  measure::Report report = test::dgc_report();
  EXPECT_FALSE(Json::parse(test::json_of(report)).contains("complete"));
  report.complete = false;
  EXPECT_EQ(Json::parse(test::json_of(report))["complete"], false);
}

TEST(JsonReport, NumbersReadBackTheSame) {
  measure::Report report = test::report_of({test::row("momentum", 1)});
  report.rows[0].metrics.step_time = 0.1 + 0.2;
  report.rows[0].metrics.bytes_on_wire = 1.5;
  const Json json = Json::parse(test::json_of(report));
  EXPECT_EQ(json["rows"][0]["step_time_s"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(json["rows"][0]["bytes_on_wire_per_rank"], 1.5);
  EXPECT_EQ(test::json_of(report), test::json_of(report));
}

TEST(JsonReport, FiguresThatDoNotExistAreLeftOut) {
  measure::Report report = test::report_of({test::row("momentum", 1)});
  report.rows[0].speedup = std::numeric_limits<double>::quiet_NaN();
  report.rows[0].metrics.throughput = std::numeric_limits<double>::infinity();
  report.rows[0].strategy = "\"quoted\"\n\xff";
  const Json json = Json::parse(test::json_of(report));
  EXPECT_FALSE(json["rows"][0].contains("speedup"));
  EXPECT_FALSE(json["rows"][0].contains("throughput"));
}

}  // namespace
}  // namespace syncline::reports
