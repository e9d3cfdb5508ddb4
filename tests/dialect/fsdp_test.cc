// FSDP: what belongs to which unit, and what is gathered and scattered when.
#include "formats/dialect/dialects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/plan.h"
#include "formats/dialect/dialect.h"
#include "formats/dialect/schemes.h"
#include "formats/dialect/write.h"
#include "formats/input/conflicts.h"
#include "tests/support/readings.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"

namespace syncline::dialect {
namespace {

using collective::CollectiveKind;
using test::cluster_of;
using test::contains;
using test::count_of;
using test::Groups;
using test::has_note;
using test::tensor_of;

// Two layers between an embedding and a head, in backward order.
Workload transformer() {
  Workload workload;
  workload.forward = 0.004;
  for (const char* name :
       {"head.weight", "model.layers.1.mlp.weight", "model.layers.1.att.weight",
        "model.layers.0.mlp.weight", "model.layers.0.att.weight", "model.embed.weight"}) {
    workload.tensors.push_back(tensor_of(name, {1000}));
    workload.tensors.back().backward = 0.001;
  }
  return workload;
}

const test::Framework kFsdp{fsdp_dialect(), cluster_of(1, 4)};

TEST(Fsdp, ParametersBelongToTheInnermostUnit) {
  const auto groups = [](const std::string& units) {
    return kFsdp.groups_of(R"({"units": )" + units + "}", transformer());
  };
  EXPECT_EQ(groups(R"(["model.layers.*"])"), (Groups{{1, 2}, {3, 4}, {0, 5}}));
  EXPECT_EQ(groups("[]"), (Groups{{0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(groups(R"(["model.layers.*", "model.layers.1.mlp", "head"])"),
            (Groups{{0}, {1}, {2}, {3, 4}, {5}}));
  // The root is around all others: its sums come last (torch 2.6).
  EXPECT_EQ(groups(R"(["model"])"), (Groups{{1, 2, 3, 4, 5}, {0}}));
}

// Shards in the host's memory, by each version's own key.
TEST(Fsdp, Offloads) {
  for (const char* keys : {R"("version": 1, "cpu_offload": true)",
                           R"("version": 1, "cpu_offload": {"offload_params": true})",
                           R"("version": 2, "offload_policy": "CPUOffloadPolicy")",
                           R"("version": 2, "offload_policy": {"pin_memory": true})"}) {
    const std::string config = R"({"units": ["model.layers.*"], )" + std::string(keys) + "}";
    const Strategy strategy = kFsdp.read(config, transformer()).strategy;
    EXPECT_EQ(strategy.offload, Strategy::Offload::kAll) << keys;
    kFsdp.expect_comes_back(strategy, transformer());
  }
  for (const char* keys :
       {R"({"version": 1, "cpu_offload": {"offload_params": false}})",
        R"({"version": 1, "cpu_offload": null})", R"({"offload_policy": "OffloadPolicy"})"}) {
    EXPECT_EQ(kFsdp.read(keys, transformer()).strategy.offload, Strategy::Offload::kNone) << keys;
  }
}

// Three units: gathered three times for the forward pass, twice more for the backward pass (the
// root keeps its parameters), scattered three times.
TEST(Fsdp, CollectivesAStep) {
  const auto plan_of = [](const std::string& more) {
    return kFsdp.plan_of(R"({"units": ["model.layers.*"])" + more + "}", transformer());
  };
  const plan::Plan again = plan_of("");
  EXPECT_EQ(count_of(again, CollectiveKind::kAllGather), 5u);
  EXPECT_EQ(count_of(again, CollectiveKind::kReduceScatter), 3u);
  for (const char* kept : {R"(, "reshard_after_forward": false)",
                           R"(, "version": 1, "sharding_strategy": "SHARD_GRAD_OP")"}) {
    const plan::Plan plan = plan_of(kept);
    EXPECT_EQ(count_of(plan, CollectiveKind::kAllGather), 3u);
    EXPECT_EQ(count_of(plan, CollectiveKind::kReduceScatter), 3u);
  }
  const plan::Plan whole = plan_of(R"(, "version": 1, "sharding_strategy": "NO_SHARD")");
  EXPECT_EQ(count_of(whole, CollectiveKind::kAllReduce), 3u);
}

// The root keeps its parameters wherever it becomes ready, units that `not_resharded` names keep
// theirs, and where everything is wrapped nothing is kept: elements gathered again, in order.
TEST(Fsdp, TheRootStaysGathered) {
  Workload workload = transformer();
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const auto elements = static_cast<std::int64_t>(4 << t);  // head 4, layer 1 24, layer 0 96, 128
    workload.tensors[t] = tensor_of(workload.tensors[t].name.c_str(), {elements});
    workload.tensors[t].backward = 0.001;
  }
  const auto again = [&](const std::string& config) {
    const Strategy strategy = kFsdp.strategy_of(config, workload);
    kFsdp.expect_comes_back(strategy, workload);
    std::multiset<std::int64_t> gathered;
    for (const auto& op : kFsdp.plan_of(strategy, workload).ops) {
      const auto* moved = std::get_if<collective::Collective>(&op.work);
      if (moved != nullptr && op.gathers) gathered.insert(moved->elements);
    }
    std::vector<std::int64_t> elements;
    for (const std::int64_t each : std::set(gathered.begin(), gathered.end())) {
      if (gathered.count(each) > 1) elements.push_back(each);
    }
    return elements;
  };
  using List = std::vector<std::int64_t>;
  const std::string mixed = R"(, "mp_policy": {"param_dtype": "bf16", "reduce_dtype": "fp32"})";
  for (const std::string& more : {std::string(), mixed}) {
    // The head alone is the root's, and ready first; then the embedding is, and ready last.
    EXPECT_EQ(again(R"({"units": ["model.layers.*", "model.embed"])" + more + "}"),
              (List{24, 96, 128}));
    EXPECT_EQ(again(R"({"units": ["model.layers.*", "head"])" + more + "}"), (List{4, 24, 96}));
    EXPECT_EQ(again(R"({"units": ["model.layers.*"])" + more + "}"), (List{24, 96}));
    EXPECT_EQ(again(R"({"units": ["model.layers.*", "model.embed", "head"])" + more + "}"),
              (List{4, 24, 96, 128}));
    // Modules that are wrapped as one, and a layer that stays.
    EXPECT_EQ(again(R"({"units": ["model.layers.*", ["model.embed", "head"]])" + more + "}"),
              (List{24, 96, 132}));
    EXPECT_EQ(
        again(R"({"units": ["model.layers.*"], "not_resharded": ["model.layers.1"])" + more + "}"),
        (List{96}));
  }
}

// Since torch 2.8 a value that is given goes for the root too: gathered again with the units, among
// the same ranks. A root that stays in spite of it is named by one of its modules.
TEST(Fsdp, AGivenValueGoesForTheRootSinceTorch2_8) {
  const auto gathered_again = [](const char* torch, const std::string& more) {
    Workload workload = transformer();
    workload.framework_version = torch;
    const Strategy strategy =
        kFsdp.strategy_of(R"({"units": ["model.layers.*"])" + more + "}", workload);
    kFsdp.expect_comes_back(strategy, workload);
    return count_of(kFsdp.plan_of(strategy, workload), CollectiveKind::kAllGather) - 3;
  };
  for (const char* torch : {"2.6", "2.7.1"}) {
    for (const char* given : {"true", "2", "4", "null"}) {
      EXPECT_EQ(gathered_again(torch, std::string(R"(, "reshard_after_forward": )") + given), 2u);
    }
  }
  for (const char* torch : {"2.8.0", "2.15", ""}) {
    for (const char* given : {"true", "2", "4"}) {
      const std::string more = std::string(R"(, "reshard_after_forward": )") + given;
      EXPECT_EQ(gathered_again(torch, more), 3u) << torch << more;
      EXPECT_EQ(gathered_again(torch, more + R"(, "not_resharded": ["head"])"), 2u) << more;
      EXPECT_EQ(gathered_again(torch, more + R"(, "torch": "2.7")"), 2u) << torch << more;
    }
    EXPECT_EQ(gathered_again(torch, ""), 2u);
    EXPECT_EQ(gathered_again(torch, R"(, "reshard_after_forward": null)"), 2u);
    EXPECT_EQ(gathered_again(torch, R"(, "reshard_after_forward": false)"), 0u);
    EXPECT_EQ(gathered_again(torch, R"(, "reshard_after_forward": 1)"), 0u);
  }
  const auto told = [](const std::string& torch) {
    return has_note(
        kFsdp.read(R"({"units": [], "reshard_after_forward": true, "torch": ")" + torch + "\"}",
                   transformer()),
        "goes for the root too");
  };
  EXPECT_TRUE(told("2.8"));
  EXPECT_FALSE(told("2.7"));
}

// torch's stages sum in the last micro-batch alone, once the stage's passes are over; replicas'
// sums may wait for the last micro-batch without them.
TEST(Fsdp, StagesSumInTheLastMicroBatch) {
  Workload workload = transformer();
  workload.micro_batches = 4;
  const auto hybrid = kFsdp.on(cluster_of(2, 4));
  const std::string mesh = R"({"units": ["model.layers.*"], "mesh": [2, 4])";
  const auto counts = [&](const std::string& more) {
    const Strategy strategy = hybrid.strategy_of(mesh + more + "}", workload);
    hybrid.expect_comes_back(strategy, workload);
    const plan::Plan plan = hybrid.plan_of(strategy, workload);
    return std::pair(count_of(plan, CollectiveKind::kReduceScatter),
                     count_of(plan, CollectiveKind::kAllReduce));
  };
  using Counts = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(counts(""), Counts(12, 12));
  EXPECT_EQ(counts(R"(, "set_requires_all_reduce": false)"), Counts(12, 3));
  EXPECT_TRUE(has_note(kFsdp.read(R"({"units": [], "set_requires_all_reduce": false})", workload),
                       "set_requires_all_reduce has no effect"));
  workload.parallel.pipeline = 2;
  for (std::size_t t = 0; t < 3; ++t) workload.tensors[t].part = 1;
  const Reading staged =
      kFsdp.read(R"({"units": ["model.layers.*"], "reshard_after_forward": false})", workload);
  EXPECT_FALSE(staged.strategy.each_micro_batch);
  EXPECT_TRUE(staged.strategy.after_passes);
  EXPECT_TRUE(has_note(staged, "in the last micro-batch alone"));
}

// Written back and read again it makes the same plan; units that differ by a number are a pattern.
TEST(Fsdp, ComesBack) {
  for (const char* config :
       {R"({"units": ["model.layers.*"]})", R"({"units": []})",
        R"({"units": ["model.layers.*"], "reshard_after_forward": false})",
        R"({"units": ["model.layers.*", "model.layers.1.mlp", "head"]})",
        R"({"units": ["model.layers.1"], "version": 1})",
        R"({"units": ["model.layers.*"], "version": 1, "sharding_strategy": "SHARD_GRAD_OP"})",
        R"({"units": ["model.layers.*"], "version": 1, "sharding_strategy": "NO_SHARD"})",
        R"({"units": ["model.layers.*"], "version": 1, "no_sync": true})",
        R"({"version": 1, "no_sync": true, "sharding_strategy": "SHARD_GRAD_OP"})",
        R"({"units": ["model.layers.*"], "no_sync": true})"}) {
    for (const std::int64_t micro_batches : {1, 3}) {
      Workload workload = transformer();
      workload.micro_batches = micro_batches;
      const Strategy strategy =
          dialect::reading_of(kFsdp.row, Json::parse(config), workload, kFsdp.cluster).strategy;
      SCOPED_TRACE(config);
      kFsdp.expect_comes_back(strategy, workload);
    }
  }
  const Strategy layers = kFsdp.strategy_of(R"({"units": ["model.layers.*"]})", transformer());
  const auto written = kFsdp.write(layers, transformer());
  EXPECT_EQ(written->config["units"], Json::array({"model.layers.*"}));
  // What it cannot say.
  Strategy streams;
  streams.streams = 2;
  EXPECT_FALSE(kFsdp.write(streams, transformer())->exact);
}

// FSDP2 deals out the first dimension of each parameter, padded to the ranks; FSDP1 a unit's
// flattened parameters.
TEST(Fsdp, PadsTheFirstDimensionOfEachParameter) {
  Workload workload;
  workload.tensors = {tensor_of("blocks.0.w", {768, 768}), tensor_of("pos_embed", {1, 197, 768}),
                      tensor_of("cls", {1, 1, 768})};
  const auto fsdp = kFsdp.on(cluster_of(8, 8));
  const auto padded = [&](const Reading& reading) {
    std::vector<std::int64_t> elements;
    for (const auto& bucket : fsdp.plan_of(reading.strategy, workload).buckets) {
      elements.push_back(bucket.padded_bytes / 4);
    }
    return elements;
  };
  const Reading second = fsdp.read(R"({"units": ["blocks.*"]})", workload);
  EXPECT_EQ(padded(second), (std::vector<std::int64_t>{768 * 768, 64 * 197 * 768 + 64 * 768}));
  EXPECT_TRUE(has_note(second, "pos_embed of 1 row travels as 64"));
  const Reading first = fsdp.read(R"({"units": ["blocks.*"], "version": 1})", workload);
  EXPECT_EQ(padded(first), (std::vector<std::int64_t>{768 * 768, 198 * 768}));
  EXPECT_FALSE(has_note(first, "pads"));
  // Nothing to tell where all rows come out even.
  workload.tensors = {tensor_of("blocks.0.w", {768, 768}), tensor_of("b", {768})};
  EXPECT_FALSE(has_note(fsdp.read(R"({"units": ["blocks.*"]})", workload), "pads"));
}

// torch shards a unit as one.
TEST(Fsdp, RefusesAUnitOfSeveralFormats) {
  Workload workload = transformer();
  workload.tensors[3].dtype = DType::kBf16;  // model.layers.0.mlp.weight
  const auto message = [&](const std::string& config) { return kFsdp.refusal(config, workload); };
  const std::string two = message(R"({"units": ["model.layers.*"]})");
  EXPECT_TRUE(
      contains(two, "model.layers.0.mlp.weight in bf16 and model.layers.0.att.weight in fp32"))
      << two;
  EXPECT_TRUE(contains(two, "FSDP expects uniform original parameter dtype")) << two;
  EXPECT_TRUE(
      contains(message(R"({"units": [], "version": 1})"), "Must flatten tensors with uniform"));
  EXPECT_EQ(message(R"({"units": ["model.layers.*", "model.layers.0.mlp"]})"), "");
  // A parameter without a dimension is FSDP1's alone.
  workload = transformer();
  workload.tensors[0].shape = {};
  EXPECT_TRUE(contains(message(R"({"units": []})"), "scalar parameters: head.weight"));
  EXPECT_EQ(message(R"({"units": [], "version": 1})"), "");
  // Then no configuration can say another strategy either, which is told, not passed over.
  workload.tensors = {tensor_of("w.a", {10}), tensor_of("w.b", {10}, DType::kBf16)};
  EXPECT_THROW(kFsdp.write(Strategy{}, workload), InputError);
}

// Parameters travel in param_dtype, sums in reduce_dtype: 2,000 and 4,000 bytes a unit of 1,000.
TEST(Fsdp, FormatsOfParametersAndSums) {
  const auto bytes = [](const std::string& config, DType dtype) {
    Workload workload = transformer();
    for (Tensor& tensor : workload.tensors) tensor.dtype = dtype;
    const Strategy strategy = kFsdp.strategy_of(config, workload);
    kFsdp.expect_comes_back(strategy, workload);
    std::set<Bytes> gathered, summed;
    for (const auto& op : kFsdp.plan_of(strategy, workload).ops) {
      const auto* moved = std::get_if<collective::Collective>(&op.work);
      if (moved != nullptr) (op.gathers ? gathered : summed).insert(moved->bytes());
    }
    return std::pair(gathered, summed);
  };
  using Pair = std::pair<std::set<Bytes>, std::set<Bytes>>;
  const std::string units = R"({"units": ["model.layers.*", "head", "model.embed"])";
  const auto of = [](Bytes one) { return std::set<Bytes>{one * 1000, one * 2000}; };
  EXPECT_EQ(bytes(units + "}", DType::kFp32), (Pair{of(4), of(4)}));
  const std::string mixed = R"("param_dtype": "bfloat16", "reduce_dtype": "float32"}})";
  EXPECT_EQ(bytes(units + R"(, "mp_policy": {)" + mixed, DType::kFp32), (Pair{of(2), of(4)}));
  EXPECT_EQ(bytes(units + R"(, "version": 1, "mixed_precision": {)" + mixed, DType::kBf16),
            (Pair{of(2), of(4)}));
  EXPECT_EQ(bytes(units + R"(, "mp_policy": {"param_dtype": "bf16"}})", DType::kBf16),
            (Pair{of(2), of(2)}));
  // accelerate's mixed_precision: bf16 sums in bf16 what fp32 parameters keep.
  EXPECT_EQ(bytes(units + R"(, "mp_policy": {"param_dtype": "bf16"}})", DType::kFp32),
            (Pair{of(2), of(2)}));
  EXPECT_EQ(bytes(units + R"(, "mp_policy": {"reduce_dtype": "bf16"}})", DType::kFp32),
            (Pair{of(4), of(2)}));
  // As many bytes, but other roundings.
  EXPECT_EQ(bytes(units + R"(, "mp_policy": {"reduce_dtype": "fp16"}})", DType::kBf16),
            (Pair{of(2), of(2)}));
}

// Sums in another half format than the gradients' own are other sums, whatever their bytes.
TEST(Fsdp, OtherHalfFormatsRoundSums) {
  const auto strategy_of = [](DType own, const char* parameters, const char* sums) {
    Workload workload = transformer();
    for (Tensor& tensor : workload.tensors) tensor.dtype = own;
    const Json formats{{"param_dtype", parameters}, {"reduce_dtype", sums}};
    return kFsdp.strategy_of(Json{{"mp_policy", formats}}.dump(), workload);
  };
  EXPECT_EQ(strategy_of(DType::kBf16, "bf16", "bf16").fusion.sum_format, std::nullopt);
  EXPECT_EQ(strategy_of(DType::kBf16, "bf16", "fp16").fusion.sum_format, DType::kFp16);
  EXPECT_EQ(strategy_of(DType::kFp16, "fp16", "bf16").fusion.sum_format, DType::kBf16);
  EXPECT_EQ(strategy_of(DType::kFp16, "fp16", "fp16").fusion.sum_format, std::nullopt);
  EXPECT_EQ(strategy_of(DType::kFp32, "fp16", "fp32").fusion.sum_format, std::nullopt);
}

// A job that torch.autocast trains in fp16 keeps that format under FSDP2, on whatever device.
TEST(Fsdp, SchemesKeepTheFormatOfAutocast) {
  for (const DType format : {DType::kFp16, DType::kBf16}) {
    Workload workload = transformer();
    Operator cast;
    cast.kind = "cast";
    cast.dtype = format;
    workload.operators.edit().operators = {cast};
    const auto schemes = schemes_of_framework("pytorch", Json::object(), workload, kFsdp.cluster);
    const auto fsdp = std::ranges::find(schemes, "FSDP2", &Scheme::name);
    ASSERT_NE(fsdp, schemes.end());
    EXPECT_EQ(fsdp->config["mp_policy"]["param_dtype"],
              format == DType::kFp16 ? "float16" : "bfloat16");
    EXPECT_EQ(fsdp->config["mp_policy"]["reduce_dtype"], "float32");
  }
}

// A part of a model may have no dense gradient at all, and nothing may be resharded.
TEST(Fsdp, UnitsOfNothing) {
  Workload workload = transformer();
  for (Tensor& tensor : workload.tensors) tensor.sparse = true;
  EXPECT_TRUE(kFsdp.read(R"({"units": ["model.layers.*"]})", workload).strategy.regather);
  EXPECT_TRUE(has_note(kFsdp.read(R"({"units": [], "reshard_after_forward": false,
                                      "not_resharded": ["head"]})",
                                  transformer()),
                       "not_resharded has no effect"));
}

TEST(Fsdp, LayersAreTheNumberedModules) {
  const Workload workload = transformer();
  const Strategy named = kFsdp.read(R"({"units": ["model.layers.*"]})", workload).strategy;
  EXPECT_EQ(kFsdp.read(R"({"units": "layers"})", workload).strategy.fusion, named.fusion);
  Workload plain = workload;
  for (std::size_t t = 0; t < plain.tensors.size(); ++t) {
    plain.tensors[t].name = "part" + std::string(t, 'x') + ".weight";
  }
  kFsdp.expect_refusals(plain, {{R"({"units": "layers"})", "no parameter is in a numbered"}});
}

// torch asks for FSDP's collectives one by one there, and waits.
TEST(Fsdp, NothingOverlapsOverGloo) {
  Cluster cluster = cluster_of(1, 4);
  cluster.library = Library::kGloo;
  const test::Framework gloo{fsdp_dialect(), cluster};
  const std::string config = R"({"units": ["model.layers.*"]})";
  EXPECT_TRUE(kFsdp.strategy_of(config, transformer()).overlap);
  const Strategy strategy = gloo.strategy_of(config, transformer());
  EXPECT_FALSE(strategy.overlap);
  gloo.expect_comes_back(strategy, transformer());
  const plan::Plan plan = gloo.plan_of(strategy, transformer());
  for (const plan::Op& op : plan.ops) EXPECT_TRUE(plan.computes(op.stream));
  EXPECT_FALSE(input::conflict_of(strategy, transformer(), cluster));
  // The same collectives, one after the other.
  const plan::Plan beside = kFsdp.plan_of(config, transformer());
  for (const auto kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    EXPECT_EQ(count_of(plan, kind), count_of(beside, kind));
  }
  // Several micro-batches gather anew in each: that is not modelled without overlap.
  Workload several = transformer();
  several.micro_batches = 2;
  EXPECT_TRUE(gloo.strategy_of(config, several).overlap);
}

// A line of a script that shards over all ranks is wrong in a job with further axes.
TEST(Fsdp, JobsThatAreCutGetKeys) {
  const Json config = Json::parse(R"({"units": [], "mesh": [-1, 8]})");
  Parallel cut;
  cut.tensor = 2;
  EXPECT_TRUE(test::contains(config_text(kFsdp.row, config), "fully_shard"));
  EXPECT_EQ(Json::parse(config_text(kFsdp.row, config, cut)), config);
}

// Under no_sync gradients are summed once, and parameters are gathered in each micro-batch, unless
// FSDP1 keeps them between the passes.
TEST(Fsdp, NoSyncGathersInEachMicroBatch) {
  Workload workload = transformer();
  workload.micro_batches = 3;
  const auto counts = [&](const std::string& config) {
    int gathers = 0, scatters = 0;
    const plan::Plan plan = kFsdp.plan_of(kFsdp.strategy_of(config, workload), workload);
    for (const plan::Op& op : plan.ops) {
      const auto* work = std::get_if<collective::Collective>(&op.work);
      if (work == nullptr) continue;
      const bool gather = work->kind == collective::CollectiveKind::kAllGather;
      ++(gather ? gathers : scatters);
    }
    return std::pair(gathers, scatters);
  };
  const std::string units = R"({"units": ["model.layers.*"], )";
  for (const std::string more :
       {R"("version": 2)", R"("version": 2, "reshard_after_forward": false)",
        R"("version": 2, "reshard_after_forward": true)", R"("version": 1)"}) {
    const auto [gathers, scatters] = counts(units + more + "}");
    EXPECT_EQ(counts(units + more + R"(, "no_sync": true})"), std::pair(gathers, scatters / 3))
        << more;
  }
  const std::string kept = units + R"("version": 1, "sharding_strategy": "SHARD_GRAD_OP")";
  const auto [gathers, scatters] = counts(kept + "}");
  EXPECT_EQ(counts(kept + R"(, "no_sync": true})"), std::pair(gathers / 3, scatters / 3));
}

TEST(Fsdp, CodeOfAScript) {
  const auto code = [](const char* config) { return fsdp_code(Json::parse(config)); };
  const std::string wraps =
      "[fully_shard(unit.mlp, **fsdp) for unit in model.layers.children()]; "
      "[fully_shard(unit, **fsdp) for unit in model.layers.children()]; "
      "fully_shard(model.head, **fsdp); fully_shard(model, **fsdp)";
  // Modules inside others first, as torch asks for it.
  EXPECT_EQ(
      code(R"({"units": ["head", "layers.*", "layers.*.mlp"], "not_resharded": ["head"]})"),
      "fsdp = dict(); " + wraps + "; model.head.set_reshard_after_forward(False, recurse=False)");
  EXPECT_EQ(code(R"({"units": ["layers.3", ["norm", "head"]], "mesh": [2, 4],
                     "reshard_after_forward": 2, "no_sync": true,
                     "set_requires_all_reduce": false})"),
            "fsdp = dict(reshard_after_forward=2, mesh=init_device_mesh(\"cuda\", (2, 4), "
            "mesh_dim_names=(\"replicate\", \"shard\"))); "
            "fully_shard(model.layers.get_submodule(\"3\"), **fsdp); "
            "fully_shard([model.norm, model.head], **fsdp); fully_shard(model, **fsdp)"
            "  # in all micro-batches but the last: model.set_requires_all_reduce(False), "
            "model.set_requires_gradient_sync(False)");
  EXPECT_TRUE(test::contains(code(R"({"units": [], "mesh": [-1, 8]})"),
                             "(\"cuda\", (torch.distributed.get_world_size() // 8, 8), "));
  EXPECT_EQ(code(R"({"version": 1, "units": ["layers.*", "head"],
                     "sharding_strategy": "HYBRID_SHARD", "use_orig_params": true})"),
            "units = {*(unit for unit in model.layers.children()), model.head}; "
            "model = FSDP(model, auto_wrap_policy=CustomPolicy(lambda module: module in units), "
            "sharding_strategy=ShardingStrategy.HYBRID_SHARD, use_orig_params=True)");
  EXPECT_EQ(code(R"({"version": 1})"),
            "model = FSDP(model, sharding_strategy=ShardingStrategy.FULL_SHARD)");
  // Keys, if no line reaches the modules.
  EXPECT_EQ(code(R"({"units": ["a.*.b.*.c.*.d.*"]})"), R"({"units": ["a.*.b.*.c.*.d.*"]})");
}

TEST(Fsdp, SaysWhatItRefuses) {
  kFsdp.expect_refusals(transformer(),
                        {{R"({"units": ["model.layer.*"]})", "names no module"},
                         {R"({"units": [], "sharding_strategy": "FULL_SHARD"})", "FSDP1's"},
                         {R"({"sharding_strategy": "FULL_SHARD"})", "\"version\": 1"}});
  EXPECT_TRUE(has_note(kFsdp.read(R"({"units": []})", transformer()), "everything is one unit"));
}

}  // namespace
}  // namespace syncline::dialect
