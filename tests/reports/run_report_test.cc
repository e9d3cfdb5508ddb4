#include "reports/run_report.h"
#include "reports/memory_text.h"
#include "reports/run_rows.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/executor.h"
#include "reports/page.h"
#include "reports/table.h"
#include "reports/tune_report.h"
#include "studies/tune/tuning.h"
#include "tests/reports/small_report.h"
#include "tests/support/expect.h"
#include "tests/support/printed.h"
#include "tests/support/said.h"
#include "tests/support/scratch.h"

namespace syncline::reports {
namespace {

using test::report_of;
using test::row;

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

TEST(Table, RulesAreBetweenSweepPoints) {
  const std::string text = test::table_of(test::dgc_report());
  std::size_t rules = 0;
  for (auto at = text.find("\n---"); at != text.npos; at = text.find("\n---", at + 1)) ++rules;
  EXPECT_EQ(rules, 3U);
  EXPECT_TRUE(test::says(text, "\nbandwidth_gbps  strategy ", "\n            10  dgc "));
}

TEST(Table, NoPublishedColumnWithoutPublishedValues) {
  const std::string text = test::table_of(test::dgc_report());
  EXPECT_TRUE(test::lacks(text, "published", "error", "accuracy", "use", "alibrat"));
}

TEST(Table, PublishedFiguresAreNextToThePredictions) {
  const std::string text = test::table_of(test::published_report());
  EXPECT_TRUE(
      test::says(text, "370.0 ms  calibrated  +0.7 %    +2.2 %\n",
                 "370.0 ms  predicted   +2.2 %                   76.5\n", "(published)\n",
                 "Calibrated: cluster.inter.latency_us = 35.25.\n",
                 "Left out of the calibration: momentum. Fitted to the rest: "
                 "cluster.inter.latency_us = 36.\n",
                 "Against published figures: 1 row used for calibration, 0.7 % off; 2 rows not "
                 "used for calibration, 1.4 % off in the mean and 2.2 % at most; 1 row left out "
                 "of the calibration in turn, 2.2 % off.\n",
                 "1 parameter is calibrated with the model executor on the 1 "
                 "published row marked calibrated.\n",
                 "- dgc at bandwidth_gbps 100: batch not given\n"));
}

TEST(Table, ThroughputAndSpeedupIfNoTimeWasPublished) {
  measure::Report report = report_of({row("momentum", 1), row("dgc", 1.467)});
  for (auto& one : report.rows) one.published.emplace();
  report.rows[0].published->throughput = 1234.5;
  report.rows[1].published->speedup = 1.5;
  const std::string text = test::table_of(report);
  EXPECT_TRUE(test::says(text, "1,234.5 /s  predicted\n", "1.500x  predicted\n"));
}

// A baseline is once as fast as itself by definition; that must not flatter the mean.
TEST(Table, ABaselinesSpeedupIsNoPrediction) {
  measure::Report report = report_of({row("momentum", 1), row("dgc", 1.467)});
  for (auto& one : report.rows) one.published.emplace();
  report.rows[0].published->speedup = 1;
  report.rows[0].error_percent = 0;
  report.rows[1].published->speedup = 1.4;
  report.rows[1].error_percent = 4.8;
  EXPECT_TRUE(
      test::says(test::table_of(report), "figures: 1 row not used for calibration, 4.8 % off.\n"));
}

TEST(Table, PublishedBucketsHaveATableOfTheirOwn) {
  measure::Report report = report_of({row("momentum", 1)});
  report.rows[0].published.emplace();
  report.rows[0].published->buckets = {{3, 3.9}, {158, 93.6}};
  report.rows[0].buckets = std::vector<std::pair<std::int64_t, double>>(14, {1, 0.25});
  const std::string text = test::table_of(report);
  EXPECT_TRUE(test::says(text, "1 of 0.25 MiB and 2 more  3 of 3.9 MiB, 158 of 93.6 MiB\n"));
}

TEST(Table, SaysThatItIsIncomplete) {
  measure::Report report = test::dgc_report();
  report.complete = false;
  report.rows.resize(3);
  const std::string text = test::table_of(report);
  EXPECT_TRUE(test::says(text, "Interrupted: this report is incomplete"));
  EXPECT_TRUE(test::says(test::markdown_of(report), "Interrupted: this report is incomplete"));
  report.rows.clear();
  EXPECT_TRUE(
      test::says(test::table_of(report), "There is no complete sweep point to compare yet."));
}

TEST(Table, ExecutorsAreNamedIfTheyDiffer) {
  measure::Report report = report_of({row("momentum", 1), row("momentum", 1)});
  report.rows[1].executor = "sim";
  EXPECT_TRUE(test::says(test::table_of(report), "strategy  executor "));
  EXPECT_TRUE(test::says(test::table_of(report), "predicted by the model and sim executors"));
}

TEST(Markdown, HasTheContentOfTheTable) {
  const std::string text = test::markdown_of(test::published_report());
  EXPECT_TRUE(text.starts_with("# dgc_pays\n\nDoes sending"));
  EXPECT_TRUE(test::says(
      text, "\n| bandwidth_gbps | strategy | step time |",
      "| -------------: | :------- | --------: |", "|            100 | momentum |  372.5 ms |",
      "at 100 it is slower (0.985x).\n", "Sources:\n\n- times measured on one V100\n"));
}

TEST(Markdown, NamesCannotBreakTheTable) {
  const std::string text = test::markdown_of(report_of({row("a|b\nc", 1)}, "a|b\nc"));
  EXPECT_TRUE(test::says(text, "\n| a\\|b c  |") || test::says(text, "\n| a\\|b c   |")) << text;
}

TEST(Csv, Golden) {
  measure::Report report = test::report_of({test::row("momentum", 1, test::at_bandwidth(0.5))});
  EXPECT_EQ(test::csv_of(report),
            "strategy,executor,cluster.inter.bandwidth_gbps,step_time_s,throughput,speedup,"
            "collectives,bytes_on_wire_per_rank,compute_s,communication_s,"
            "exposed_communication_s,handling_s,lower_bound_s\r\n"
            "momentum,model,0.5,0.3725,687.248322147651,1,161,134217728,0.195,0.25,0.1775,0,0.195"
            "\r\n");
}

TEST(Csv, QuotesWhatNeedsQuotes) {
  measure::Report report = test::report_of(
      {test::row("a,b", 1), test::row("say \"c\"", 1), test::row("d\ne", 1)}, "a,b");
  const std::string text = test::csv_of(report);
  EXPECT_TRUE(test::says(text, "\r\n\"a,b\",model,", "\r\n\"say \"\"c\"\"\",model,",
                         "\r\n\"d\ne\",model,"));
}

TEST(Csv, PublishedColumnsOnlyIfUsed) {
  EXPECT_TRUE(test::lacks(test::csv_of(test::dgc_report()), "published"));
  const std::string text = test::csv_of(test::published_report());
  EXPECT_TRUE(test::says(text,
                         ",lower_bound_s,published_step_time_s,published_accuracy,published_use,"
                         "published_source,published_note,error_percent,left_out_error_percent\r\n",
                         ",0.37,,calibrated,a table,,",
                         ",0.37,76.5,predicted,a table,batch not given,"));
  EXPECT_TRUE(text.ends_with(",,,,,,,\r\n"));  // nothing was published for the last row
}

// Line by line the text is the same.
TEST(Csv, RowsThatComeOneByOneAreTheSameText) {
  measure::Report report = test::report_of(
      {test::row("a", 1, test::at_bandwidth(0.5)), test::row("b,c", 2, test::at_bandwidth(0.5)),
       test::row("a", 3, test::at_bandwidth(10))},
      "a");
  for (auto& row : report.rows) {
    row.step = {row.metrics.step_time * 0.9, row.metrics.step_time * 1.1};
    row.gain = {0.5, 1.5};
  }
  std::ostringstream text;
  CsvStream rows(text);
  for (const auto& row : report.rows) rows.put(row);
  EXPECT_EQ(text.str(), test::csv_of(report));
}

TEST(Csv, NoRowsAHeader) {
  EXPECT_TRUE(test::csv_of(test::report_of({})).starts_with("strategy,executor,step_time_s,"));
}

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

TEST(JsonReport, AnEmptySweepVariesNoKey) {
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

TEST(JsonReport, IncompleteOnlyIfInterrupted) {
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

std::vector<std::string> names(const std::vector<std::string>& paths) {
  measure::Row row;
  for (const auto& path : paths) row.sweep.emplace_back(path, Json(1));
  std::vector<std::string> result;
  for (const auto& axis : axes_of({row})) result.push_back(axis.name);
  return result;
}

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

TEST(Axes, PointsAreDistinguished) {
  const auto rows = test::dgc_report().rows;
  EXPECT_TRUE(same_point(rows[0], rows[1]));
  EXPECT_FALSE(same_point(rows[1], rows[2]));
  EXPECT_EQ(point_text(rows[0], axes_of(rows)), "bandwidth_gbps 100");
}

// Memory in words: what is needed, of what there is.

measure::Memory of(double available) {
  measure::Memory memory;
  memory.weights = memory.gradients = 32e9;
  memory.optimizer = 64e9;
  memory.available = available;
  return memory;
}

TEST(MemoryText, NamesTheCapacityIfItIsTooSmall) {
  EXPECT_EQ(memory_cell(of(0)), "128 GB");
  EXPECT_EQ(memory_cell(of(192e9)), "128 GB");
  EXPECT_EQ(memory_cell(of(16e9)), "128 of 16 GB");
  EXPECT_EQ(memory_cell({}), "");
  measure::Memory large;
  large.weights = 1234e9;
  EXPECT_EQ(memory_cell(large), "1230 GB");
  EXPECT_EQ(
      memory_sentence(of(16e9)),
      "128 GB per GPU of 16: weights 32, gradients 32, optimizer 64, buffers 0; activations are "
      "not counted");
  EXPECT_EQ(memory_json(of(16e9)).at("fits"), false);
  EXPECT_FALSE(memory_json(of(0)).contains("fits"));
  // Activations that nobody counted may take what is left.
  measure::Memory left = of(192e9);
  EXPECT_EQ(memory_json(left).at("may_not_fit"), true);
  left.activations = 1e9;
  EXPECT_FALSE(memory_json(left).contains("may_not_fit"));
}

constexpr const char* kScenario = R"({
    "name": "m",
    "workload": {"name": "w", "forward_ms": 100, "backward_ms": 200,
      "tensors": [{"name": "layers.1.weight", "shape": [10000, 10000]},
                  {"name": "layers.0.weight", "shape": [10000, 10000]}]},
    "cluster": {"name": "c", "nodes": 8, "gpus_per_node": 1,
      "inter": {"latency_us": 10, "bandwidth_gbps": 100},
      "device": {"name": "a small one", "memory_gbytes": 3}},
    "strategies": [{"name": "ddp", "dialect": "pytorch", "config": {}}],
    "search": {"base": "ddp", "fusion": {"size_mb": "breakpoints"}, "confirm": 0}})";

// The first line under the title.
TEST(MemoryText, StrategiesThatDoNotFitComeFirst) {
  const std::string why =
      "'ddp' with Adam (assumed) needs 4 GB per GPU before its "
      "activations, a small one has 3 GB";
  const input::Document document = input::document_from_text("m", kScenario);
  measure::StudyOptions options;
  options.make_executor = run::make_model_executor;
  const measure::Report report = measure::run_study(document, options);
  const std::string run = text_page(page_of(report));
  EXPECT_TRUE(test::says(run, "Nothing here fits in memory: " + why + "; 'FSDP2' needs"));
  EXPECT_TRUE(test::says(run, "4 of 3 GB"));
  EXPECT_TRUE(test::says(json_of(report).at("does_not_fit").get<std::string>(), "needs 4 GB"));
  const tune::Tuning tuning = tune::tune_document(document, {}, "", nullptr);
  const std::string tuned = text_page(answer_of(tuning).page());
  EXPECT_TRUE(test::says(tuned, "Does not fit: " + why + "."));
  EXPECT_TRUE(test::says(tuned, "' is the best found that fits", "in fsdp: "));
  EXPECT_EQ(answer_of(tuning).json().at("does_not_fit"), json_of(report).at("does_not_fit"));
  test::write_text(test::scratch().path("m.json"), kScenario);
  const std::string checked = test::say({"check", test::scratch().path("m.json")}).out;
  EXPECT_TRUE(test::says(
      checked, "m.json: correct, but does not fit: 'ddp' with Adam (assumed) needs 4 GB"));
  // With the file that the command names.
  const std::string file = test::scratch().path("m.json");
  std::string json = test::say({"check", file, "--format", "json"}).out;
  json.replace(json.find("tune " + file), 5 + file.size(), "tune m");
  EXPECT_EQ(Json::parse(json).at("does_not_fit"), json_of(report).at("does_not_fit"));
}

// Memory is left out of the short page while each row fills less than half of a device.
TEST(MemoryText, RowsThatFillADeviceHaveTheirMemory) {
  const auto page = [](double gigabytes) {
    Json root = Json::parse(kScenario);
    root["cluster"]["device"]["memory_gbytes"] = gigabytes;
    const std::string file = test::scratch().path("half.json");
    test::write_text(file, root.dump());
    return test::say({"run", file}).out;
  };
  EXPECT_TRUE(test::says(page(6), "memory", "4 GB"));
  EXPECT_EQ(page(9).find("memory"), std::string::npos);
}

}  // namespace
}  // namespace syncline::reports
