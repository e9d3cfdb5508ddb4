// What takes minutes or gigabytes says so before it begins, and is not begun where the memory is
// not there.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "tests/support/program.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::cli {
namespace {

using test::contains;

class Cost : public testing::Test {
 protected:
  // LocalSGD of a million steps between two averagings: a plan of three million operations.
  void SetUp() override {
    std::ofstream(file_) << R"({"name": "long", "workload": {"name": "w", "forward_ms": 5,
        "tensors": [{"name": "a", "shape": [1000], "backward_us": 100}]},
        "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,
          "inter": {"latency_us": 8, "bandwidth_gbps": 100}},
        "strategies": [{"name": "s", "local_sgd": {"period": 1000000}}]})";
  }
  test::Scratch scratch_;
  std::string file_ = scratch_.path("long.json");
};

TEST_F(Cost, CheckForeseesIt) {
  const auto ran = test::syncline_run({"check", file_});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "`plan` will take about")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "GB of memory")) << ran.out;
}

TEST_F(Cost, IsNotBegunWithoutTheMemory) {
#ifdef SYNCLINE_SANITIZED
  GTEST_SKIP() << "the address sanitizer takes terabytes of addresses before main()";
#endif
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit less = before;
  less.rlim_cur = rlim_t{1} << 30U;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &less), 0);
  const auto ran = test::syncline_run({"plan", file_});
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_TRUE(contains(ran.err, "this would take about")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "there are 1.1 GB here")) << ran.err;
}

}  // namespace
}  // namespace syncline::cli
