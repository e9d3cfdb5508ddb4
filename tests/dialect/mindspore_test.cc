// MindSpore's fusion on ResNet-50 in every mode, the documents' example, and each error it raises.
#include "formats/dialect/dialects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/plan.h"
#include "core/plan/fusion.h"
#include "formats/dialect/write.h"
#include "tests/support/readings.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"

namespace syncline::dialect {
namespace {

using test::cluster_of;
using test::count_of;
using test::Groups;
using test::has_note;
using test::shipped_workload;
using test::sparse_tensor_of;
using test::tensor_of;

// (tensors, MiB to three places), first layer first.
using Fused = std::vector<std::pair<int, double>>;

const test::Framework kMindSpore{mindspore_dialect(), cluster_of(2, 4)};

const Workload& resnet50() {
  static const Workload workload = shipped_workload("resnet50_v100.json");
  return workload;
}

// Workload indices of the groups as a plan gets them, latest gradient first.
Groups fused_groups(const Reading& reading, const Workload& workload) {
  auto groups = plan::fuse(test::pointers_to(workload.tensors), test::indices_of(workload.tensors),
                           reading.strategy.fusion);
  std::sort(groups.begin(), groups.end(),
            [](const auto& a, const auto& b) { return a.back() > b.back(); });
  return groups;
}

Fused fused_of(const Reading& reading, const Workload& workload) {
  Fused sizes;
  for (const auto& group : fused_groups(reading, workload)) {
    Bytes bytes = 0;
    for (const int index : group)
      bytes += workload.tensors[static_cast<std::size_t>(index)].bytes();
    const double mib = static_cast<double>(bytes) / static_cast<double>(kMiB);
    sizes.emplace_back(static_cast<int>(group.size()), std::round(mib * 1000) / 1000);
  }
  return sizes;
}

std::vector<int> counts_of(const Reading& reading, const Workload& workload) {
  std::vector<int> counts;
  for (const auto& [count, mib] : fused_of(reading, workload)) counts.push_back(count);
  return counts;
}

std::vector<int> counts(const std::string& config, const Workload& workload,
                        bool as_documents = false) {
  return counts_of(kMindSpore.read(config, workload, as_documents), workload);
}

std::string sized(const std::string& mode, int megabytes) {
  return R"({"parallel_mode": ")" + mode +
         R"(", "comm_fusion": {"allreduce": {"mode": "size", "config": )" +
         std::to_string(megabytes) + "}}}";
}

std::string indexed(const std::string& mode, const std::string& list) {
  return R"({"parallel_mode": ")" + mode +
         R"(", "comm_fusion": {"allreduce": {"mode": "index", "config": )" + list + "}}}";
}

// The network of the documents: a head and three layers of two dense parts each.
Workload documented_net() {
  Workload workload;
  const auto dense = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    workload.tensors.push_back(tensor_of(name + ".weight", {out, in}));
    workload.tensors.push_back(tensor_of(name + ".bias", {out}));
  };
  dense("head", 784, 10);
  for (const char* layer : {"layer1", "layer2", "layer3"}) {
    dense(std::string(layer) + ".input_mapping", 10, 32);
    dense(std::string(layer) + ".output_mapping", 32, 10);
  }
  std::reverse(workload.tensors.begin(), workload.tensors.end());
  return workload;
}

// So many FP32 parameters of these sizes, named p0, p1, ... in parameter order.
Workload parameters_of(const std::vector<std::int64_t>& elements) {
  Workload workload;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    workload.tensors.push_back(tensor_of("p" + std::to_string(i), {elements[i]}));
  }
  std::reverse(workload.tensors.begin(), workload.tensors.end());
  return workload;
}

TEST(MindSpore, SemiAutoCountsElementsAndNotTheOpeningGradient) {
  for (const char* mode : {"semi_auto_parallel", "auto_parallel"}) {
    const auto of = [&](int mb) {
      return fused_of(kMindSpore.read(sized(mode, mb), resnet50()), resnet50());
    };
    EXPECT_EQ(of(64), (Fused{{144, 59.633}, {17, 37.859}}));
    EXPECT_EQ(of(32), (Fused{{126, 31.582}, {18, 28.051}, {17, 37.859}}));
    EXPECT_EQ(of(16).size(), 6u);
    EXPECT_EQ(of(8).size(), 11u);
  }
}

TEST(MindSpore, SemiAutoByHand) {
  // Threshold 262144 elements: 262144 opens the first group and uses it up; 5 opens the second,
  // not counted; 262143 is just below; 1 is not below 1 and opens the third.
  const Workload workload = parameters_of({262144, 5, 262143, 1, 7});
  EXPECT_EQ(counts(sized("semi_auto_parallel", 1), workload), (std::vector<int>{1, 2, 2}));
}

TEST(MindSpore, SemiAutoThresholdKnowsNoBytes) {
  Workload halves = resnet50();
  for (auto& tensor : halves.tensors) tensor.dtype = DType::kFp16;
  EXPECT_EQ(fused_of(kMindSpore.read(sized("semi_auto_parallel", 64), halves), halves),
            (Fused{{144, 29.817}, {17, 18.93}}));
}

TEST(MindSpore, AutoModeAndTheDefaultAreSixtyFour) {
  const auto sixty_four =
      fused_groups(kMindSpore.read(sized("semi_auto_parallel", 64), resnet50()), resnet50());
  for (const char* config :
       {R"({"parallel_mode": "semi_auto_parallel"})",
        R"({"parallel_mode": "semi_auto_parallel", "comm_fusion": {"openstate": true}})",
        R"({"parallel_mode": "semi_auto_parallel",
            "comm_fusion": {"allreduce": {"mode": "auto", "config": null}}})"}) {
    EXPECT_EQ(fused_groups(kMindSpore.read(config, resnet50()), resnet50()), sixty_four) << config;
  }
  const Reading ignored = kMindSpore.read(R"({"parallel_mode": "semi_auto_parallel",
      "comm_fusion": {"allreduce": {"mode": "auto", "config": 8}}})",
                                          resnet50());
  EXPECT_EQ(fused_groups(ignored, resnet50()), sixty_four);
  EXPECT_TRUE(has_note(ignored, "mode auto does not look at its config"));
}

TEST(MindSpore, DataParallelCountsBytesAndOvershoots) {
  const auto of = [](int mb) {
    return fused_of(kMindSpore.read(sized("data_parallel", mb), resnet50()), resnet50());
  };
  // The last layer first, as all-reduces that nobody has numbered follow in the graph.
  EXPECT_EQ(
      of(64),
      (Fused{{84, 11.281}, {33, 16.039}, {18, 16.277}, {9, 16.035}, {9, 17.023}, {8, 20.836}}));
  EXPECT_EQ(of(32).size(), 11u);
  EXPECT_EQ(of(16).size(), 19u);
  EXPECT_EQ(of(0).size(), 161u);  // the pass returns: no fusion
  // 65536 FP32 are exactly the threshold of 1 MB and do not go over it.
  const Workload workload = parameters_of({65536, 1, 65537, 65536});
  EXPECT_EQ(counts(sized("data_parallel", 1), workload), (std::vector<int>{2, 2}));
}

TEST(MindSpore, DataParallelDefaultIsOneAllReduce) {
  for (const char* config :
       {R"({"parallel_mode": "data_parallel"})", "{}", R"({"parallel_mode": "hybrid_parallel"})",
        R"({"parallel_mode": "data_parallel", "comm_fusion": {"openstate": false}})"}) {
    const Reading reading = kMindSpore.read(config, resnet50());
    EXPECT_EQ(fused_of(reading, resnet50()), (Fused{{161, 97.492}})) << config;
    EXPECT_TRUE(has_note(reading, "all 161 gradients go in one AllReduce")) << config;
  }
  EXPECT_TRUE(has_note(kMindSpore.read("{}", resnet50()), "parallel_mode is not given"));
  // Auto mode sets 64 and is not the default here.
  EXPECT_EQ(counts(R"({"parallel_mode": "data_parallel",
                "comm_fusion": {"allreduce": {"mode": "auto", "config": null}}})",
                   resnet50())
                .size(),
            6u);
}

TEST(MindSpore, IndexEndsAreInclusive) {
  const auto of = [](const std::string& list) {
    return fused_of(kMindSpore.read(indexed("data_parallel", list), resnet50()), resnet50());
  };
  EXPECT_EQ(of("[85, 160]"), (Fused{{86, 12.282}, {75, 85.21}}));
  EXPECT_EQ(of("[0]")[0].first, 1);
  const Reading documented = kMindSpore.read(indexed("data_parallel", "[20, 35]"), resnet50());
  EXPECT_EQ(counts_of(documented, resnet50()), (std::vector<int>{21, 15, 125}));
  EXPECT_EQ(counts(indexed("hybrid_parallel", "[20, 35]"), resnet50()),
            (std::vector<int>{21, 15, 125}));
  const Reading read_so = kMindSpore.read(indexed("data_parallel", "[20, 35]"), resnet50(), true);
  EXPECT_EQ(counts_of(read_so, resnet50()), (std::vector<int>{20, 15, 126}));
}

TEST(MindSpore, FusedGradientsAreNoted) {
  struct Row {
    const char* what;
    std::string config;
    const Workload& workload;
    std::vector<int> counts;  // of the gradients in each group, first layer first
    std::vector<std::string> notes = {};
    bool as_documents = false;
  };
  const Workload net = documented_net();
  const std::string semi = R"({"parallel_mode": "semi_auto_parallel", )";
  const std::string data = R"({"parallel_mode": "data_parallel", )";
  const std::string ids =
      R"("set_comm_fusion": {"head": 0, "layer1": 1, "layer2": 2, "layer3": 3}})";
  const std::vector<Row> rows{
      {"hybrid parallel knows no size",
       sized("hybrid_parallel", 16),
       resnet50(),
       {161},
       {"no effect in hybrid_parallel"}},
      {"an index past the end is ignored",
       indexed("data_parallel", "[85, 161, 5000000000]"),
       resnet50(),
       {86, 75},
       {"index 161 is past the end of 161 gradients", "index 4294967295 is past the end"}},
      // The front end numbers by size first; the list is registered for id 1.
      {"in semi auto an index splits the first group alone",
       indexed("semi_auto_parallel", "[85, 160]"),
       resnet50(),
       {58, 86, 17},
       {"splits fusion id 1 alone, 144 gradients", "index 160 is past the end of 144 gradients"}},
      {"the documents' cells need openstate False",
       semi + ids,
       net,
       {14},
       {"overwritten by the size rule"}},
      {"with it", semi + R"("comm_fusion": {"openstate": false}, )" + ids, net, {1, 1, 4, 4, 4}},
      {"the documents promise the same without", semi + ids, net, {1, 1, 4, 4, 4}, {}, true},
      {"data parallel: the ids hold", data + ids, net, {1, 1, 4, 4, 4}},
      // The reducer compares ids with one another: all the same is none at all.
      {"ids that do not differ",
       data + R"("set_comm_fusion": {"": 0}})",
       net,
       {14},
       {"ids that do not differ have no effect"}},
      {"differing ids go before the index list",
       data + R"("set_comm_fusion": {"layer3": 2},
          "comm_fusion": {"allreduce": {"mode": "index", "config": [3]}}})",
       net,
       {4, 6, 4},
       {"goes before the index list"}},
      {"openstate False hides what stands behind it",
       data + R"("comm_fusion": {"openstate": false, "allreduce": {"mode": "size", "config": 0}}})",
       net,
       {14},
       {"'allreduce' comes after openstate False"}},
      {"also what is wrong",
       data + R"("comm_fusion": {"openstate": false, "allgather": 3}})",
       net,
       {14}},
      {"not what stands before it",
       data + R"("comm_fusion": {"allreduce": {"mode": "size", "config": 0}, "openstate": false}})",
       net, std::vector<int>(14, 1)},
      {"kinds of sharding are judged",
       semi + R"("comm_fusion": {"allgather": {"mode": "size", "config": 32},
                                 "reducescatter": {"mode": "auto", "config": null}}})",
       resnet50(),
       {144, 17},
       {"enable_parallel_optimizer"}}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const Reading reading = kMindSpore.read(row.config, row.workload, row.as_documents);
    EXPECT_EQ(counts_of(reading, row.workload), row.counts);
    for (const auto& note : row.notes) EXPECT_TRUE(has_note(reading, note)) << note;
  }
}

TEST(MindSpore, OpenstateFalseLeavesTheDefaultIdTogether) {
  const Workload net = documented_net();
  const Reading reading = kMindSpore.read(
      R"({"parallel_mode": "semi_auto_parallel", "comm_fusion": {"openstate": false},
          "set_comm_fusion": {"layer2": 5, "layer2.input_mapping.bias": 0}})",
      net);
  EXPECT_EQ(fused_groups(reading, net),
            (Groups{{0, 1, 2, 3, 8, 9, 10, 11, 12, 13}, {4, 5, 7}, {6}}));
  EXPECT_TRUE(has_note(reading, "have id 1 and still travel together"));
}

TEST(MindSpore, LaterCallsOverwriteAndPrefixesEndAtADot) {
  Workload workload = parameters_of({1, 1, 1});
  workload.tensors[2].name = "layer1.weight";
  workload.tensors[1].name = "layer1.bias";
  workload.tensors[0].name = "layer10.weight";
  const std::string closed =
      R"({"parallel_mode": "semi_auto_parallel", "comm_fusion": {"openstate": false}, )";
  const auto groups = [&](const std::string& ids) {
    return fused_groups(kMindSpore.read(closed + R"("set_comm_fusion": )" + ids + "}", workload),
                        workload);
  };
  EXPECT_EQ(groups(R"({"layer1": 2})"), (Groups{{1, 2}, {0}}));
  EXPECT_EQ(groups(R"({"layer1.bias": 3, "layer1": 2})"), (Groups{{1, 2}, {0}}));
  EXPECT_EQ(groups(R"({"layer1": 2, "layer1.bias": 3})"), (Groups{{2}, {1}, {0}}));
  EXPECT_EQ(groups(R"({"": 0})"), (Groups{{2}, {1}, {0}}));
}

TEST(MindSpore, SizeSplitsEachIdOnItsOwn) {
  const Workload workload = parameters_of({65537, 1, 65537, 1, 1});
  const Reading reading = kMindSpore.read(
      R"({"parallel_mode": "data_parallel", "set_comm_fusion": {"p3": 2, "p4": 2},
          "comm_fusion": {"allreduce": {"mode": "size", "config": 1}}})",
      workload);
  EXPECT_EQ(fused_groups(reading, workload), (Groups{{4}, {2, 3}, {0, 1}}));
}

TEST(MindSpore, TypesAreKeysUnlessTheyAreCast) {
  Workload workload = parameters_of({1, 1, 1, 1});
  workload.tensors[1].dtype = workload.tensors[3].dtype = DType::kFp16;
  EXPECT_EQ(fused_groups(kMindSpore.read(R"({"parallel_mode": "semi_auto_parallel"})", workload),
                         workload),
            (Groups{{1, 3}, {0, 2}}));
  const Reading data = kMindSpore.read(R"({"parallel_mode": "data_parallel"})", workload);
  EXPECT_EQ(fused_groups(data, workload), (Groups{{0, 1, 2, 3}}));
  EXPECT_TRUE(has_note(data, "cast to FP32"));
  // 100000 halves are 400 kB once they are cast.
  Workload halves = parameters_of({100000, 1});
  for (auto& tensor : halves.tensors) tensor.dtype = DType::kFp16;
  EXPECT_EQ(counts(sized("data_parallel", 1), halves), (std::vector<int>{2}));
}

TEST(MindSpore, SparseGradientsAreInNoGroup) {
  Workload workload = parameters_of({1, 1, 1});
  workload.tensors.insert(workload.tensors.begin() + 1, sparse_tensor_of("embedding", {100, 4}, 3));
  for (const char* mode : {"semi_auto_parallel", "data_parallel"}) {
    const Reading reading = kMindSpore.read(sized(mode, 64), workload);
    EXPECT_EQ(reading.strategy.fusion.groups, (Groups{{0, 2, 3}})) << mode;
  }
}

TEST(MindSpore, HalvesAreCastToSinglePrecision) {
  Workload workload = parameters_of({1000, 1000});
  for (auto& tensor : workload.tensors) tensor.dtype = DType::kFp16;
  Cluster cluster = cluster_of(4, 1);
  cluster.device.memory = 1e9;
  const Reading data = kMindSpore.read(R"({"parallel_mode": "data_parallel"})", workload);
  const plan::Plan plan = plan::make_plan(workload, cluster, data.strategy);
  ASSERT_EQ(plan.buckets.size(), 1u);
  EXPECT_EQ(plan.buckets[0].bytes, 8000);
  EXPECT_EQ(plan.buckets[0].dtype, DType::kFp32);
  // There and back: 4000 bytes of halves, 8000 of singles, each time.
  std::vector<double> copies;
  for (const auto& op : plan.ops) {
    const auto reason = plan::reason_of(op.work);
    const bool copied =
        reason == plan::Busy::Reason::kCopyIn || reason == plan::Busy::Reason::kCopyOut;
    if (copied) copies.push_back(plan::seconds_of(op.work));
  }
  EXPECT_EQ(copies, (std::vector<double>{12e-6, 12e-6}));
  const Reading semi = kMindSpore.read(R"({"parallel_mode": "semi_auto_parallel"})", workload);
  EXPECT_EQ(plan::make_plan(workload, cluster, semi.strategy).buckets[0].bytes, 4000);
}

// Four parameters of 1 MiB and a small one: the parallel optimizer scatters and gathers the large
// ones, each kind by its own threshold, and all-reduces the small one.
TEST(MindSpore, AParallelOptimizerShardsLargeParameters) {
  const Workload workload = parameters_of({262144, 262144, 262144, 262144, 8});
  const auto plan_of = [&](const std::string& fusion) {
    const Reading reading = kMindSpore.read(
        R"({"parallel_mode": "semi_auto_parallel", "enable_parallel_optimizer": true, "comm_fusion": {)" +
            fusion + "}}",
        workload);
    EXPECT_TRUE(has_note(reading, "shards 4 parameters"));
    EXPECT_EQ(reading.strategy.exchange, Strategy::Exchange::kSharded);
    return kMindSpore.plan_of(reading.strategy, workload);
  };
  using collective::CollectiveKind;
  const plan::Plan fused = plan_of("");
  EXPECT_EQ(count_of(fused, CollectiveKind::kReduceScatter), 1u);
  EXPECT_EQ(count_of(fused, CollectiveKind::kAllGather), 1u);
  EXPECT_EQ(count_of(fused, CollectiveKind::kAllReduce), 1u);
  // 1 MB is 2^18 elements: each of the four reaches it.
  const plan::Plan apart = plan_of(R"("allgather": {"mode": "size", "config": 1})");
  EXPECT_EQ(count_of(apart, CollectiveKind::kReduceScatter), 1u);
  EXPECT_EQ(count_of(apart, CollectiveKind::kAllGather), 4u);
  EXPECT_EQ(count_of(plan_of(R"("reducescatter": {"mode": "size", "config": 1})"),
                     CollectiveKind::kReduceScatter),
            4u);
}

TEST(MindSpore, AParallelOptimizerComesBack) {
  const Strategy strategy =
      kMindSpore
          .read(R"({"parallel_mode": "semi_auto_parallel", "enable_parallel_optimizer": true,
        "comm_fusion": {"allgather": {"mode": "size", "config": 16},
                        "reducescatter": {"mode": "size", "config": 8}}})",
                resnet50())
          .strategy;
  kMindSpore.expect_comes_back(strategy, resnet50());
}

TEST(MindSpore, DocumentedBufferIsNeverExceeded) {
  const Reading reading = kMindSpore.read(sized("semi_auto_parallel", 16), resnet50(), true);
  double sum = 0;
  int tensors = 0;
  for (const auto& [count, mib] : fused_of(reading, resnet50())) {
    EXPECT_LE(mib, 16);
    sum += mib;
    tensors += count;
  }
  EXPECT_EQ(tensors, 161);
  EXPECT_NEAR(sum, 97.492, 0.01);
  const Reading off = kMindSpore.read(
      R"({"parallel_mode": "semi_auto_parallel", "comm_fusion": {"openstate": false}})", resnet50(),
      true);
  EXPECT_EQ(counts_of(off, resnet50()).size(), 161u);
}

TEST(MindSpore, GroupsBecomeBucketsInReadyOrder) {
  const Reading reading = kMindSpore.read(sized("data_parallel", 64), resnet50());
  std::vector<std::size_t> counts;
  for (const auto& bucket : kMindSpore.plan_of(reading.strategy, resnet50()).buckets)
    counts.push_back(bucket.tensors.size());
  EXPECT_EQ(counts, (std::vector<std::size_t>{8, 9, 9, 18, 33, 84}));
}

TEST(MindSpore, EmptyWorkload) {
  const Workload workload;
  for (const char* mode : {"semi_auto_parallel", "data_parallel"}) {
    EXPECT_TRUE(kMindSpore.read(sized(mode, 64), workload).strategy.fusion.groups.empty());
    EXPECT_TRUE(kMindSpore.read(indexed(mode, "[1]"), workload).strategy.fusion.groups.empty());
  }
}

TEST(MindSpore, RaisesWhatMindSporeRaises) {
  struct Mistake {
    std::string config, place, what;
  };
  const auto all_reduce = [](const std::string& value) {
    return R"({"comm_fusion": {"allreduce": )" + value + "}}";
  };
  const auto size = [&](const std::string& value) {
    return all_reduce(R"({"mode": "size", "config": )" + value + "}");
  };
  const auto index = [&](const std::string& value) {
    return all_reduce(R"({"mode": "index", "config": )" + value + "}");
  };
  const std::string kind = "c.comm_fusion.allreduce";
  const std::string must =
      "comm fusion type must be openstate,allreduce, allgather or reducescatter, but got ";
  const std::vector<Mistake> mistakes{
      {R"({"comm_fusion": 64})", "c.comm_fusion", "TypeError: comm_fusion must be dict, found 64"},
      {R"({"comm_fusion": {"all_reduce": {}}})", "c.comm_fusion.all_reduce",
       "KeyError: " + must + "all_reduce (did you mean 'allreduce'?)"},
      {R"({"comm_fusion": {"openstate": false, "bcast": {}}})", "c.comm_fusion.bcast",
       "KeyError: " + must},
      {R"({"comm_fusion": {"openstate": 1}})", "c.comm_fusion.openstate",
       "TypeError: For 'comm_fusion', the 'openstate' must be bool, found 1"},
      {all_reduce("64"), kind,
       "TypeError: For 'comm_fusion', the 'allreduce' config must be dict, found 64"},
      {all_reduce(R"({"config": 1})"), kind + ".mode",
       "KeyError: For 'comm_fusion', the key 'mode' should be contained."},
      {all_reduce(R"({"mode": "auto"})"), kind + ".config",
       "KeyError: For 'comm_fusion', the key 'config' should be contained."},
      {all_reduce(R"({"mode": "sizes", "config": 1})"), kind + ".mode",
       "KeyError: fusion method mode must be auto, index or size, but got 'sizes' (did you mean "
       "'size'?)"},
      {all_reduce(R"({"mode": 3, "config": 1})"), kind + ".mode", "but got 3"},
      {all_reduce(R"({"mode": "size", "config": 1, "confg": 2})"), kind + ".confg",
       "unknown key (did you mean 'config'?)"},
      {size("-1"), kind + ".config",
       "ValueError: fusion threshold must be larger than 0, but got -1"},
      {size("64.0"), kind + ".config", "TypeError: the size in MB must be int, found 64.0"},
      {size("null"), kind + ".config", "TypeError"},
      {size("true"), kind + ".config", "TypeError"},
      {size("\"64\""), kind + ".config", "TypeError: the size in MB must be int, found '64'"},
      {size("18446744073709551615"), kind + ".config", "expected less than"},
      {index("[]"), kind + ".config", "ValueError: the argument 'indices' can not be empty"},
      {index("null"), kind + ".config", "ValueError: the argument 'indices' can not be empty"},
      {index("20"), kind + ".config", "TypeError: the argument 'indices' must be list, found 20"},
      {index("[1, true]"), kind + ".config[1]",
       "TypeError: the argument 'index' must be int, found true"},
      {index("[1.5]"), kind + ".config[0]",
       "TypeError: the argument 'index' must be int, found 1.5"},
      {index("[-1]"), kind + ".config[0]", "TypeError: an index must be a uint32, found -1"},
      {index("[3, 3]"), kind + ".config", "ValueError: The indices has duplicate elements"},
      {index("[35, 20]"), kind + ".config", "must be sorted in ascending order"},
      {R"({"comm_fusion": {"allgather": {"mode": "index", "config": [1]}}})",
       "c.comm_fusion.allgather.mode",
       "KeyError: fusion method mode must be auto or size, but got 'index'"},
      {R"({"comm_fusion": {"reducescatter": {"mode": "size", "config": -3}}})",
       "c.comm_fusion.reducescatter.config", "ValueError"},
      {R"({"comm_fusion": {"allgather": []}})", "c.comm_fusion.allgather", "TypeError"},
      {R"({"parallel_mode": "semi_auto"})", "c.parallel_mode",
       "ValueError: The context configuration parameter 'parallel_mode' only support"},
      {R"({"parallel_mode": "data_paralel"})", "c.parallel_mode", "did you mean 'data_parallel'?"},
      {R"({"parallel_mode": "stand_alone"})", "c.parallel_mode", "sums no gradients"},
      {R"({"parallel_mode": 1})", "c.parallel_mode", "TypeError"},
      {sized("semi_auto_parallel", 0), kind + ".config",
       "must be larger than 0 in semi_auto_parallel"},
      {R"({"set_comm_fusion": {"layer1": -1}})", "c.set_comm_fusion.layer1",
       "ValueError: the fusion id must be a non-negative int, found -1"},
      {R"({"set_comm_fusion": {"layer1": 1.0}})", "c.set_comm_fusion.layer1",
       "TypeError: the fusion id must be int, found 1.0"},
      {R"({"set_comm_fusion": {"layer1": true}})", "c.set_comm_fusion.layer1", "TypeError"},
      {R"({"set_comm_fusion": {"layer9": 1}})", "c.set_comm_fusion.layer9", "did you mean 'layer"},
      {R"({"set_comm_fusion": 3})", "c.set_comm_fusion", "found 3, expected an object"},
      {R"({"comm_fuson": {}})", "c.comm_fuson", "unknown key (did you mean 'comm_fusion'?)"},
  };
  for (const auto& mistake : mistakes) {
    const std::string message = kMindSpore.refusal(mistake.config, resnet50());
    EXPECT_TRUE(message.starts_with("x.json: " + mistake.place + ": ")) << message << "\n"
                                                                        << mistake.config;
    EXPECT_TRUE(test::contains(message, mistake.what)) << message << "\n" << mistake.what;
  }
}

}  // namespace
}  // namespace syncline::dialect
