// torchtitan's job files as its own code wraps their models.
#include <gtest/gtest.h>

#include <map>

#include "imports/frameworks/settings.h"
#include "tests/frameworks/facts.h"
#include "tests/support/scratch.h"

namespace syncline::job {
namespace {

// Writes sections of words and numbers.
std::string toml_of(const Json& sections) {
  std::string text;
  for (const auto& [section, keys] : sections.items()) {
    text += "[" + section + "]\n";
    for (const auto& [key, value] : keys.items()) text += key + " = " + value.dump() + "\n";
  }
  return text;
}

// Returns a unit's modules by the names that Hugging Face gives them.
Json renamed(const Json& modules) {
  const std::map<std::string, std::string> names{{"tok_embeddings", "model.embed_tokens"},
                                                 {"layers.*", "model.layers.*"},
                                                 {"norm", "model.norm"},
                                                 {"output", "lm_head"}};
  Json unit = Json::array();
  for (const Json& module : modules) unit.push_back(names.at(module.get<std::string>()));
  return unit.size() == 1 ? unit[0] : unit;
}

void expect_units(const Json& said, const Json& config) {
  const Json kept = config.value("not_resharded", Json::array());
  for (const Json& entry : said["units"]) {
    const Json unit = renamed(entry[0]);
    const bool known = std::ranges::find(config["units"], unit) != config["units"].end();
    EXPECT_TRUE(known) << unit << " in " << config["units"];
    const Json& first = unit.is_array() ? unit[0] : unit;
    const bool again =
        config.value("reshard_after_forward", true) && std::ranges::find(kept, first) == kept.end();
    EXPECT_EQ(entry[1], again ? entry[2] : Json(1)) << unit;
  }
}

void expect_as_wrapped(const Json& said, const Settings& job) {
  const Json& config = job.strategy["config"];
  ASSERT_EQ(job.strategy["dialect"], "fsdp");
  EXPECT_EQ(config["mesh"], said["mesh"]);
  const Json policy = config.value("mp_policy", Json::object());
  for (const char* key : {"param_dtype", "reduce_dtype"}) {
    EXPECT_EQ(policy.value(key, Json("float32")), said[key]) << key;
  }
  // 0.2 gathers a tied embedding twice, which is one unit of a plan.
  const bool tied = config["units"][0] == Json({"model.embed_tokens", "model.norm"});
  if (!tied) expect_units(said, config);
}

TEST(TorchtitanFacts, AreWhatTheReaderMakesOfAJob) {
  for (const test::Facts& facts : test::facts_of("job")) {
    for (const Json& one : facts.cases) {
      SCOPED_TRACE(facts.place(one) + " " + one.at("job")["parallelism"].dump());
      const Json& said = one.at("said");
      const test::Scratch scratch;
      test::write_text(scratch.path("job.toml"), toml_of(one.at("job")));
      if (said.contains("refused")) {
        EXPECT_THROW(read_settings(scratch.path("job.toml")), InputError) << said;
        continue;
      }
      const Settings job = read_settings(scratch.path("job.toml")).value();
      if (said.contains("mesh")) {
        expect_as_wrapped(said, job);
      } else {
        const bool alone = job.strategy["config"].value("mesh", Json()) == Json({1});
        EXPECT_TRUE(alone || job.strategy["dialect"] == "pytorch") << job.strategy;
      }
      if (!said.contains("stages")) continue;
      EXPECT_EQ(job.workload["parallel"].value("virtual_stages", 1), said["stages"]);
      EXPECT_EQ(job.micro_batches, said["micro_batches"]);
    }
  }
}

}  // namespace
}  // namespace syncline::job
