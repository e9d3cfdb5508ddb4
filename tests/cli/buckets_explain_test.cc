// `syncline buckets` and `syncline explain`: what travels together, and what to make of it.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/expect.h"
#include "tests/support/program.h"

namespace syncline::cli {
namespace {

using test::kScenarios;

const std::string kFusionCounts = kScenarios + "published/paddle_fusion_counts.json";

Json buckets_of(const std::string& strategy) {
  return test::syncline_json({"buckets", kFusionCounts, "--strategy", strategy}).at("buckets");
}

TEST(Buckets, ContainEveryGradientOnceWithItsBytes) {
  for (const char* strategy : {"unfused", "16 MiB", "32 MiB"}) {
    std::size_t tensors = 0;
    std::int64_t bytes = 0;
    for (const auto& bucket : buckets_of(strategy)) {
      tensors += bucket.at("tensors").size();
      bytes += bucket.at("bytes").get<std::int64_t>();
      EXPECT_GE(bucket.at("padded_bytes"), bucket.at("bytes"));
      EXPECT_EQ(bucket.at("dtype"), "fp32");
      EXPECT_EQ(bucket.at("stream"), 1);
    }
    EXPECT_EQ(tensors, 161U) << strategy;
    EXPECT_EQ(bytes, 4 * 23528522) << strategy;
  }
}

TEST(Buckets, Of16MiBAreSix) {
  const Json buckets = buckets_of("16 MiB");
  ASSERT_EQ(buckets.size(), 6U);
  EXPECT_EQ(buckets[0].at("tensors").front(), "fc_0.b_0");
  EXPECT_EQ(buckets[0].at("bytes"), 17932328);
  EXPECT_EQ(buckets[0].at("padded_bytes"), 17932544);
}

TEST(Buckets, AreATableForPeople) {
  const std::string text = test::syncline_out({"buckets", kFusionCounts});
  EXPECT_TRUE(test::says(text, "fc_0.b_0", "conv1_weights"));
}

TEST(Explain, TellsTrafficOverlapBoundAndAdvice) {
  const std::string text = test::syncline_out({"explain", kScenarios + "overlap_streams.json"});
  EXPECT_TRUE(test::says(text, "(a) one stream", "19 collectives per step: 19 buckets",
                         "everything runs on one stream", "bottleneck", "lower bound",
                         "\"overlap\": true", "changes the training"));
}

TEST(Explain, AdvisesInTheFrameworksKeys) {
  const auto explained = [](const char* strategy) {
    return test::syncline_out({"explain", kScenarios + "frameworks.json", "--strategy", strategy});
  };
  EXPECT_TRUE(test::says(explained("pytorch"), "other buckets (bucket_cap_mb: none (default) -> ",
                         "\n    bucket_cap_mb: none (default) -> "));
  EXPECT_TRUE(
      test::says(explained("mindspore"), "\n    cannot be written in mindspore, in a scenario \""));
}

// What other jobs leave of a fabric's links is what `run` has: the same steps.
TEST(Explain, TakesWhatOtherJobsLeave) {
  const std::string jobs = kScenarios + "two_jobs.json";
  int compared = 0;
  const Json ran = test::syncline_json({"run", jobs});
  for (const Json& row : ran.at("rows")) {
    const auto placement = row.at("sweep").at("cluster.fabric.placement").get<std::string>();
    const Json explained =
        test::syncline_json({"explain", jobs, "--set", "cluster.fabric.placement=" + placement});
    for (const Json& one : explained.at("strategies")) {
      if (row.at("strategy") != one.at("name")) continue;
      ++compared;
      EXPECT_DOUBLE_EQ(row.at("step_time_s"), one.at("step_time_s")) << placement;
      EXPECT_FALSE(one.at("links").empty());
    }
  }
  EXPECT_EQ(compared, 4);
}

// The words of a plan's bottleneck as `explain` and `tune` say them.
struct Bottlenecks {
  std::string explained;
  std::string tuned;
};

std::string word_after(const std::string& text, const std::string& mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return "nothing in: " + text;
  const std::size_t begin = at + mark.size();
  std::string word = text.substr(begin, text.find_first_of(".:(", begin) - begin);
  if (word.ends_with(' ')) word.pop_back();
  return word;
}

Bottlenecks bottlenecks_at(double gbps, double overhead_us) {
  std::ifstream file(kScenarios + "first.json");
  Json root = Json::parse(file);
  root["strategies"] = Json::array({{{"name", "one by one"}}});
  root["cluster"]["inter"]["bandwidth_gbps"] = gbps;
  root["cluster"]["device"] = {{"data_parallel_overhead_us", overhead_us}};
  root["search"] = {{"fusion", {{"rules", Json::array({"none"})}}}, {"confirm", 0}};
  root.erase("sweep");
  const test::Scratch scratch;
  const std::string path = scratch.path("first.json");
  test::write_text(path, root.dump());
  return {word_after(test::syncline_out({"explain", path}), "bottleneck   "),
          word_after(test::syncline_out({"tune", path}), "Bottleneck: ")};
}

TEST(Explain, AgreesWithTuneOnWhatBinds) {
  for (const double gbps : {1.0, 10.0, 25.0, 100.0}) {
    for (const double overhead_us : {0.0, 10000.0}) {
      const Bottlenecks words = bottlenecks_at(gbps, overhead_us);
      EXPECT_EQ(words.explained, words.tuned) << gbps << " Gbit/s, " << overhead_us << " us";
    }
  }
  EXPECT_EQ(bottlenecks_at(1, 0).tuned, "bandwidth");
  EXPECT_EQ(bottlenecks_at(25, 0).explained, "computation");
}

// What data-parallel running costs by itself is neither latency nor bandwidth.
TEST(Explain, TellsTheHostsOverheadApart) {
  const std::string text =
      test::syncline_out({"explain", kScenarios + "published/paddle_fleet_2019.json"});
  EXPECT_TRUE(
      test::says(text, "bottleneck   computation", "overhead     3.107 ms per step on the host"));
}

// Waits for the slowest rank are measured by nobody, unless the scenario says how ranks differ.
TEST(Explain, SaysThatWaitsForSlowerRanksAreAssumed) {
  const test::Scratch scratch;
  const std::string path = scratch.path("many.json");
  test::syncline_out(
      {"init", "vit_l_16", "--compiled", "--node", "dgx-h100", "--nodes", "1024", "-o", path});
  const std::vector<std::string> explain{"explain", path, "--strategy", "DDP's default"};
  const std::string guessed = test::syncline_out(explain);
  EXPECT_EQ(word_after(guessed, "bottleneck   "), "stragglers") << guessed;
  EXPECT_TRUE(test::says(guessed, "That ranks differ by 2.0 % is assumed"));
  const std::string given =
      test::syncline_out(test::joined(explain, {"--set", "cluster.jitter.relative=0.02"}));
  EXPECT_EQ(word_after(given, "bottleneck   "), "stragglers") << given;
  EXPECT_TRUE(test::lacks(given, "is assumed"));
}

TEST(Explain, PrintsWhatAFrameworkSilentlyDoes) {
  const std::string text =
      test::syncline_out({"explain", kScenarios + "frameworks.json", "--strategy", "mindspore"});
  EXPECT_TRUE(test::says(text, "all 161 gradients go in one AllReduce"));
  EXPECT_TRUE(test::lacks(text, "pytorch")) << "only the strategy asked for";
}

}  // namespace
}  // namespace syncline::cli
