// Settings of the Trainer and of accelerate as the packages themselves fill them in.
#include <gtest/gtest.h>

#include "imports/frameworks/settings.h"
#include "tests/frameworks/facts.h"
#include "tests/support/scratch.h"

namespace syncline::job {
namespace {

std::string half(const Json& format) {
  const std::string name = format.is_string() ? format.get<std::string>() : "None";
  return name.substr(name.rfind('.') + 1);
}

void expect_fsdp(const Json& said, const Json& config) {
  EXPECT_EQ(config["version"], said["version"]);
  const std::string key = said["version"] == 1 ? "mixed_precision" : "mp_policy";
  const std::string parameters = half(said["param_dtype"]);
  if (parameters == "None") {
    EXPECT_FALSE(config.contains(key));
  } else {
    EXPECT_EQ(config[key]["param_dtype"], parameters);
    // FSDP2 takes none for the format of parameters.
    const std::string sums = half(said["reduce_dtype"]);
    EXPECT_EQ(config[key]["reduce_dtype"], sums == "None" ? parameters : sums);
  }
  const bool layers = said["wraps"] == "transformer_auto_wrap_policy";
  EXPECT_EQ(config["units"], layers ? Json("layers") : Json::array());
  if (said["version"] == 2) {
    EXPECT_EQ(config["reshard_after_forward"], said["reshard_after_forward"]);
    return;
  }
  EXPECT_EQ(config["sharding_strategy"], said["sharding"]);
  EXPECT_EQ(config["use_orig_params"], said["use_orig_params"]);
}

void expect_zero(const Json& said, const Settings& job, std::int64_t hidden) {
  Json config = job.strategy["config"];
  std::vector<std::string> assumed;
  frameworks::fill_auto_sizes(hidden, config, assumed);
  const auto sorted = [](const Json& json) { return nlohmann::json::parse(json.dump()); };
  EXPECT_EQ(sorted(config["zero_optimization"]), sorted(said["zero"]));
  EXPECT_EQ(job.workload.value("batch", 0), said["micro"]);
  EXPECT_EQ(job.micro_batches, said["accumulation"]);
  for (const char* dtype : {"bf16", "fp16"}) {
    const Json operators = job.workload.value("operators", Json::object());
    EXPECT_EQ(operators.value("dtype", "") == dtype, said[dtype] == true) << dtype;
  }
}

TEST(HuggingFaceFacts, AreWhatTheReaderMakesOfTheSettings) {
  for (const test::Facts& facts : test::facts_of("hugging_face")) {
    for (const Json& one : facts.cases) {
      SCOPED_TRACE(facts.place(one) + " " + one.at("settings").dump());
      const Json& said = one.at("said");
      const test::Scratch scratch;
      // A processor refuses nothing that is read here.
      ASSERT_FALSE(said.contains("refused")) << said;
      test::write_text(scratch.path("job.json"), one.at("settings").dump());
      const Settings job = read_settings(scratch.path("job.json")).value();
      if (said.contains("batch")) {
        EXPECT_EQ(job.workload["batch"], said["batch"]);
        EXPECT_EQ(job.micro_batches, said["accumulation"]);
      }
      EXPECT_EQ(job.workload.value("activation_checkpointing", "none") == "full",
                said.value("checkpointing", false));
      if (said.contains("fsdp")) expect_fsdp(said["fsdp"], job.strategy["config"]);
      if (said.contains("deepspeed") && said["deepspeed"].contains("zero")) {
        expect_zero(said["deepspeed"], job, facts.head.at("hidden").get<std::int64_t>());
      } else if (said.contains("deepspeed")) {
        EXPECT_EQ(job.strategy["config"]["zero_optimization"]["stage"], said["deepspeed"]["stage"]);
        EXPECT_EQ(job.micro_batches, said["deepspeed"]["accumulation"]);
      } else {
        const Json dtype = job.workload["operators"]["dtype"];
        EXPECT_EQ(job.autocast ? dtype : Json("no"), said["precision"]);
      }
    }
  }
}

}  // namespace
}  // namespace syncline::job
