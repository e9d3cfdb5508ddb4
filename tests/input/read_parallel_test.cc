// A workload's layout: what is read, what is refused with which numbers, which part of the model
// each gradient is of, and what the collectives inside the layers add.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/base/index.h"
#include "core/base/random.h"
#include "core/collective/library.h"
#include "core/collective/nccl.h"
#include "core/cost.h"
#include "core/executor.h"
#include "core/metrics.h"
#include "core/plan/fusion.h"
#include "formats/input/document.h"
#include "formats/input/scenario_json.h"
#include "tests/support/expect.h"
#include "tests/support/text.h"

namespace syncline::input {
namespace {

using test::contains;

// Four layers of a small Llama on 4 nodes of 8 GPUs.
Json cut_job(const std::string& parallel) {
  Json json = Json::parse(R"({
    "name": "job",
    "workload": {"name": "w", "batch": 1, "micro_batches": 8,
      "operators": {"architecture": "llama", "dtype": "bf16", "sequence": 64, "shape":
        {"layers": 4, "hidden": 64, "heads": 8, "words": 512, "positions": 64, "experts": 8,
         "expert_inner": 32, "dense_layers": 1}}},
    "cluster": {"node": "dgx-h100", "nodes": 4},
    "strategies": [{"name": "plain"}]})");
  json["workload"]["parallel"] = Json::parse(parallel);
  return json;
}

Scenario read_job(const Json& json) {
  return parse_scenario(document_from_text("job.json", json.dump()));
}

std::string refusal_of(const Json& json) {
  return test::input_error([&] { read_job(json); });
}

std::string refused(const std::string& parallel) { return refusal_of(cut_job(parallel)); }

TEST(ReadParallel, WrongProductsNameTheNumbers) {
  for (const auto& [parallel, part] : std::vector<std::pair<const char*, const char*>>{
           {R"({"tensor": 3, "pipeline": 2})", "workload.parallel.tensor: tensor 3 x context 1"},
           {R"({"context": 3})", "workload.parallel.context: tensor 1 x context 3"},
           {R"({"tensor": 4, "pipeline": 3})",
            "workload.parallel.pipeline: tensor 4 x context 1 x pipeline 3 is 12 ranks, which do "
            "not divide the cluster's 32"},
           {R"({"tensor": 32, "context": 2})", "is 64 ranks, which do not divide the cluster's 32"},
           {R"({"expert": 8, "pipeline": 8})",
            "expert 8 x expert_tensor 1 do not divide a stage's 4"},
           {R"({"tensor": 16})", "16 ranks cannot share 8 heads"},
           {R"({"expert": 16})", "16 ranks cannot share 8 experts"},
           {R"({"expert_tensor": 2})", "is not modelled yet where nothing else is cut"},
           {R"({"pipeline": 4, "virtual_stages": 2})",
            "4 layers, by the numbers in the tensors' names"},
           {R"({"virtual_stages": 2})", "virtual_stages: needs a pipeline of 2 or more"},
           {R"({"pipeline": 2, "schedule": "interleaved"})", "needs virtual_stages of 2 or more"},
           {R"({"pipeline": 2, "virtual_stages": 2, "schedule": "gpipe"})",
            "need the schedule 'interleaved'"},
           {R"({"pipeline": 2, "order": "tp-cp-ep-pp-dp", "context": 2})",
            "tp-cp-ep-pp-dp is possible"},
           {R"({"tensor": 0})", "tensor: found 0"},
           {R"({"tensor": 2, "overlap_tensor": true})", "needs \"sequence\": true"},
           {R"({"tensr": 2})", "did you mean 'tensor'?"}}) {
    EXPECT_TRUE(contains(refused(parallel), part)) << parallel << ": " << refused(parallel);
  }
  for (const char* fits :
       {R"({"tensor": 8, "pipeline": 4})", R"({"tensor": 2, "context": 4, "pipeline": 2})",
        R"({"expert": 8, "pipeline": 2, "virtual_stages": 2})",
        R"({"tensor": 4, "expert": 2, "expert_tensor": 4, "pipeline": 4, "schedule": "gpipe"})"}) {
    EXPECT_EQ(refused(fits), "") << fits;
  }
}

// What is not modelled beside a layout is refused, in a framework's words too.
TEST(ReadParallel, KeysThatContradictALayoutAreNamed) {
  const auto with = [](const char* strategy, const char* parallel = R"({"pipeline": 4})") {
    Json json = cut_job(parallel);
    json["strategies"] = Json::array({Json::parse(strategy)});
    return refusal_of(json);
  };
  const char* local = R"({"name": "l", "local_sgd": {"period": 4}})";
  EXPECT_TRUE(
      contains(with(local), "averaging is not modelled yet together with workload.parallel"))
      << with(local);
  EXPECT_TRUE(contains(with(local, R"({"tensor": 2})"), "averaging is not"));
  EXPECT_EQ(with(local, "{}"), "");
  const char* ranked = R"({"name": "p", "priority": "layer"})";
  EXPECT_TRUE(contains(with(ranked), "ranking buckets is not")) << with(ranked);
  EXPECT_EQ(with(R"({"name": "t", "dialect": "horovod", "config": {}})"), "");
}

// Megatron's condition, in its words, with the counts that would do.
TEST(ReadParallel, InterleavedStagesNeedAMultipleOfMicroBatches) {
  for (const int stages : {2, 4}) {
    for (int m = 1; m <= 12; ++m) {
      Json json = cut_job(R"({"virtual_stages": 2})");
      json["workload"]["parallel"]["pipeline"] = stages;
      json["workload"]["operators"]["shape"]["layers"] = 8;
      json["workload"]["micro_batches"] = m;
      const std::string said = refusal_of(json);
      EXPECT_EQ(said.empty(), m % stages == 0) << said;
      json["workload"]["parallel"].erase("virtual_stages");
      EXPECT_EQ(refusal_of(json), "");
    }
  }
  Json json = cut_job(R"({"pipeline": 2, "virtual_stages": 2})");
  json["workload"]["micro_batches"] = 5;
  EXPECT_TRUE(contains(refusal_of(json),
                       "workload.micro_batches: number of microbatches (5) is not divisible by "
                       "pipeline-model-parallel-size (2) when using interleaved schedule "
                       "(Megatron): expected 4 or 6"))
      << refusal_of(json);
  json["workload"]["micro_batches"] = 1;
  EXPECT_TRUE(contains(refusal_of(json), "expected 2")) << refusal_of(json);
}

// Ranks that the collectives of a bucket connect with this one.
std::set<int> connected_with(const plan::Plan& plan, int bucket, int rank) {
  std::set<int> reached{rank};
  for (std::size_t before = 0; before < reached.size();) {
    before = reached.size();
    for (const plan::Op& op : plan.ops) {
      const auto* one = std::get_if<collective::Collective>(&op.work);
      if (one == nullptr || one->bucket != bucket) continue;
      for (int group = 0; group < one->groups.count; ++group) {
        std::set<int> members;
        for (int m = 0; m < one->groups.size; ++m) members.insert(one->groups.rank(group, m));
        const bool known = std::ranges::any_of(members, [&](int r) { return reached.contains(r); });
        if (known) reached.insert(members.begin(), members.end());
      }
    }
  }
  return reached;
}

// Every strategy with groups of ranks, beside experts, however many share them: a step takes a time
// that such a job may take, and an expert is summed among all ranks that hold it and no others. Or
// it is refused in one sentence that says why.
TEST(ReadParallel, GroupsOfRanksWorkWithExperts) {
  Random random(52);
  const auto one_of = [&](std::vector<int> list) { return list[random.below(list.size())]; };
  int taken = 0, refused = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int size = one_of({2, 4, 8, 16});
    const std::vector<Json> strategies{
        {{"hierarchy", {{"form", "sharded"}, {"group_size", size}}}},
        {{"hierarchy", {{"form", "leaders"}, {"group_size", size}}}},
        {{"hierarchy", {{"form", "sharded"}, {"group_size", size}}}, {"exchange", "sharded"}},
        {{"exchange", "sharded"}, {"regather", true}, {"regather_group", size}},
        {{"hierarchy", {{"form", "sharded"}, {"group_size", size}}}, {"exchange", "decoupled"}},
        {{"dialect", "horovod"}, {"config", {{"HOROVOD_HIERARCHICAL_ALLREDUCE", 1}}}},
        {{"dialect", "megatron"},
         {"config",
          {{"use-distributed-optimizer", true},
           {"num-distributed-optimizer-instances", one_of({2, 4})}}}},
        {{"dialect", "fsdp"}, {"config", {{"version", 1}, {"sharding_strategy", "HYBRID_SHARD"}}}},
        {{"dialect", "fsdp"}, {"config", {{"version", 2}, {"reshard_after_forward", size}}}},
        {{"dialect", "deepspeed"},
         {"config", {{"zero_optimization", {{"stage", 3}, {"zero_hpz_partition_size", size}}}}}},
        {{"dialect", "deepspeed"},
         {"config", {{"zero_optimization", {{"stage", 3}, {"mics_shard_size", size}}}}}}};
    Json json = cut_job("{}");
    json["workload"]["micro_batches"] = 1;  // in others MiCS sums inside groups alone
    json["cluster"]["nodes"] = one_of({1, 2, 4});
    json["cluster"]["gpus_per_node"] = one_of({2, 4, 8});
    json["workload"]["parallel"] = {{"expert", one_of({1, 2, 4, 8})},
                                    {"expert_tensor", one_of({1, 1, 2})},
                                    {"tensor", one_of({1, 1, 2})},
                                    {"pipeline", one_of({1, 1, 2})}};
    json["strategies"] = Json::array({strategies[random.below(strategies.size())]});
    json["strategies"][0]["name"] = "s";
    const std::string why = refusal_of(json);
    if (!why.empty()) {
      EXPECT_FALSE(contains(why, "internal error")) << json.dump() << why;
      ++refused;
      continue;
    }
    ++taken;
    const Scenario scenario = read_job(json);
    const Strategy& strategy = scenario.strategies.front();
    collective::CostCache cache(scenario.cluster);
    const auto executor = run::make_model_executor({scenario.cluster, {}, 1});
    const auto evaluated = measure::evaluate_strategy(scenario, strategy, *executor, cache);
    EXPECT_GT(evaluated.metrics.step_time, 1e-5) << json.dump();
    EXPECT_LT(evaluated.metrics.step_time, 1) << json.dump();
    const Parallel& parallel = scenario.workload.parallel;
    const int stage = scenario.cluster.ranks() / parallel.pipeline;
    for (std::size_t b = 0; b < evaluated.plan.buckets.size(); ++b) {
      const auto& bucket = evaluated.plan.buckets[b];
      const Tensor& tensor = scenario.workload.tensors[index(bucket.tensors.front())];
      const bool gathered = std::ranges::none_of(evaluated.plan.ops, [&](const plan::Op& op) {
        const auto* one = std::get_if<collective::Collective>(&op.work);
        return one != nullptr && one->bucket == static_cast<int>(b) &&
               one->kind != collective::CollectiveKind::kAllGather;
      });
      if (gathered) continue;  // parameters, among those of a group
      const int step = exchange_step(parallel, tensor.expert);
      const int base = tensor.part % parallel.pipeline * stage;
      std::set<int> holders;
      for (int rank = base; rank < base + stage; rank += step) holders.insert(rank);
      EXPECT_EQ(connected_with(evaluated.plan, static_cast<int>(b), base), holders)
          << json.dump() << " bucket " << b;
    }
  }
  EXPECT_GT(taken, 100);
  EXPECT_GT(refused, 20);
}

// Layers evenly over the parts; the embedding stands with the first, the head with the last, and
// each counts as a layer where only that comes out even.
TEST(ReadParallel, LayersAreSpreadEvenly) {
  const auto part_of = [](const Scenario& scenario, const std::string& name) {
    for (const Tensor& tensor : scenario.workload.tensors) {
      if (tensor.name.find(name) != std::string::npos) return tensor.part;
    }
    ADD_FAILURE() << name;
    return -1;
  };
  const Scenario four = read_job(cut_job(R"({"pipeline": 2, "virtual_stages": 2})"));
  EXPECT_EQ(part_of(four, "embed_tokens"), 0);
  EXPECT_EQ(part_of(four, "layers.0."), 0);
  EXPECT_EQ(part_of(four, "layers.1."), 1);
  EXPECT_EQ(part_of(four, "layers.3."), 3);
  EXPECT_EQ(part_of(four, "lm_head"), 3);
  Json six = cut_job(R"({"pipeline": 2, "virtual_stages": 4})");
  six["workload"]["operators"]["shape"]["layers"] = 6;  // and two ends: eight
  const Scenario eight = read_job(six);
  EXPECT_EQ(part_of(eight, "embed_tokens"), 0);
  EXPECT_EQ(part_of(eight, "layers.0."), 1);
  EXPECT_EQ(part_of(eight, "layers.5."), 6);
  EXPECT_EQ(part_of(eight, "lm_head"), 7);
}

TEST(ReadParallel, LayersAsGiven) {
  const auto layers = [](const Scenario& scenario) {
    std::set<std::pair<int, std::string>> parts;  // and what stands in them, to the layer
    for (const Tensor& tensor : scenario.workload.tensors) {
      const auto from = tensor.name.find("layers.");
      parts.emplace(tensor.part, from == std::string::npos ? tensor.name.substr(0, 7)
                                                           : tensor.name.substr(from, 8));
    }
    return parts;
  };
  const Scenario uneven =
      read_job(cut_job(R"({"pipeline": 2, "virtual_stages": 2, "layers": [0, 1, 3, 0]})"));
  EXPECT_EQ(layers(uneven), (std::set<std::pair<int, std::string>>{{0, "model.e"},
                                                                   {1, "layers.0"},
                                                                   {2, "layers.1"},
                                                                   {2, "layers.2"},
                                                                   {2, "layers.3"},
                                                                   {3, "model.n"},
                                                                   {3, "lm_head"}}));
  const Scenario even = read_job(cut_job(R"({"pipeline": 2, "layers": [2, 2]})"));
  EXPECT_EQ(workload_json(even.workload, 6)["parallel"]["layers"], Json({2, 2}));
  EXPECT_TRUE(
      contains(refused(R"({"pipeline": 2, "layers": [2, 3]})"), "5 in all, where the model has 4"));
  EXPECT_TRUE(contains(refused(R"({"pipeline": 2, "layers": [4]})"), "1 numbers for 2 parts"));
  EXPECT_TRUE(contains(refused(R"({"pipeline": 2, "layers": [4, -1]})"), "layers"));
}

// Layers of a workload that gives its own tensors are told by the numbers in their names, or by
// `part`; an order that is not the backward pass's is refused.
TEST(ReadParallel, PartsOfGivenTensors) {
  Json json = cut_job(R"({"pipeline": 2})");
  json["workload"] = Json::parse(R"({"name": "w", "forward_ms": 2, "backward_ms": 4,
    "parallel": {"pipeline": 2, "activation_bytes": 1000}, "tensors": [
      {"name": "h.1.w", "shape": [10]}, {"name": "h.0.w", "shape": [10]}]})");
  EXPECT_EQ(read_job(json).workload.tensors[0].part, 1);
  EXPECT_EQ(read_job(json).workload.tensors[1].part, 0);
  json["workload"]["tensors"][0]["name"] = "b";
  EXPECT_TRUE(contains(refusal_of(json), "'part' in each tensor"));
  json["workload"]["tensors"][0]["part"] = 1;
  EXPECT_EQ(read_job(json).workload.tensors[0].part, 1);
  json["workload"]["tensors"][0]["part"] = 2;
  EXPECT_TRUE(contains(refusal_of(json), "the part of 'b' is 2: expected 0 to 1"));
  json["workload"]["tensors"][0]["part"] = 0;
  json["workload"]["tensors"][1]["part"] = 1;
  EXPECT_TRUE(contains(refusal_of(json), "falling in the tensors' order"));
}

// A zero is an answer, and not the same as none.
TEST(ReadParallel, ZeroBytesAreNotTheArchitectures) {
  const auto layout = [](const char* parallel) {
    return read_job(cut_job(parallel)).workload.parallel;
  };
  const Parallel own = layout(R"({"pipeline": 2})");
  EXPECT_GT(own.activation, 0);
  const Parallel none = layout(R"({"pipeline": 2, "activation_bytes": 0, "tied_bytes": 0})");
  EXPECT_EQ(none.activation, 0);
  EXPECT_EQ(none.tied, 0);
}

// Times that the device predicts get what the collectives inside the layers take; times that were
// measured on the layout hold them.
TEST(ReadParallel, InnerCollectivesAreAddedOnlyToEvaluatedTimes) {
  const auto one_step = [](const Workload& workload) {
    return workload.forward + backward_time(workload);
  };
  const Workload cut = read_job(cut_job(R"({"tensor": 8})")).workload;
  const Parallel& parallel = cut.parallel;
  EXPECT_GT(parallel.forward.tensor, 0);
  EXPECT_GT(parallel.backward.tensor, 0);
  EXPECT_EQ(parallel.forward.context, 0);
  // Two of a layer and the embedding's, each an all-reduce of the tokens among 8 neighbours.
  const Scenario scenario = read_job(cut_job(R"({"tensor": 8})"));
  collective::CostCache cache(scenario.cluster);
  collective::Collective one;
  one.kind = collective::CollectiveKind::kAllReduce;
  one.groups = collective::block_groups(scenario.cluster.ranks(), 8);
  one.unit = 1;
  one.elements = 64 * 64 * 2;
  collective::choose_algorithm(one, collective::kNcclName, scenario.cluster);
  EXPECT_NEAR(parallel.forward.tensor, 9 * cache.time(one), 1e-12);
  Json given = cut_job(R"({"tensor": 8})");
  given["workload"]["forward_ms"] = 3;
  given["workload"]["backward_ms"] = 5;
  const Workload measured = read_job(given).workload;
  EXPECT_NEAR(one_step(measured), 8e-3, 1e-12);
  EXPECT_EQ(measured.parallel.forward.tensor, 0);
}

// Full recomputation repeats the forward pass ahead of the backward one: all of it where a job is
// cut, what PyTorch repeats of it elsewhere.
TEST(ReadParallel, RecomputationTakesAnotherForwardPass) {
  Json json = cut_job("{}");
  const Workload plain = read_job(json).workload;
  json["workload"]["activation_checkpointing"] = "full";
  const Workload full = read_job(json).workload;
  EXPECT_NEAR(backward_time(full), backward_time(plain) + 0.63 * plain.forward, 1e-12);
  EXPECT_EQ(full.forward, plain.forward);
  Json cut = cut_job(R"({"tensor": 8})");
  const Workload kept = read_job(cut).workload;
  cut["workload"]["activation_checkpointing"] = "full";
  const double inner = backward_time(kept) / (backward_time(kept) - kept.parallel.backward.tensor);
  const Seconds again = kept.forward - kept.parallel.forward.tensor;
  EXPECT_NEAR(backward_time(read_job(cut).workload),
              backward_time(kept) / inner + again + kept.parallel.backward.tensor +
                  kept.parallel.forward.tensor,
              1e-9);
  // Layers 1, 3 and so on; the head and the embedding are in no layer.
  json["workload"]["activation_checkpointing"] = "full";
  json["workload"]["checkpointing_every"] = 2;
  const Workload half = read_job(json).workload;
  const std::vector<Seconds> forward = forward_times(plain);
  for (std::size_t t = 0; t < forward.size(); ++t) {
    const int layer = plan::layer_number(plain.tensors[t].name);
    EXPECT_NEAR(half.tensors[t].backward - plain.tensors[t].backward,
                layer > 0 && layer % 2 == 1 ? 0.63 * forward[t] : 0, 1e-15)
        << plain.tensors[t].name;
  }
  json["workload"].erase("checkpointing_every");
  // The second product of weights, the fourth and so on are repeated, and cheap operators: the same
  // part of each layer's pass, and nothing outside the layers.
  json["workload"]["activation_checkpointing"] = "products";
  const Workload products = read_job(json).workload;
  double share = 0;
  for (std::size_t t = 0; t < forward.size(); ++t) {
    const Seconds more = products.tensors[t].backward - plain.tensors[t].backward;
    const bool inside = plan::layer_number(plain.tensors[t].name) >= 0;
    if (inside && share == 0) share = more / forward[t];
    EXPECT_NEAR(more, inside ? share * forward[t] : 0, 1e-12) << plain.tensors[t].name;
  }
  EXPECT_GT(share, 0.3);
  EXPECT_LT(share, 0.9);
  json["workload"]["activation_checkpointing"] = "selective";  // flash attention keeps no scores
  EXPECT_EQ(backward_time(read_job(json).workload), backward_time(plain));
}

// Written and read again, a cut workload makes the same plan.
TEST(ReadParallel, WrittenItIsReadAgain) {
  for (const char* layout :
       {R"({"tensor": 8, "sequence": true, "pipeline": 2, "virtual_stages": 2})",
        R"({"expert": 4, "pipeline": 4, "schedule": "zero_bubble", "overlap_sends": true})",
        R"({"tensor": 2, "pipeline": 4, "order": "tp-cp-ep-pp-dp", "schedule": "gpipe"})"}) {
    Json json = cut_job(layout);
    const Scenario before = read_job(json);
    json["workload"] = workload_json(before.workload, 17);
    json["cluster"] = cluster_json(before.cluster, 17);  // with the guess that ranks differ
    const Scenario after = read_job(json);
    const auto step = [](const Scenario& scenario) {
      collective::CostCache cache(scenario.cluster);
      const auto model =
          run::make_model_executor({scenario.cluster, scenario.simulation, scenario.seed});
      return measure::evaluate_strategy(scenario, scenario.strategies.front(), *model, cache)
          .metrics.step_time;
    };
    EXPECT_NEAR(step(after) / step(before), 1, 1e-9) << layout;
  }
}

}  // namespace
}  // namespace syncline::input
