// The JSON of every verb is as `syncline schema --answers` says: no member more, none of another
// type.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "reports/validation_report.h"
#include "tests/support/program.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::cli {
namespace {

using json = nlohmann::json;

using test::kFirst, test::kScenarios, test::kSource;

json answers_schema() { return json::parse(test::syncline_out({"schema", "--answers"})); }

// The part of the schema that one kind of answer is held against, so that what is wrong is named.
std::string errors(const std::string& definition, const json& answer) {
  static const json schema = answers_schema();
  const json part = {{"definitions", schema.at("definitions")},
                     {"allOf", {{{"$ref", "#/definitions/" + definition}}}}};
  valijson::Schema parsed;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(part), parsed);
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter target(answer);
  if (valijson::Validator().validate(parsed, target, &results)) return "";
  std::string text = "not as the schema says\n";
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    for (const auto& place : error.context) text += place;
    text += ": " + error.description + "\n";
  }
  return text;
}

using Commands = std::vector<std::pair<std::string, std::vector<std::string>>>;

Commands asked_commands() {
  const std::string published = kScenarios + "published/";
  const std::string logs = kScenarios + "measured/nccl-tests/h100-cluster01-ib_allreduce_n010x";
  const std::string traces = kSource + "tests/data/kineto/";
  const std::string trained = published + "training/mlp_2";
  const std::string job = published + "jobs/mlp_2x1gbit_machine_a.json";
  // The list of pairs and one table: all tables take long.
  static const test::Scratch few;
  for (const auto& [link, folder] : {std::pair("measured", kScenarios + "measured"),
                                     std::pair("published", published + "power_sgd")}) {
    if (!std::filesystem::exists(few.path(link))) {
      std::filesystem::create_directory_symlink(folder, few.path(link));
    }
  }
  return {{"run", {"run", kFirst}},
          {"run", {"run", published + "dgc_fasterrcnn.json"}},
          {"run", {"run", published + "paddle_fusion_counts.json"}},
          {"run", {"run", job}},
          {"time_to_target",
           {"run", trained + "x500mbit.json", "--objective", "time_to_loss", "--target", "0.5",
            "--curves", trained + ".curves.csv", "--measured", trained + "x500mbit.measured.csv"}},
          {"tune", {"tune", kFirst, "--emit", "pytorch"}},
          {"tune", {"tune", published + "localsgd_resnet50.json"}},
          {"tune_layouts",
           {"tune", kScenarios + "llama3_70b_layouts.json", "--layouts", "--set", "cluster.nodes=4",
            "--top", "2", "--emit", "megatron"}},
          {"tune_layouts",
           {"tune", kScenarios + "llama3_70b_layouts.json", "--micro-batches", "--checkpointing",
            "--set", "cluster.nodes=4"}},
          {"tune_utilisation", {"tune", kFirst, "--utilisation", "0.9"}},
          {"tune_live",
           {"tune", kScenarios + "live/tune_2x1gbit.json", "--live", "emulated", "--budget", "3",
            "--emit", "pytorch"}},
          {"explain", {"explain", kScenarios + "frameworks.json"}},
          {"explain",
           {"explain", kScenarios + "fabric.json", "--set", "cluster.fabric.placement=spread"}},
          {"plan", {"plan", kFirst}},
          {"plan", {"plan", kScenarios + "dgc_rampup.json", "--strategy", "dgc"}},
          {"buckets", {"buckets", kFirst}},
          {"check", {"check", kScenarios + "frameworks.json"}},
          {"fidelity", {"fidelity", "--from", kScenarios, "--set", "live"}},
          {"fidelity_pairs", {"fidelity", "--from", few.folder(), "--set", "pairs"}},
          {"fidelity_memory", {"fidelity", "--from", kScenarios, "--set", "memory"}},
          {"fidelity_live", {"fidelity", "--live", kScenarios + "measured/live/dgc_1gbit.json"}},
          {"calibrate_logs", {"calibrate", "logs", logs + "1.txt", "--against", logs + "2.txt"}},
          {"calibrate_steps", {"calibrate", "steps", job}},
          {"import", {"import", traces + "resnet50_ddp_2xA100_rank0.json.gz"}},
          {"import",
           {"import", traces + "dlrm_8xV100_rank0.json.gz", traces + "dlrm_8xV100_rank1.json.gz"}},
          {"import",
           {"import", traces + "megatron_2x2x2_rank2.json.gz",
            traces + "megatron_2x2x2_rank3.json.gz"}},
          {"compare", {"compare", "echo step time: 2 ms", "echo step time: 1 ms", "--rounds", "2"}},
          {"list", {"list"}},
          {"validate",
           {"validate", kFirst, "--set", "cluster.nodes=2", "--ranks", "2", "--warmup", "1",
            "--repeats", "1"}}};
}

TEST(AnswersSchema, AcceptsEveryVerb) {
  for (const auto& [definition, words] : asked_commands()) {
    EXPECT_EQ(errors(definition, test::syncline_json(words)), "") << testing::PrintToString(words);
  }
}

TEST(AnswersSchema, AcceptsKernels) {
  test::Scratch scratch;
  const std::string measured = scratch.path("gpu.json");
  test::write_text(measured, R"({"format": "syncline gpu-check 1", "rehearsal": false,
    "machine": {"name": "a GPU"}, "launch": {"submit_us": 3, "gap_us": 1},
    "timings": [{"case": "pack fp32", "kind": "pack", "elements": 100000000,
                 "counted_bytes": 800000000, "us": 400}]})");
  const json said = test::syncline_json(
      {"calibrate", "kernels", measured, "--cluster", kScenarios + "clusters/v100_4x8_100g.json"});
  EXPECT_EQ(errors("calibrate_kernels", said), "");
}

TEST(AnswersSchema, AcceptsLinks) {
  measure::Validation measured;
  measured.samples = {{"all_reduce", 1024, 0.5, 0.25}};
  const Json cluster = Json::object();
  const Json said = reports::whole_json(reports::links_answer(measured, cluster), "1");
  EXPECT_EQ(errors("calibrate_live", json::parse(said.dump())), "");
}

// Every answer that the whole schema allows was asked for here.
TEST(AnswersSchema, IsAskedForWhole) {
  std::set<std::string> asked{"calibrate_kernels", "calibrate_live"}, stated;
  for (const auto& [definition, words] : asked_commands()) asked.insert(definition);
  const json schema = answers_schema();
  for (const auto& one : schema.at("anyOf")) {
    stated.insert(one.at("$ref").get<std::string>().substr(14));
  }
  EXPECT_EQ(asked, stated);
}

TEST(AnswersSchema, RefusesAMemberThatItDoesNotName) {
  json said = test::syncline_json({"buckets", kFirst});
  said["buckets"][0]["size"] = 1;
  EXPECT_NE(errors("buckets", said), "");
  said = test::syncline_json({"buckets", kFirst});
  said["collectives"] = "many";
  EXPECT_NE(errors("buckets", said), "");
}

}  // namespace
}  // namespace syncline::cli
