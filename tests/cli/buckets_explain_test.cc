// `syncline buckets` and `syncline explain`: what travels together, and what to make of it.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace {

using Json = nlohmann::json;

std::string printed_by(const std::string& arguments) {
  const auto ran = syncline::test::shell("'" SYNCLINE_BINARY "' " + arguments);
  EXPECT_EQ(ran.code, 0) << arguments << ran.err;
  return ran.out;
}

Json buckets_of(const std::string& strategy) {
  const std::string text = printed_by("buckets '" SYNCLINE_SOURCE_DIR
                                      "/scenarios/published/paddle_fusion_counts.json' "
                                      "--format json --strategy '" +
                                      strategy + "'");
  return Json::parse(text).at("buckets");
}

TEST(Buckets, HoldEveryGradientOnceWithItsBytes) {
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

TEST(Buckets, OfSixteenMebibytesAreSix) {
  const Json buckets = buckets_of("16 MiB");
  ASSERT_EQ(buckets.size(), 6U);
  EXPECT_EQ(buckets[0].at("tensors").front(), "fc_0.b_0");
  EXPECT_EQ(buckets[0].at("bytes"), 17932328);
  EXPECT_EQ(buckets[0].at("padded_bytes"), 17932544);
}

TEST(Buckets, AreATableForPeople) {
  const std::string text =
      printed_by("buckets '" SYNCLINE_SOURCE_DIR "/scenarios/published/paddle_fusion_counts.json'");
  EXPECT_NE(text.find("fc_0.b_0"), std::string::npos);
  EXPECT_NE(text.find("conv1_weights"), std::string::npos);
}

TEST(Explain, TellsTrafficOverlapBoundAndAdvice) {
  const std::string text =
      printed_by("explain '" SYNCLINE_SOURCE_DIR "/scenarios/overlap_streams.json'");
  for (const char* line :
       {"(a) one stream", "19 collectives per step: 19 buckets", "everything runs on one stream",
        "bound by", "at best", "(overlap: true)", "changes the training"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(Explain, AdvisesInTheFrameworksKeys) {
  const std::string file =
      "explain '" SYNCLINE_SOURCE_DIR "/scenarios/frameworks.json' --strategy ";
  const std::string pytorch = printed_by(file + "pytorch");
  EXPECT_NE(pytorch.find("advice    bucket_cap_mb: none (default) -> "), std::string::npos)
      << pytorch;
  const std::string mindspore = printed_by(file + "mindspore");
  EXPECT_NE(mindspore.find("which cannot be written in mindspore"), std::string::npos) << mindspore;
}

// What other jobs leave of a fabric's links is what `run` has: the same steps.
TEST(Explain, TakesWhatOtherJobsLeave) {
  const std::string jobs = " '" SYNCLINE_SOURCE_DIR "/scenarios/two_jobs.json' --format json";
  int compared = 0;
  const Json ran = Json::parse(printed_by("run" + jobs));
  for (const Json& row : ran.at("rows")) {
    const auto placement = row.at("sweep").at("cluster.fabric.placement").get<std::string>();
    const std::string set = " --set cluster.fabric.placement=" + placement;
    const Json explained = Json::parse(printed_by("explain" + jobs + set)).at("strategies");
    for (const Json& one : explained) {
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
  return text.substr(begin, text.find_first_of(".:", begin) - begin);
}

Bottlenecks bottlenecks_at(double gbps, double overhead_us) {
  std::ifstream file(SYNCLINE_SOURCE_DIR "/scenarios/first.json");
  Json root = Json::parse(file);
  root["strategies"] = Json::array({{{"name", "one by one"}}});
  root["cluster"]["inter"]["bandwidth_gbps"] = gbps;
  root["cluster"]["device"] = {{"data_parallel_overhead_us", overhead_us}};
  root["search"] = {{"fusion", {{"rules", Json::array({"none"})}}}, {"confirm", 0}};
  root.erase("sweep");
  const syncline::test::Scratch scratch;
  const std::string path = scratch.path("first.json");
  syncline::test::write_text(path, root.dump());
  return {word_after(printed_by("explain '" + path + "'"), "bound by  "),
          word_after(printed_by("tune '" + path + "'"), "Bottleneck: ")};
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
      printed_by("explain '" SYNCLINE_SOURCE_DIR "/scenarios/published/paddle_fleet_2019.json'");
  EXPECT_NE(text.find("bound by  computation"), std::string::npos) << text;
  EXPECT_NE(text.find("overhead  3.107 ms per step on the host"), std::string::npos) << text;
}

// Waits for the slowest rank are measured by nobody, unless the scenario says how ranks differ.
TEST(Explain, SaysThatWaitsForSlowerRanksAreAssumed) {
  const syncline::test::Scratch scratch;
  const std::string path = scratch.path("many.json");
  printed_by("init vit_l_16 --compiled --node dgx-h100 --nodes 1024 -o '" + path + "'");
  const std::string explain = "explain '" + path + "' --strategy \"DDP's default\"";
  const std::string guessed = printed_by(explain);
  EXPECT_EQ(word_after(guessed, "bound by  "), "stragglers") << guessed;
  EXPECT_NE(guessed.find("That ranks differ by 2.0 % is assumed"), std::string::npos) << guessed;
  const std::string given = printed_by(explain + " --set cluster.jitter.relative=0.02");
  EXPECT_EQ(word_after(given, "bound by  "), "stragglers") << given;
  EXPECT_EQ(given.find("is assumed"), std::string::npos) << given;
}

TEST(Explain, PrintsWhatAFrameworkSilentlyDoes) {
  const std::string text = printed_by("explain '" SYNCLINE_SOURCE_DIR
                                      "/scenarios/frameworks.json' --strategy mindspore");
  EXPECT_NE(text.find("all 161 gradients go in one AllReduce"), std::string::npos);
  EXPECT_EQ(text.find("pytorch"), std::string::npos) << "only the strategy asked for";
}

}  // namespace
