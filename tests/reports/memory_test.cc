// Memory in words: what is needed, of what there is.
#include "reports/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/run/executor.h"
#include "core/tune/tuning.h"
#include "reports/page.h"
#include "reports/run_report.h"
#include "reports/tune_report.h"
#include "tests/support/said.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::reports {
namespace {

using test::contains;

measure::Memory of(double available) {
  measure::Memory memory;
  memory.weights = memory.gradients = 32e9;
  memory.optimizer = 64e9;
  memory.available = available;
  return memory;
}

TEST(MemoryText, SaysWhatThereIsWhereItIsTooLittle) {
  EXPECT_EQ(memory_cell(of(0)), "128 GB");
  EXPECT_EQ(memory_cell(of(192e9)), "128 GB");
  EXPECT_EQ(memory_cell(of(16e9)), "128 of 16 GB");
  EXPECT_EQ(memory_cell({}), "");
  measure::Memory large;
  large.weights = 1234e9;
  EXPECT_EQ(memory_cell(large), "1230 GB");
  EXPECT_EQ(
      memory_sentence(of(16e9)),
      "128 GB a GPU of 16: weights 32, gradients 32, optimizer 64, buffers 0; activations are "
      "not counted");
  EXPECT_EQ(memory_json(of(16e9)).at("fits"), false);
  EXPECT_FALSE(memory_json(of(0)).contains("fits"));
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
TEST(MemoryText, WhatDoesNotFitComesFirst) {
  const char* said =
      "\nDoes not fit: 'ddp' with Adam (assumed) needs 4 GB a GPU before its "
      "activations, a small one has 3 GB; FSDP's FULL_SHARD by layers needs";
  const input::Document document = input::document_from_text("m", kScenario);
  measure::StudyOptions options;
  options.make_executor = run::make_model_executor;
  const measure::Report report = measure::run_study(document, options);
  const std::string run = text_page(page_of(report));
  EXPECT_EQ(run.find(said), run.find('\n') + 1) << run;
  EXPECT_TRUE(contains(run, "4 of 3 GB"));
  EXPECT_TRUE(contains(json_of(report).at("does_not_fit").get<std::string>(), "needs 4 GB"));
  const tune::Tuning tuning = tune::tune_document(document, {}, "", nullptr);
  const std::string tuned = text_page(answer_of(tuning).page());
  EXPECT_EQ(tuned.find(said), tuned.find('\n') + 1) << tuned;
  EXPECT_TRUE(contains(tuned, "No candidate of this search fits."));
  EXPECT_EQ(answer_of(tuning).json().at("does_not_fit"), json_of(report).at("does_not_fit"));
  test::write_text(test::scratch().path("m.json"), kScenario);
  const std::string checked = test::say({"check", test::scratch().path("m.json")}).out;
  EXPECT_TRUE(
      contains(checked, "m.json: correct, but does not fit: 'ddp' with Adam (assumed) needs 4 GB"));
  const auto json = test::say({"check", test::scratch().path("m.json"), "--format", "json"}).out;
  EXPECT_EQ(Json::parse(json).at("does_not_fit"), json_of(report).at("does_not_fit"));
}

}  // namespace
}  // namespace syncline::reports
