// Settings of Lightning's Trainer as its strategies hand them to torch and DeepSpeed.
#include <gtest/gtest.h>

#include "imports/frameworks/settings.h"
#include "tests/frameworks/facts.h"
#include "tests/support/scratch.h"

namespace syncline::job {
namespace {

Json sorted(const Json& json) { return nlohmann::json::parse(json.dump()); }

// A format that is torch's own default is none.
Json format_in(const Json& config, const char* key) {
  const Json formats = config.value("mixed_precision", Json::object());
  return formats.value(key, Json("float32"));
}

void expect_torch_ddp(Json said, Json config) {
  EXPECT_EQ(config.value("no_sync", false), true);
  config.erase("no_sync");
  constexpr const char* kUnused = "find_unused_parameters";  // false by default
  EXPECT_EQ(config.value(kUnused, false), said.value(kUnused, false));
  for (Json* one : {&said, &config}) one->erase(kUnused);
  EXPECT_EQ(sorted(config), sorted(said));
}

void expect_torch_fsdp(const Json& said, const Json& config) {
  EXPECT_EQ(config["sharding_strategy"], said["sharding"]);
  EXPECT_EQ(config["use_orig_params"], said["use_orig_params"]);
  for (const char* key : {"param_dtype", "reduce_dtype"}) {
    EXPECT_EQ(format_in(config, key), said[key].is_null() ? Json("float32") : said[key]) << key;
  }
}

void expect_deepspeed(const Json& said, const Json& config) {
  for (const auto& [key, value] : config["zero_optimization"].items()) {
    EXPECT_EQ(value, said["zero"].value(key, Json())) << key;
  }
  for (const char* dtype : {"bf16", "fp16"}) {
    EXPECT_EQ(config[dtype]["enabled"], said[dtype]) << dtype;
  }
}

TEST(LightningFacts, AreWhatTheReaderMakesOfTheSettings) {
  for (const test::Facts& facts : test::facts_of("trainer")) {
    for (const Json& one : facts.cases) {
      SCOPED_TRACE(facts.place(one) + " " + one.at("settings").dump());
      const Json& said = one.at("said");
      const test::Scratch scratch;
      test::write_text(scratch.path("job.yaml"), one.at("settings").dump());
      if (said.contains("refused")) {
        EXPECT_THROW(read_settings(scratch.path("job.yaml")), InputError) << said;
        continue;
      }
      const Settings job = read_settings(scratch.path("job.yaml")).value();
      const Json config = job.strategy["config"];
      if (said.contains("ddp")) expect_torch_ddp(said["ddp"], config);
      if (said.contains("fsdp")) expect_torch_fsdp(said["fsdp"], config);
      if (said.contains("deepspeed")) expect_deepspeed(said["deepspeed"], config);
      EXPECT_EQ(job.micro_batches,
                one["settings"]["trainer"].value("accumulate_grad_batches", std::int64_t{1}));
    }
  }
}

}  // namespace
}  // namespace syncline::job
