// Every check of the kernels (kernels/check), which `make gpu-check` runs on a GPU, on the CPU: the
// same sources, compiled without nvcc, block after block in an order of chance.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "kernels/check/check.h"
#include "kernels/launch.h"

namespace syncline::kernels {

// At once: there is one stream. Threads of a phase rise in one block and fall in the next.
void launch_on_host(const char*, LaunchGrid grid, cudaStream_t, std::function<void()> block) {
  static std::mt19937 random(1);
  std::vector<unsigned> order(static_cast<std::size_t>(grid.x) * grid.y);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), random);
  gridDim = grid;
  for (const unsigned number : order) {
    blockIdx = {number % grid.x, number / grid.x};
    SerialBlock::falling = random() % 2 != 0;
    block();
  }
}

Status clear(void* memory, std::size_t bytes, cudaStream_t) {
  std::memset(memory, 0, bytes);
  return {};
}

namespace {

struct Family {
  const char* name;
  void (*check)(Checks&);
  std::size_t cases;  // at least: a loop that has lost its cases passes everything
};

class KernelChecks : public testing::TestWithParam<Family> {};

TEST_P(KernelChecks, PassBlockByBlock) {
  Checks checks(false);
  GetParam().check(checks);
  EXPECT_GE(checks.cases().size(), GetParam().cases);
  for (const CheckedCase& checked : checks.cases()) {
    EXPECT_TRUE(checked.passed) << checked.name << ": " << checked.detail;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, KernelChecks,
                         testing::Values(Family{"blocks", check_blocks, 80},
                                         Family{"dgc", check_dgc, 150},
                                         Family{"pack", check_pack, 160},
                                         Family{"update", check_update, 70},
                                         Family{"layers", check_layers, 400},
                                         Family{"orthogonalise", check_orthogonalise, 40}),
                         [](const auto& family) { return std::string(family.param.name); });

// The timings of a GPU check run too; what they say of a CPU is nobody's business.
TEST(KernelTimings, AreJsonWithARowForEachKind) {
  const Measurements measured = measure_kernels(false);
  Checks checks(false);
  checks.line("with \"quotes\"", true);
  const auto json =
      nlohmann::json::parse(as_json(measured, checks, "a CPU", "2026-01-02", "abc", true));
  EXPECT_EQ(json.at("format"), "syncline gpu-check 1");
  EXPECT_EQ(json.at("rehearsal"), true);
  EXPECT_EQ(json.at("machine").at("name"), "a CPU");
  EXPECT_EQ(json.at("checks").at(0).at("name"), "with \"quotes\"");
  EXPECT_EQ(json.at("ceilings").size(), 5U);
  EXPECT_GT(json.at("launch").at("submit_us"), 0);
  std::set<std::string> kinds;
  int fused = 0;
  for (const auto& row : json.at("timings")) {
    if (row.contains("failed")) {  // cublasLt is not emulated here
      EXPECT_NE(row.at("case").get<std::string>().find("product"), std::string::npos) << row;
      continue;
    }
    kinds.insert(row.at("kind"));
    EXPECT_GT(row.at("counted_bytes"), 0) << row;
    EXPECT_GT(row.at("floor_us"), 0) << row;
    EXPECT_LE(row.at("us_low"), row.at("us_high")) << row;
    if (!row.contains("ratio")) continue;
    ++fused;
    EXPECT_GE(row.at("predicted_ratio"), 1) << row;
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"blocks", "divide", "dgc_step", "layer", "pack",
                                          "sparse_apply", "update"}));
  EXPECT_EQ(fused, 8);
}

}  // namespace
}  // namespace syncline::kernels
