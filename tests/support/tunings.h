// Searches carried out in a test, and a small job to search on.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "formats/input/document.h"
#include "studies/tune/tuning.h"

namespace syncline::test {

inline tune::Tuning tuning_of(const input::Document& document,
                              const tune::TuneOptions& options = {},
                              const dialect::Dialect* emit = nullptr) {
  return tune::tune_document(document, options, "", emit);
}

// A document's scenario and search.
struct Read {
  explicit Read(const input::Document& document)
      : scenario(input::parse_scenario(document)),
        search(*input::parse_search(document, scenario)) {}

  Scenario scenario;
  Search search;
};

// A dozen gradients on four nodes of four GPUs: few enough to try everything. `base` has further
// keys of the strategy.
inline Json small_search(const std::string& search, const std::string& base = "") {
  Json root = Json::parse(R"({
    "name": "small",
    "workload": {"name": "w", "batch": 8, "forward_ms": 1},
    "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 4,
                "intra": {"latency_us": 4, "bandwidth_gbps": 100},
                "inter": {"latency_us": 30, "bandwidth_gbps": 10, "flow_cap_gbps": 7},
                "device": {"memory_gbytes_per_s": 500, "launch_us": 5}},
    "strategies": [{"name": "base")" +
                          base + R"(}], "search": )" + search + "}");
  for (int i = 0; i < 12; ++i) {
    root["workload"]["tensors"].push_back(
        {{"name", "l" + std::to_string(i / 2) + "." + std::to_string(i)},
         {"shape", {9000 + 90000 * (i % 5)}},
         {"backward_us", 200 + 150 * (i % 3)}});
  }
  return root;
}

// As many rows, whose step times are the same place by place.
inline void expect_same_ranking(const tune::Tuned& found, const tune::Tuned& expected) {
  ASSERT_EQ(found.ranking.size(), expected.ranking.size());
  for (std::size_t i = 0; i < found.ranking.size(); ++i) {
    const tune::Ranked& row = expected.ranking[i];
    EXPECT_NEAR(found.ranking[i].metrics.step_time / row.metrics.step_time, 1, 1e-9)
        << i << ": " << row.strategy.name;
  }
}

}  // namespace syncline::test
