// Messages about whole parts of a scenario: missing, in the wrong place, in the wrong words.
#include <gtest/gtest.h>

#include "tests/support/full_scenario.h"
#include "tests/support/text.h"

namespace syncline::input {
namespace {

using test::contains;
using test::error_of;
using test::small_scenario;

const std::string kClusters = SYNCLINE_SOURCE_DIR "/scenarios/clusters/";

TEST(Messages, ALevelThatIsMissingIsNoMisspelling) {
  Json scenario = small_scenario();
  scenario["cluster"]["gpus_per_node"] = 8;
  EXPECT_EQ(error_of(scenario),
            "x.json: cluster.intra: missing: 8 GPUs per node need 'intra', the links between them "
            "(latency_us, bandwidth_gbps)");
  scenario["cluster"]["intrra"] = scenario["cluster"]["inter"];
  EXPECT_TRUE(contains(error_of(scenario), "found 'intrra': did you mean 'intra'?"));
}

TEST(Messages, AMissingNumberSaysWhatIsAllowed) {
  Json scenario = small_scenario();
  scenario["cluster"].erase("nodes");
  EXPECT_EQ(error_of(scenario),
            "x.json: cluster.nodes: missing, expected a whole number from 1 to 1048576");
  scenario = small_scenario();
  scenario["cluster"]["inter"].erase("latency_us");
  EXPECT_EQ(error_of(scenario),
            "x.json: cluster.inter.latency_us: missing, expected a number from 0 to 1e9");
}

TEST(Messages, NumbersAreWrittenAsPeopleDo) {
  Json scenario = small_scenario();
  scenario["cluster"]["inter"]["bandwidth_gbps"] = 25e9;
  EXPECT_EQ(error_of(scenario),
            "x.json: cluster.inter.bandwidth_gbps: found 2.5e10, expected a number above 0, at "
            "most 1e7");
  scenario["cluster"]["inter"]["bandwidth_gbps"] = 25;
  scenario["cluster"]["inter"]["efficiency"] = 1.5;
  EXPECT_TRUE(contains(error_of(scenario), "found 1.5, expected a number above 0, at most 1"));
}

TEST(Messages, AFileOfAnotherKindIsNamed) {
  Json scenario = small_scenario();
  scenario["cluster"] = SYNCLINE_SOURCE_DIR "/scenarios/first.json";
  EXPECT_EQ(error_of(scenario), "x.json: cluster: " SYNCLINE_SOURCE_DIR
                                "/scenarios/first.json is a scenario, expected a cluster");
  scenario = small_scenario();
  scenario["workload"] = kClusters + "v100_1x8.json";
  EXPECT_TRUE(contains(error_of(scenario), "v100_1x8.json is a cluster, expected a workload"));
}

TEST(Messages, AFileThatIsNotThereHasNeighbours) {
  Json scenario = small_scenario();
  scenario["cluster"] = kClusters + "v100_1x8";
  EXPECT_TRUE(contains(error_of(scenario), "no such file (did you mean 'v100_1x8.json'?)"))
      << error_of(scenario);
  scenario["cluster"] = kClusters + "v100_1x9.json";
  EXPECT_TRUE(contains(error_of(scenario), "did you mean 'v100_1x")) << error_of(scenario);
  scenario["cluster"] = kClusters + "nowhere/none.json";
  EXPECT_TRUE(error_of(scenario).ends_with("none.json: no such file")) << error_of(scenario);
}

TEST(Messages, AnEmptySweep) {
  Json scenario = small_scenario();
  scenario["sweep"] = {{"cluster.nodes", Json::array()}};
  EXPECT_TRUE(contains(error_of(scenario), "found an empty list, expected a list of values"));
}

TEST(Messages, WordsOfOtherFrameworksAndOtherCase) {
  const auto hint = [](const char* key, const char* word) {
    Json scenario = small_scenario();
    if (std::string(key) == "dtype") {
      scenario["workload"]["dtype"] = word;
    } else {
      scenario["strategies"][0][key] = word;
    }
    return error_of(scenario);
  };
  EXPECT_TRUE(contains(hint("algorithm", "NCCL"), "did you mean 'nccl'?"));
  EXPECT_TRUE(contains(hint("algorithm", "Ring"), "did you mean 'ring'?"));
  EXPECT_TRUE(contains(hint("dtype", "float16"), "did you mean 'fp16'?"));
  EXPECT_TRUE(contains(hint("dtype", "torch.bfloat16"), "did you mean 'bf16'?"));
}

}  // namespace
}  // namespace syncline::input
