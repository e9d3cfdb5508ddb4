// Sharding in groups that are replicas of each other: what is sent among whom, how much and when,
// worked out from the frameworks' rules beside the readers.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/base/error.h"
#include "core/plan.h"
#include "formats/dialect/dialects.h"
#include "formats/dialect/megatron.h"
#include "formats/dialect/write.h"
#include "tests/support/readings.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"

namespace syncline::dialect {
namespace {

using collective::CollectiveKind;
using test::cluster_of;
using test::tensor_of;

// One collective: its kind, the ranks of a group, how far apart they are, and its elements.
struct Sent {
  CollectiveKind kind;
  int size;
  int apart;
  std::int64_t elements;

  bool operator==(const Sent&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Sent& sent) {
  return out << collective::to_string(sent.kind) << " of " << sent.elements << " among "
             << sent.size << " every " << sent.apart;
}

std::int64_t up_to(std::int64_t number, std::int64_t unit) {
  return (number + unit - 1) / unit * unit;
}

std::vector<const plan::Op*> collectives_in(const plan::Plan& plan, bool gathers) {
  std::vector<const plan::Op*> ops;
  for (const auto& op : plan.ops) {
    const auto* sent = std::get_if<collective::Collective>(&op.work);
    if (sent == nullptr || (sent->kind == CollectiveKind::kAllGather) != gathers) continue;
    ops.push_back(&op);
  }
  return ops;
}

std::vector<Sent> sent_in(const plan::Plan& plan, bool gathers) {
  std::vector<Sent> list;
  for (const auto* op : collectives_in(plan, gathers)) {
    const auto& one = std::get<collective::Collective>(op->work);
    list.push_back({one.kind, one.groups.size, one.groups.member_step, one.elements});
  }
  return list;
}

// Gradients that are summed inside groups of `shards` and then across.
void reduce(std::vector<Sent>& list, std::int64_t elements, int shards, int ranks) {
  list.push_back({CollectiveKind::kReduceScatter, shards, 1, elements});
  if (shards == ranks) return;
  list.push_back({CollectiveKind::kAllReduce, ranks / shards, shards, elements / shards});
}

// Every all-reduce waits for its reduce-scatter. With a stream of its own no reduce-scatter waits
// for the all-reduce ahead of it; without one, stream order has it wait.
void expect_streams(const plan::Plan& plan, bool own_stream) {
  const auto ops = collectives_in(plan, false);
  for (std::size_t i = 1; i < ops.size(); ++i) {
    const auto& one = std::get<collective::Collective>(ops[i]->work);
    const auto before = static_cast<plan::OpId>(ops[i - 1] - plan.ops.data());
    const bool named = std::count(ops[i]->after.begin(), ops[i]->after.end(), before) > 0;
    if (one.kind == CollectiveKind::kAllReduce) {
      EXPECT_EQ(ops[i]->stream != ops[i - 1]->stream, own_stream);
      EXPECT_EQ(named, own_stream);
    } else if (std::get<collective::Collective>(ops[i - 1]->work).kind ==
               CollectiveKind::kAllReduce) {
      EXPECT_EQ(ops[i]->stream != ops[i - 1]->stream, own_stream);
      EXPECT_FALSE(named);
    }
  }
}

// A model of layers over an embedding, in backward order, and the ranks it is trained on.
struct Trained {
  Workload workload;
  Cluster cluster;
  int layers = 0;
  int shards = 0;

  int ranks() const { return cluster.ranks(); }
};

int between(std::mt19937& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
}

int divisor_of(std::mt19937& random, int number) {
  std::vector<int> divisors;
  for (int d = 2; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors[random() % divisors.size()];
}

Trained random_case(std::mt19937& random) {
  Trained one;
  one.cluster = cluster_of(between(random, 1, 4), 1 << between(random, 1, 3));
  one.shards = divisor_of(random, one.ranks());
  one.layers = between(random, 2, 5);
  one.workload.forward = 0.001;
  for (int layer = one.layers - 1; layer >= 0; --layer) {
    for (int part = between(random, 1, 3); part > 0; --part) {
      one.workload.tensors.push_back(
          tensor_of("m." + std::to_string(layer) + ".p" + std::to_string(part),
                    {between(random, 1, 40), between(random, 1, 30)}));
    }
  }
  one.workload.tensors.push_back(tensor_of("embed.w", {between(random, 1, 90), 7}));
  for (auto& tensor : one.workload.tensors) tensor.backward = 0.001;
  return one;
}

// The padded elements of each unit, in the order in which its gradients are complete.
std::vector<std::int64_t> units_of(const Trained& one, int version) {
  std::vector<std::int64_t> units;
  std::string open;
  for (const Tensor& tensor : one.workload.tensors) {
    const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
    if (module != open) units.push_back(0);
    open = module;
    const std::int64_t rows = tensor.shape[0];
    units.back() += (version == 2 ? up_to(rows, one.shards) : rows) * tensor.shape[1];
  }
  if (version == 1) {
    for (auto& unit : units) unit = up_to(unit, one.shards);
  }
  return units;
}

// The elements of each module, in the order in which its gradients are complete.
std::vector<std::int64_t> modules_of(const Trained& one) {
  std::vector<std::int64_t> modules;
  std::string open;
  for (const Tensor& tensor : one.workload.tensors) {
    const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
    if (module != open) modules.push_back(0);
    open = module;
    modules.back() += tensor.elements;
  }
  return modules;
}

Strategy strategy_of(const Dialect& dialect, const Json& config, const Trained& one) {
  return test::Framework{dialect, one.cluster}.strategy_of(config.dump(), one.workload);
}

void expect_comes_back(const Dialect& dialect, const Strategy& strategy, const Trained& one) {
  const test::Framework framework{dialect, one.cluster};
  const Written written = framework.expect_comes_back(strategy, one.workload);
  const plan::Plan plan = framework.plan_of(strategy, one.workload);
  const plan::Plan again = framework.plan_of(written.strategy, one.workload);
  EXPECT_EQ(sent_in(again, false), sent_in(plan, false)) << written.config;
  EXPECT_EQ(sent_in(again, true), sent_in(plan, true)) << written.config;
  EXPECT_EQ(written.strategy.hierarchy, strategy.hierarchy) << written.config;
}

// FSDP: `again` is the group in which units are gathered for the backward pass, 0: they are not.
void expect_fsdp(const Json& config, const Trained& one, int version, int again) {
  SCOPED_TRACE(config.dump() + " on " + std::to_string(one.ranks()));
  const Strategy strategy = strategy_of(fsdp_dialect(), config, one);
  const plan::Plan plan = plan::make_plan(one.workload, one.cluster, strategy);
  const auto units = units_of(one, version);
  std::vector<Sent> reductions, gathers;
  for (const auto unit : units) reduce(reductions, unit, one.shards, one.ranks());
  // The root, whose gradients come last, is gathered again since torch 2.8 if a value is given.
  const bool given = !config.value("reshard_after_forward", Json()).is_null();
  const bool root = given && one.workload.framework_version != "2.7";
  if (again > 0 && root) gathers.push_back({CollectiveKind::kAllGather, again, 1, units.back()});
  for (std::size_t u = 0; again > 0 && u + 1 < units.size(); ++u) {
    gathers.push_back({CollectiveKind::kAllGather, again, 1, units[u]});
  }
  const std::size_t first = gathers.size();
  for (auto u = units.size(); u-- > 0;) {
    gathers.push_back({CollectiveKind::kAllGather, one.shards, 1, units[u]});
  }
  EXPECT_EQ(sent_in(plan, false), reductions);
  EXPECT_EQ(sent_in(plan, true), gathers);
  expect_streams(plan, true);
  // For the backward pass ahead of the unit's gradients, for the forward pass behind all of them.
  const auto ops = collectives_in(plan, true);
  const auto reduced = collectives_in(plan, false);
  const std::size_t legs = one.shards < one.ranks() ? 2 : 1;
  ASSERT_EQ(ops.size(), gathers.size());
  for (std::size_t g = 0; g < ops.size(); ++g) {
    if (g < first) {
      EXPECT_LT(ops[g], reduced[(root && g > 0 ? g - 1 : g) * legs]);
    } else {
      EXPECT_GT(ops[g], reduced.back());
    }
  }
  expect_comes_back(fsdp_dialect(), strategy, one);
}

TEST(TwoLevels, Fsdp1Hybrid) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Trained one = random_case(random);
    const bool zero2 = round % 2 == 0;
    Json config{{"version", 1},
                {"units", {"m.*"}},
                {"sharding_strategy", zero2 ? "_HYBRID_SHARD_ZERO2" : "HYBRID_SHARD"}};
    if (round % 3 == 0) {
      config["device_mesh"] = {one.ranks() / one.shards, one.shards};
    } else {
      one.shards = one.cluster.gpus_per_node;
    }
    expect_fsdp(config, one, 1, zero2 ? 0 : one.shards);
  }
}

TEST(TwoLevels, Fsdp2OnAMesh) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const Trained one = random_case(random);
    const bool kept = round % 3 == 0;
    expect_fsdp({{"units", {"m.*"}},
                 {"mesh", {one.ranks() / one.shards, one.shards}},
                 {"reshard_after_forward", kept ? Json(false) : Json()}},
                one, 2, kept ? 0 : one.shards);
  }
}

// -1 has the ranks that the other size leaves, on any number of nodes.
TEST(TwoLevels, MeshesFollowTheCluster) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const Trained one = random_case(random);
    const auto replicas = one.ranks() / one.shards;
    const auto read = [&](const char* key, const Json& mesh) {
      Json config{{"units", {"m.*"}}, {key, mesh}};
      if (std::string(key) == "device_mesh") {
        config.update(Json{{"version", 1}, {"sharding_strategy", "HYBRID_SHARD"}});
      }
      return strategy_of(fsdp_dialect(), config, one).hierarchy;
    };
    for (const char* key : {"mesh", "device_mesh"}) {
      EXPECT_EQ(read(key, {-1, one.shards}), read(key, {replicas, one.shards}));
      EXPECT_EQ(read(key, {replicas, -1}), read(key, {replicas, one.shards}));
    }
    EXPECT_EQ(read("mesh", Json::array({-1})), read("mesh", nullptr));
  }
}

TEST(TwoLevels, Fsdp2ReshardsToANumber) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Trained one = random_case(random);
    one.workload.framework_version = round % 4 < 2 ? "2.7" : "2.8";
    Json config{{"units", {"m.*"}}};
    if (round % 2 == 0) {
      config["mesh"] = {one.ranks() / one.shards, one.shards};
    } else {
      one.shards = one.ranks();
    }
    const int number = round % 5 == 0 ? 1 : divisor_of(random, one.shards);
    config["reshard_after_forward"] = number;
    expect_fsdp(config, one, 2, number == 1 ? 0 : number);
  }
}

TEST(TwoLevels, MegatronInstances) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const Trained one = random_case(random);
    const std::int64_t size = between(random, 1, 3000);
    const bool late = round % 2 == 0;
    const Json config{{"use-distributed-optimizer", true},
                      {"overlap-grad-reduce", true},
                      {"overlap-param-gather", late},
                      {"ddp-bucket-size", size},
                      {"num-distributed-optimizer-instances", one.ranks() / one.shards}};
    SCOPED_TRACE(config.dump() + " on " + std::to_string(one.ranks()));
    std::vector<std::int64_t> buckets;
    std::int64_t end = 0;
    for (const Tensor& tensor : one.workload.tensors) {
      end = up_to(end, 64) + tensor.elements;
      const bool last = &tensor == &one.workload.tensors.back();
      if (end < size && !last) continue;
      buckets.push_back(up_to(end, std::lcm(one.shards, 128)));
      end = 0;
    }
    std::vector<Sent> reductions, gathers;
    for (const auto bucket : buckets) reduce(reductions, bucket, one.shards, one.ranks());
    for (const auto bucket : buckets) {
      gathers.push_back({CollectiveKind::kAllGather, one.shards, 1, bucket});
    }
    // Behind the update bucket comes after bucket, for the next forward pass the first layers'.
    if (late) std::ranges::reverse(gathers);
    const Strategy strategy = strategy_of(megatron_dialect(), config, one);
    const plan::Plan plan = plan::make_plan(one.workload, one.cluster, strategy);
    EXPECT_EQ(sent_in(plan, false), reductions);
    EXPECT_EQ(sent_in(plan, true), gathers);
    expect_streams(plan, false);
    expect_comes_back(megatron_dialect(), strategy, one);
  }
}

// Stage 3 where each module's parameters are gathered by themselves, for each pass, and each
// gradient reduced by itself.
Json stage_3(const char* key, int ranks) {
  return {{"zero_optimization",
           {{"stage", 3},
            {"reduce_bucket_size", 1},
            {"stage3_prefetch_bucket_size", 0},
            {"stage3_param_persistence_threshold", 0},
            {"stage3_max_reuse_distance", 0},
            {key, ranks}}}};
}

TEST(TwoLevels, MicsSumsAcrossInTheLastMicroBatch) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    Trained one = random_case(random);
    one.workload.micro_batches = between(random, 1, 3);
    const Json config = stage_3("mics_shard_size", one.shards);
    SCOPED_TRACE(config.dump() + " on " + std::to_string(one.ranks()));
    const Strategy strategy = strategy_of(deepspeed_dialect(), config, one);
    const plan::Plan plan = plan::make_plan(one.workload, one.cluster, strategy);
    std::vector<Sent> reductions;
    for (std::int64_t micro = 1; micro <= one.workload.micro_batches; ++micro) {
      const bool last = micro == one.workload.micro_batches;
      for (const Tensor& tensor : one.workload.tensors) {
        // Shards are of one size where they are summed across.
        const bool even = one.shards < one.ranks();
        reduce(reductions, even ? up_to(tensor.elements, one.shards) : tensor.elements, one.shards,
               last ? one.ranks() : one.shards);
      }
    }
    EXPECT_EQ(sent_in(plan, false), reductions);
    for (const Sent& gather : sent_in(plan, true)) EXPECT_EQ(gather.size, one.shards);
    expect_streams(plan, false);
    expect_comes_back(deepspeed_dialect(), strategy, one);
  }
}

TEST(TwoLevels, HpzGathersForTheBackwardPassInItsOwnGroup) {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    Trained one = random_case(random);
    const int secondary = one.shards;
    const Json config = stage_3("zero_hpz_partition_size", secondary);
    SCOPED_TRACE(config.dump() + " on " + std::to_string(one.ranks()));
    const Strategy strategy = strategy_of(deepspeed_dialect(), config, one);
    const plan::Plan plan = plan::make_plan(one.workload, one.cluster, strategy);
    std::vector<Sent> reductions, gathers;
    const auto& tensors = one.workload.tensors;
    for (const Tensor& tensor : tensors) {
      reduce(reductions, tensor.elements, one.ranks(), one.ranks());
    }
    auto modules = modules_of(one);
    std::ranges::reverse(modules);
    for (const std::int64_t elements : modules) {
      gathers.push_back({CollectiveKind::kAllGather, one.ranks(), 1, elements});
    }
    std::ranges::reverse(modules);
    for (const std::int64_t elements : modules) {
      const bool even = secondary < one.ranks();
      gathers.push_back(
          {CollectiveKind::kAllGather, secondary, 1, even ? up_to(elements, secondary) : elements});
    }
    EXPECT_EQ(sent_in(plan, false), reductions);
    EXPECT_EQ(sent_in(plan, true), gathers);
    expect_comes_back(deepspeed_dialect(), strategy, one);
  }
}

// The step's first forward pass gathers among all ranks, and leaves a copy for the others.
TEST(TwoLevels, HpzInEveryMicroBatch) {
  Trained one;
  one.cluster = cluster_of(2, 4);
  one.workload.micro_batches = 3;
  for (const char* name : {"m.2.w", "m.1.w", "m.0.w"}) {
    one.workload.tensors.push_back(tensor_of(name, {16}));
  }
  const Strategy strategy =
      strategy_of(deepspeed_dialect(), stage_3("zero_hpz_partition_size", 4), one);
  const auto gathers = sent_in(plan::make_plan(one.workload, one.cluster, strategy), true);
  const auto among = [&](int ranks) {
    return std::count_if(gathers.begin(), gathers.end(),
                         [&](const Sent& sent) { return sent.size == ranks; });
  };
  EXPECT_EQ(among(4), 5 * 3);
  EXPECT_EQ(among(8), 3);
}

// Two nodes of four: 10 + 6 elements in the layer, 5 in the embedding.
Trained by_hand() {
  Trained one;
  one.cluster = cluster_of(2, 4);
  one.workload.tensors = {tensor_of("m.0.a", {5, 2}), tensor_of("m.0.b", {6}),
                          tensor_of("embed.w", {5})};
  for (auto& tensor : one.workload.tensors) tensor.backward = 0.001;
  return one;
}

std::vector<Sent> sent_by_hand(const Dialect& dialect, const std::string& config, bool gathers) {
  const Trained one = by_hand();
  return sent_in(test::Framework{dialect, one.cluster}.plan_of(config, one.workload), gathers);
}

TEST(TwoLevels, MatchesAHandComputedExample) {
  constexpr auto kScatter = CollectiveKind::kReduceScatter;
  constexpr auto kSum = CollectiveKind::kAllReduce;
  constexpr auto kGather = CollectiveKind::kAllGather;
  using List = std::vector<Sent>;
  const std::string hybrid =
      R"({"version": 1, "units": ["m.*"], "sharding_strategy": "HYBRID_SHARD"})";
  EXPECT_EQ(sent_by_hand(fsdp_dialect(), hybrid, false),
            (List{{kScatter, 4, 1, 16}, {kSum, 2, 4, 4}, {kScatter, 4, 1, 8}, {kSum, 2, 4, 2}}));
  EXPECT_EQ(sent_by_hand(fsdp_dialect(), hybrid, true),
            (List{{kGather, 4, 1, 16}, {kGather, 4, 1, 8}, {kGather, 4, 1, 16}}));
  // Rows of 5 and 6 become 8: 8 * 2 + 8.
  const std::string mesh = R"({"units": ["m.*"], "mesh": [2, 4], "reshard_after_forward": 2})";
  EXPECT_EQ(sent_by_hand(fsdp_dialect(), mesh, false),
            (List{{kScatter, 4, 1, 24}, {kSum, 2, 4, 6}, {kScatter, 4, 1, 8}, {kSum, 2, 4, 2}}));
  EXPECT_EQ(
      sent_by_hand(fsdp_dialect(), mesh, true),
      (List{{kGather, 2, 1, 8}, {kGather, 2, 1, 24}, {kGather, 4, 1, 8}, {kGather, 4, 1, 24}}));
  const std::string instances =
      R"({"use-distributed-optimizer": true, "num-distributed-optimizer-instances": 4})";
  // Parameters begin at 0, 64 and 128; the bucket ends at a multiple of 128.
  EXPECT_EQ(sent_by_hand(megatron_dialect(), instances, false),
            (List{{kScatter, 2, 1, 256}, {kSum, 4, 2, 128}}));
  EXPECT_EQ(sent_by_hand(megatron_dialect(), instances, true), (List{{kGather, 2, 1, 256}}));
  EXPECT_EQ(sent_by_hand(deepspeed_dialect(), stage_3("mics_shard_size", 4).dump(), false),
            (List{{kScatter, 4, 1, 12},
                  {kSum, 2, 4, 3},
                  {kScatter, 4, 1, 8},
                  {kSum, 2, 4, 2},
                  {kScatter, 4, 1, 8},
                  {kSum, 2, 4, 2}}));
  EXPECT_EQ(
      sent_by_hand(deepspeed_dialect(), stage_3("zero_hpz_partition_size", 4).dump(), true),
      (List{{kGather, 8, 1, 5}, {kGather, 8, 1, 16}, {kGather, 4, 1, 16}, {kGather, 4, 1, 8}}));
}

TEST(TwoLevels, SaysHowManyReplicasThereAre) {
  const auto says = [](const Dialect& dialect, const std::string& config, const char* words) {
    const Trained one = by_hand();
    const test::Framework framework{dialect, one.cluster};
    return test::has_note(framework.read(config, one.workload), words);
  };
  EXPECT_TRUE(says(fsdp_dialect(), R"({"mesh": [2, 4]})",
                   "groups of 4 ranks, and the 2 groups are replicas"));
  EXPECT_FALSE(says(fsdp_dialect(), R"({"mesh": [8]})", "replicas"));
  EXPECT_TRUE(says(fsdp_dialect(), R"({"reshard_after_forward": 2})", "resharded to groups of 2"));
  EXPECT_TRUE(says(megatron_dialect(),
                   R"({"use-distributed-optimizer": true,
                       "num-distributed-optimizer-instances": 4})",
                   "among 2 ranks; there are 4 replicas"));
  EXPECT_TRUE(says(deepspeed_dialect(), stage_3("mics_shard_size", 4).dump(),
                   "groups of 4 ranks; there are 2 replicas"));
  EXPECT_TRUE(says(deepspeed_dialect(), stage_3("zero_hpz_partition_size", 4).dump(),
                   "among 4 ranks, which keep a second copy"));
}

TEST(TwoLevels, SaysWhatItRefuses) {
  const Trained one = by_hand();
  const test::Framework fsdp{fsdp_dialect(), one.cluster};
  fsdp.expect_refusals(
      one.workload,
      {{R"({"mesh": [3, 4]})", "has 12 ranks, the cluster has 8; -1 in place of a size"},
       {R"({"mesh": [-1, 3]})", "groups of 3 ranks, which do not divide"},
       {R"({"mesh": [-1, -1]})", "twice"},
       {R"({"mesh": [-2, 4]})", "nor -1 for all others"},
       {R"({"mesh": [2, 2, 2]})", "1D or 2D mesh"},
       {R"({"mesh": [8, 1]})", "shards nothing"},
       {R"({"device_mesh": [2, 4]})", "FSDP2 has mesh"},
       {R"({"sharding_strategy": "HYBRID_SHARD"})", "\"version\": 1"},
       {R"({"version": 1, "device_mesh": [2, 4]})", "needs HYBRID_SHARD"},
       {R"({"mesh": [2, 4], "reshard_after_forward": 8})", "a factor of 4"},
       {R"({"reshard_after_forward": 3})", "a factor of 8"},
       {R"({"reshard_after_forward": 0})", "a factor of 8"},
       {R"({"reshard_after_forward": 2.5})", "a factor of 8"}});
  EXPECT_EQ(fsdp.refusal(R"({"mesh": [8]})", one.workload), "");
  test::Framework{megatron_dialect(), one.cluster}.expect_refusals(
      one.workload,
      {{R"({"num-distributed-optimizer-instances": 2})", "use-distributed-optimizer"},
       {R"({"use-distributed-optimizer": true, "num-distributed-optimizer-instances": 3})",
        "is not divisible by 3"}});
  test::Framework{deepspeed_dialect(), one.cluster}.expect_refusals(
      one.workload, {{stage_3("mics_shard_size", 3).dump(), "3 does not divide the 8 ranks"},
                     {stage_3("zero_hpz_partition_size", 3).dump(), "3 does not divide"}});
}

}  // namespace
}  // namespace syncline::dialect
