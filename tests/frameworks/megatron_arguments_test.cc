// What `init` makes of random command lines, beside what Megatron's validate_args makes of them.

#include <gtest/gtest.h>

#include <map>

#include "imports/init.h"
#include "tests/frameworks/facts.h"
#include "tests/support/jobs.h"

namespace syncline::job {
namespace {

std::map<std::string, Json> of_scenario(const Json& begun) {
  const Scenario scenario = test::scenario_in(begun);
  const Workload& workload = scenario.workload;
  const Parallel& parallel = workload.parallel;
  const Strategy& strategy = scenario.strategies.front();
  const Json& operators = begun["workload"]["operators"];
  const Json& shape = operators["shape"];
  const Json config = begun["strategies"][0].value("config", Json::object());
  const bool experts = shape.contains("experts");
  const auto on = [&](const char* flag) { return config.value(flag, false); };
  std::map<std::string, Json> all{
      {"tensor_model_parallel_size", parallel.tensor},
      {"pipeline_model_parallel_size", parallel.pipeline},
      {"virtual_pipeline_model_parallel_size",
       parallel.virtual_stages > 1 ? Json(parallel.virtual_stages) : Json()},
      {"context_parallel_size", parallel.context},
      {"expert_model_parallel_size", parallel.expert},
      {"sequence_parallel", parallel.sequence},
      {"overlap_p2p_comm", parallel.overlap_sends},
      {"data_parallel_size", scenario.cluster.ranks() / parallel.model_ranks()},
      {"micro_batch_size", workload.batch},
      {"global_batch_size",
       workload.batch * workload.micro_batches * scenario.cluster.ranks() / parallel.model_ranks()},
      {"num_layers", shape["layers"]},
      {"hidden_size", shape["hidden"]},
      {"num_attention_heads", shape["heads"]},
      {"kv_channels",
       shape.value("head_width", shape["hidden"].get<int>() / shape["heads"].get<int>())},
      {"ffn_hidden_size", shape["inner"]},
      {"num_experts", experts ? shape["experts"] : Json()},
      {"seq_length", operators["sequence"]},
      {"params_dtype", operators["dtype"]},
      {"use_distributed_optimizer", strategy.exchange == Strategy::Exchange::kSharded},
      {"overlap_grad_reduce", on("overlap-grad-reduce")},
      {"overlap_param_gather", strategy.cross_step},
      {"accumulate_allreduce_grads_in_fp32", operators["dtype"] == "fp32"
                                                 ? on("accumulate-allreduce-grads-in-fp32")
                                                 : strategy.fusion.sums_in_fp32()},
      {"recompute_granularity", begun["workload"].value("activation_checkpointing", Json())}};
  if (experts) {
    all["expert_tensor_parallel_size"] = parallel.expert_tensor;
    all["moe_ffn_hidden_size"] = shape["expert_inner"];
  }
  return all;
}

// Groups of queries; as many as heads where they are not grouped.
Json groups_of(const Json& said) {
  return said["group_query_attention"] == true ? said["num_query_groups"]
                                               : said["num_attention_heads"];
}

// Says if one of both alone refuses a line for a reason that is known: Megatron's configuration
// asks for a method of recomputation and for experts without biases, which changes no layout here;
// and it leaves to the model and its schedule what is refused here at once.
bool is_settled(const std::string& ours, const std::string& theirs) {
  const bool configuration = theirs.starts_with("Bias in Moe is only supported when ETP==1") ||
                             theirs.starts_with("Using recompute_granularity: full");
  const bool later = test::contains(ours, "layers, by the numbers in the tensors' names") ||
                     test::contains(ours, "is not divisible by pipeline-model-parallel-size");
  return ours.empty() ? configuration : theirs.empty() && later;
}

TEST(MegatronFacts, CommandLines) {
  for (const test::Facts& facts : test::facts_of("arguments")) {
    for (const Json& one : facts.cases) {
      SCOPED_TRACE(facts.place(one) + "\n" + one.at("line").dump());
      const Json& said = one.at("said");
      Begun begun;
      const std::string refused = test::input_error([&] {
        begun = init_scenario({.model = "pretrain_gpt.py " + one.at("line").get<std::string>(),
                               .node = "dgx-h100",
                               .nodes = one.at("ranks").get<int>() / 8});
      });
      if (!is_settled(refused, said.value("refused", ""))) {
        EXPECT_EQ(refused.empty(), !said.contains("refused")) << refused << "\n" << said.dump();
      }
      if (!refused.empty() || said.contains("refused")) continue;
      for (const auto& [name, value] : of_scenario(begun.scenario)) {
        EXPECT_EQ(value, said[name]) << name;
      }
      const Json& shape = begun.scenario["workload"]["operators"]["shape"];
      EXPECT_EQ(shape.value("kv_heads", shape["heads"]), groups_of(said));
    }
  }
}

}  // namespace
}  // namespace syncline::job
