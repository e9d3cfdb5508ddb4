// DistributedDataParallel's buckets against torch.distributed's own function, tensor by tensor.
// Needs Python with torch (Debian's python3-torch); skips itself without.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "formats/dialect/dialects.h"
#include "tests/support/program.h"
#include "tests/support/readings.h"
#include "tests/support/scratch.h"
#include "tests/support/small_plans.h"

namespace syncline::dialect {
namespace {

namespace fs = std::filesystem;
using test::Groups;

// A Python that knows torch.distributed, or nothing.
std::string python_with_torch() {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    const std::string trial = std::string(python) + " -c 'import torch.distributed as d; " +
                              "d._compute_bucket_assignment_by_size' >/dev/null 2>&1";
    if (std::system(trial.c_str()) == 0) return python;
  }
  return "";
}

struct Case {
  std::string name;
  Workload workload;
  double cap_mb = 25;
  bool first_step = false;
};

// In the order in which torch walks them.
std::vector<int> walked(const Case& asked) {
  const auto& tensors = asked.workload.tensors;
  std::vector<int> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  if (!asked.first_step) return order;
  std::reverse(order.begin(), order.end());
  if (!asked.workload.tensors.empty() && tensors.front().registered >= 0) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      order[static_cast<std::size_t>(tensors[i].registered)] = static_cast<int>(i);
    }
  }
  return order;
}

// First step: parameters as registered, no order given, and the list of buckets reversed.
// Later: gradients in the order in which they arrived, which for us is the workload's.
Json question(const Case& asked) {
  Json tensors = Json::array();
  Json indices = Json::array();
  for (const int i : walked(asked)) {
    const Tensor& tensor = asked.workload.tensors[static_cast<std::size_t>(i)];
    tensors.push_back({tensor.elements, to_string(tensor.dtype), tensor.sparse});
    if (!asked.first_step) indices.push_back(static_cast<int>(indices.size()));
  }
  const auto cap = static_cast<Bytes>(asked.cap_mb * static_cast<double>(kMiB));
  return {{"tensors", tensors}, {"limits", {kMiB, cap}}, {"indices", indices}};
}

Groups our_answer(const Case& asked) {
  const Json config{{"bucket_cap_mb", asked.cap_mb},
                    {"torch", "2.2"},
                    {"find_unused_parameters", asked.first_step}};
  return test::Framework{pytorch_ddp_dialect(), test::cluster_of(2, 4)}.groups_of(config.dump(),
                                                                                  asked.workload);
}

Groups torchs_answer(const Json& buckets, const Case& asked) {
  auto groups = buckets.get<Groups>();
  if (!asked.first_step) return groups;
  std::reverse(groups.begin(), groups.end());
  const auto order = walked(asked);
  for (auto& group : groups) {
    for (int& index : group) index = order[static_cast<std::size_t>(index)];
  }
  return groups;
}

std::vector<Case> shipped_cases() {
  std::vector<Case> cases;
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::directory_iterator(fs::path(SYNCLINE_SOURCE_DIR) / "scenarios" / "workloads")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    const std::string name = file.filename().string();
    const Workload workload = test::shipped_workload(name);
    for (const double cap : {0.5, 1.0, 4.0, 25.0, 64.0, 1000.0}) {
      for (const bool first : {false, true}) cases.push_back({name, workload, cap, first});
    }
  }
  return cases;
}

// Lists of one dtype, of several, and with sparse gradients among them.
std::vector<Case> random_cases() {
  std::mt19937 random(11);
  std::vector<Case> cases;
  for (int round = 0; round < 150; ++round) {
    Workload workload;
    const auto count = static_cast<int>(random() % 80);
    for (int i = 0; i < count; ++i) {
      const auto dtypes = std::array{DType::kFp32, DType::kFp16, DType::kBf16, DType::kFp64};
      const auto dtype = round % 3 == 0 ? DType::kFp32 : dtypes[random() % dtypes.size()];
      const auto elements =
          static_cast<std::int64_t>(1 + random() % (round % 2 == 0 ? 50000 : 4000000));
      workload.tensors.push_back(test::tensor_of("t", {elements}, dtype));
      workload.tensors.back().sparse = round % 3 == 2 && random() % 10 == 0;
    }
    const double cap = 0.25 * static_cast<double>(1 + random() % 60);
    for (const bool first : {false, true}) {
      cases.push_back({"random list " + std::to_string(round), workload, cap, first});
    }
    std::vector<int> places(workload.tensors.size());
    std::iota(places.begin(), places.end(), 0);
    std::shuffle(places.begin(), places.end(), random);
    for (std::size_t i = 0; i < places.size(); ++i) workload.tensors[i].registered = places[i];
    cases.push_back({"registered list " + std::to_string(round), workload, cap, true});
  }
  return cases;
}

TEST(TorchBuckets, AreOursTensorByTensor) {
  const std::string python = python_with_torch();
  if (python.empty()) {
    GTEST_SKIP() << "no Python with torch.distributed here (Debian: python3-torch): DDP's buckets "
                    "are not compared with torch's own";
  }
  auto cases = shipped_cases();
  const std::size_t shipped = cases.size();
  for (auto& one : random_cases()) cases.push_back(std::move(one));
  Json questions = Json::array();
  for (const auto& one : cases) questions.push_back(question(one));
  const test::Scratch scratch;
  const std::string file = scratch.path("questions.json");
  test::write_text(file, questions.dump());
  const auto ran =
      test::Program({python, SYNCLINE_SOURCE_DIR "/tests/support/torch_buckets.py", file})
          .wait(std::chrono::minutes(10));
  ASSERT_EQ(ran.code, 0) << ran.err;

  const Json answers = Json::parse(ran.out);
  ASSERT_EQ(answers.size(), cases.size());
  EXPECT_GE(shipped, 15U * 12U) << "every model, every cap, both steps";
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    tensors += one.workload.tensors.size();
    EXPECT_EQ(our_answer(one), torchs_answer(answers[i], one))
        << one.name << ", cap " << one.cap_mb << " MiB, "
        << (one.first_step ? "first step" : "rebuilt");
  }
  std::printf("compared %zu lists, %zu tensors\n", cases.size(), tensors);
}

}  // namespace
}  // namespace syncline::dialect
