// Configurations of frameworks as the dialects read them, for the tests of dialects.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/dialect/write.h"
#include "core/error.h"
#include "core/json/reader.h"
#include "core/json/text.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"

namespace syncline::test {

// Messages about this configuration begin with "x.json: c".
inline dialect::Reading read_config(const dialect::Dialect& dialect, const std::string& config,
                                    const Workload& workload, const Cluster& cluster,
                                    bool as_documents = false) {
  const Json json = parse_json_text("x.json", config);
  return dialect.read(Reader(json, "x.json", "c"), workload, cluster, as_documents);
}

inline bool has_note(const dialect::Reading& reading, const std::string& part) {
  return std::any_of(reading.notes.begin(), reading.notes.end(),
                     [&](const auto& note) { return note.find(part) != std::string::npos; });
}

// Why a configuration is refused; empty where it is read.
inline std::string refusal_of(const dialect::Dialect& dialect, const std::string& config,
                              const Workload& workload, const Cluster& cluster,
                              bool as_documents = false) {
  try {
    read_config(dialect, config, workload, cluster, as_documents);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Written and read again, what a configuration came to makes the same plan.
inline dialect::Written expect_comes_back(const dialect::Dialect& dialect, const Strategy& strategy,
                                          const Workload& workload, const Cluster& cluster) {
  const auto written = dialect::write_config(dialect, strategy, workload, cluster);
  EXPECT_TRUE(written && written->exact)
      << dialect.name << (written ? written->config.dump() + written->difference : "");
  return written.value_or(dialect::Written{});
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
