// Configurations of frameworks as the dialects read them, for the tests of dialects.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/plan.h"
#include "formats/dialect/write.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "tests/support/expect.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"

namespace syncline::test {

using Groups = std::vector<std::vector<int>>;

// A framework on a cluster: what its dialect makes of configurations there, and back.
struct Framework {
  dialect::Dialect row;
  Cluster cluster;

  Framework on(const Cluster& other) const { return {row, other}; }

  // Messages about this configuration begin with "x.json: c".
  dialect::Reading read(const std::string& config, const Workload& workload,
                        bool as_documents = false) const {
    const Json json = parse_json_text("x.json", config);
    return row.read(Reader(json, "x.json", "c"), workload, cluster, as_documents);
  }

  // Why a configuration is refused; empty where it is read.
  std::string refusal(const std::string& config, const Workload& workload,
                      bool as_documents = false) const {
    return input_error([&] { read(config, workload, as_documents); });
  }

  Strategy strategy_of(const std::string& config, const Workload& workload) const {
    return read(config, workload).strategy;
  }

  Groups groups_of(const std::string& config, const Workload& workload) const {
    return strategy_of(config, workload).fusion.groups;
  }

  plan::Plan plan_of(const std::string& config, const Workload& workload) const {
    return plan_of(strategy_of(config, workload), workload);
  }

  plan::Plan plan_of(const Strategy& strategy, const Workload& workload) const {
    return plan::make_plan(workload, cluster, strategy);
  }

  std::optional<dialect::Written> write(const Strategy& strategy, const Workload& workload) const {
    return dialect::write_config(row, strategy, workload, cluster);
  }

  // Written and read again, what a configuration came to makes the same plan.
  dialect::Written expect_comes_back(const Strategy& strategy, const Workload& workload) const {
    const auto written = write(strategy, workload);
    EXPECT_TRUE(written && written->exact)
        << row.name << (written ? written->config.dump() + written->difference : "");
    return written.value_or(dialect::Written{});
  }

  // Each of these configurations is refused, and the message says so.
  void expect_refusals(const Workload& workload,
                       const std::vector<std::pair<std::string, std::string>>& refused,
                       bool as_documents = false) const {
    for (const auto& [config, part] : refused) {
      const std::string message = refusal(config, workload, as_documents);
      EXPECT_TRUE(message.starts_with("x.json: c") && contains(message, part))
          << config << "\n"
          << message << "\nshould say: " << part;
    }
  }
};

inline bool has_note(const dialect::Reading& reading, const std::string& part) {
  return any_contains(reading.notes, part);
}

inline Groups tensors_in(const std::vector<plan::Bucket>& buckets) {
  Groups groups;
  for (const auto& bucket : buckets) groups.push_back(bucket.tensors);
  return groups;
}

// Gradients of these numbers of elements.
inline Workload workload_of(const std::vector<std::int64_t>& sizes, DType dtype = DType::kFp32) {
  Workload workload;
  for (const auto size : sizes) workload.tensors.push_back(tensor_of("t", {size}, dtype));
  return workload;
}

inline std::size_t count_of(const plan::Plan& plan, collective::CollectiveKind kind) {
  return static_cast<std::size_t>(std::ranges::count_if(plan.ops, [&](const plan::Op& op) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    return collective != nullptr && collective->kind == kind;
  }));
}

}  // namespace syncline::test
