// One mistake at a time, everywhere: each message names the file, the path, what was found and what
// is allowed.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/json/reader.h"
#include "tests/support/full_scenario.h"
#include "tests/support/text.h"

namespace syncline::input {
namespace {

using Pointer = Json::json_pointer;
using test::contains;
using test::error_of;
using test::full_scenario;

using Visit = std::function<void(const Pointer&, const Json&)>;

void walk(const Json& node, const Pointer& at, const Visit& visit) {
  visit(at, node);
  if (node.is_object()) {
    for (const auto& [key, value] : node.items()) walk(value, at / key, visit);
  } else if (node.is_array()) {
    for (std::size_t i = 0; i < node.size(); ++i) walk(node[i], at / i, visit);
  }
}

// /strategies/1/fusion -> strategies[1].fusion
std::string place_of(Pointer at) {
  std::vector<std::string> keys;
  for (; !at.empty(); at.pop_back()) keys.push_back(at.back());
  std::string place;
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    const bool index = key->find_first_not_of("0123456789") == std::string::npos;
    place += index ? "[" + *key + "]" : (place.empty() ? "" : ".") + *key;
  }
  return place;
}

// Maps from paths to values, whose keys are the user's, and lists of pairs, told as a whole.
bool is_path_map(const Pointer& at) {
  const std::string path = at.to_string();
  return path == "/sweep" || path == "/published/0/sweep" || path == "/calibration/parameters";
}

bool inside_path_map(const Pointer& at) {
  const std::string path = at.to_string();
  return path.starts_with("/sweep/") || path.starts_with("/published/0/sweep/");
}

std::string told_place(const Pointer& at) {
  for (const char* list : {"/training/loss", "/published/0/buckets", "/calibration/each",
                           "/cluster/calibration/tables/0/outlier_bytes"}) {
    if (at.to_string().starts_with(list)) return place_of(Pointer(list));
  }
  return place_of(at);
}

TEST(Mistakes, TheUnchangedScenarioIsValid) { EXPECT_EQ(error_of(full_scenario()), ""); }

TEST(Mistakes, AnUnknownKeyInAnyObject) {
  walk(full_scenario(), Pointer(), [](const Pointer& at, const Json& node) {
    if (!node.is_object() || is_path_map(at)) return;
    Json broken = full_scenario();
    broken[at]["qqqqqqqqqqqq"] = 1;
    const std::string message = error_of(broken);
    EXPECT_TRUE(message.starts_with("x.json: ")) << at << ": " << message;
    EXPECT_TRUE(contains(message, place_of(at / "qqqqqqqqqqqq") + ": unknown key")) << message;
    EXPECT_TRUE(contains(message, "known here: ")) << message;
  });
}

// Keys without which other keys have no meaning: then those are told first.
bool decides_over_others(const Pointer& at) {
  static const std::set<std::string> paths{"/sweep",
                                           "/training",
                                           "/published",
                                           "/strategies/9/exchange",
                                           "/strategies/9/gather_groups",
                                           "/strategies/9/regather",
                                           "/strategies/10/exchange",
                                           "/strategies/10/regather",
                                           "/strategies/10/each_micro_batch",
                                           "/strategies/10/cross_step"};
  static const std::set<std::string> keys{"rule", "adaptive", "form", "codec", "use"};
  return paths.contains(at.to_string()) || keys.contains(at.back());
}

TEST(Mistakes, AMisspeltKeySuggestsTheRightOne) {
  walk(full_scenario(), Pointer(), [](const Pointer& at, const Json& node) {
    if (!node.is_object() || is_path_map(at)) return;
    for (const auto& [key, value] : node.items()) {
      if (decides_over_others(at / key)) continue;
      Json broken = full_scenario();
      broken[at].erase(key);
      broken[at][key + "e"] = value;
      const std::string message = error_of(broken);
      EXPECT_TRUE(message.starts_with("x.json: ")) << at / key << ": " << message;
      EXPECT_TRUE(contains(message, "did you mean '" + key + "'"))
          << at.to_string() << " " << key << ": " << message;
    }
  });
}

TEST(Mistakes, ARequiredKeyLeftOut) {
  for (const char* path : {"/name",
                           "/workload",
                           "/cluster",
                           "/strategies",
                           "/workload/name",
                           "/workload/tensors",
                           "/workload/tensors/0/name",
                           "/workload/tensors/0/shape",
                           "/workload/buffers/0/name",
                           "/cluster/name",
                           "/cluster/nodes",
                           "/cluster/gpus_per_node",
                           "/cluster/intra",
                           "/cluster/inter",
                           "/cluster/intra/latency_us",
                           "/cluster/inter/bandwidth_gbps",
                           "/cluster/upper/0/name",
                           "/cluster/upper/0/nodes_per_group",
                           "/strategies/0/name",
                           "/strategies/1/fusion/size_mb",
                           "/strategies/2/fusion/ends",
                           "/published/0/strategy",
                           "/calibration/parameters",
                           "/calibration/parameters/cluster.inter.efficiency/min"}) {
    const Pointer at(path);
    Json broken = full_scenario();
    const std::string key = at.back();
    Json& parent = broken[at.parent_pointer()];
    parent.erase(key);
    const std::string message = error_of(broken);
    EXPECT_TRUE(contains(message, "x.json: " + place_of(at) + ": missing"))
        << path << ": " << message;
  }
}

TEST(Mistakes, AWrongTypeAnywhere) {
  walk(full_scenario(), Pointer(), [](const Pointer& at, const Json& node) {
    if (at.empty() || inside_path_map(at)) return;
    const Json wrongs[] = {"xyz", 3.25, true, nullptr, Json::array({"xyz"}), {{"xyz", 1}}};
    for (const Json& wrong : wrongs) {
      if (wrong.type() == node.type() || (wrong.is_number() && node.is_number())) continue;
      if ((at.to_string() == "/workload" || at.to_string() == "/cluster") && wrong.is_string()) {
        continue;  // names a file
      }
      Json broken = full_scenario();
      broken[at] = wrong;
      const std::string message = error_of(broken);
      EXPECT_TRUE(contains(message, "x.json: " + told_place(at)))
          << at << " = " << wrong << ": " << message;
    }
  });
}

// The few numbers that may be negative.
bool may_be_negative(const Pointer& at) { return at.to_string() == "/published/0/accuracy"; }

TEST(Mistakes, NegativeAndAbsurdNumbers) {
  walk(full_scenario(), Pointer(), [](const Pointer& at, const Json& node) {
    if (!node.is_number() || inside_path_map(at)) return;
    for (const double absurd : {-1.0, -1e300, 1e300}) {
      if (absurd == -1.0 && may_be_negative(at)) continue;
      Json broken = full_scenario();
      broken[at] = absurd;
      const std::string message = error_of(broken);
      EXPECT_TRUE(contains(message, "x.json: " + told_place(at)))
          << at << " = " << absurd << ": " << message;
      EXPECT_TRUE(contains(message, "found " + describe(Json(absurd))))
          << at << " = " << absurd << ": " << message;
    }
  });
}

TEST(Mistakes, NullIsNotLeavingOut) {
  walk(full_scenario(), Pointer(), [](const Pointer& at, const Json&) {
    if (at.empty() || inside_path_map(at)) return;
    Json broken = full_scenario();
    broken[at] = nullptr;
    EXPECT_NE(error_of(broken), "") << at;
  });
}

struct Mistake {
  const char* patch;               // RFC 6902, applied to the full scenario
  std::vector<const char*> tells;  // parts of the message
};

const Mistake kMistakes[] = {
    {R"([{"op":"replace","path":"/cluster/inter/bandwidth_gbps","value":0}])",
     {"cluster.inter.bandwidth_gbps", "found 0", "above 0"}},
    {R"([{"op":"replace","path":"/cluster/inter/flow_cap_gbps","value":0}])",
     {"cluster.inter.flow_cap_gbps", "found 0", "above 0"}},
    {R"([{"op":"replace","path":"/cluster/inter/efficiency","value":1.1}])",
     {"cluster.inter.efficiency", "found 1.1", "above 0", "at most 1"}},
    {R"([{"op":"replace","path":"/cluster/inter/nics","value":1.5}])",
     {"cluster.inter.nics", "found 1.5", "whole number"}},
    {R"([{"op":"replace","path":"/cluster/inter/oversubscription","value":0.5}])",
     {"cluster.inter.oversubscription", "found 0.5", "from 1"}},
    {R"([{"op":"replace","path":"/cluster/nodes","value":0}])", {"cluster.nodes", "found 0"}},
    {R"([{"op":"replace","path":"/cluster/nodes","value":1048576}])",
     {"cluster.nodes", "more than 2^20 GPUs"}},
    {R"([{"op":"replace","path":"/cluster/jitter/relative","value":0.5}])",
     {"cluster.jitter.relative", "found 0.5", "to 0.33"}},
    {R"([{"op":"replace","path":"/cluster/jitter/distribution","value":"uniform"}])",
     {"cluster.jitter.distribution", "'uniform'", "none, normal, exponential"}},
    {R"([{"op":"replace","path":"/workload/dtype","value":"fp8"}])",
     {"workload.dtype", "'fp8'", "fp32, fp16, bf16, fp64"}},
    {R"([{"op":"replace","path":"/workload/tensors","value":[]}])", {"workload.tensors", "empty"}},
    {R"([{"op":"replace","path":"/workload/tensors/0/shape","value":[0]}])",
     {"workload.tensors[0].shape[0]", "found 0", "from 1"}},
    {R"([{"op":"replace","path":"/workload/tensors/0/shape","value":[1099511627776, 2]}])",
     {"workload.tensors[0].shape", "2^40"}},
    {R"([{"op":"replace","path":"/workload/tensors/2/sparse_rows","value":1001}])",
     {"workload.tensors[2].sparse_rows", "found 1001", "to 1000"}},
    {R"([{"op":"replace","path":"/strategies","value":[]}])", {"strategies", "empty"}},
    {R"([{"op":"replace","path":"/strategies/1/name","value":"plain"}])",
     {"strategies[1].name", "'plain'", "two strategies"}},
    {R"([{"op":"replace","path":"/strategies/0/name","value":""}])",
     {"strategies[0].name", "empty"}},
    {R"([{"op":"replace","path":"/strategies/1/streams","value":65}])",
     {"strategies[1].streams", "found 65", "from 1 to 64"}},
    {R"([{"op":"replace","path":"/strategies/1/overlap","value":false}])",
     {"strategies[1].streams", "overlap"}},
    {R"([{"op":"replace","path":"/strategies/1/algorithm","value":"rings"}])",
     {"strategies[1].algorithm", "'rings'", "ring, to_one, double_binary_tree, halving_doubling",
      "did you mean 'ring'"}},
    {R"([{"op":"replace","path":"/strategies/1/fusion/rule","value":"sizes"}])",
     {"strategies[1].fusion.rule", "'sizes'", "none, layer, size, count, index, groups, one",
      "did you mean 'size'"}},
    {R"([{"op":"replace","path":"/strategies/1/fusion/size_mb","value":0}])",
     {"strategies[1].fusion.size_mb", "found 0", "above 0"}},
    {R"([{"op":"replace","path":"/strategies/1/fusion/rule","value":"one"}])",
     {"strategies[1].fusion.size_mb", "rule 'one'", "'size'"}},
    {R"([{"op":"replace","path":"/strategies/1/fusion/layer_key","value":"dot"}])",
     {"strategies[1].fusion.layer_key", "'dot'", "last_dot, first_dot"}},
    {R"([{"op":"replace","path":"/strategies/2/fusion/ends","value":[]}])",
     {"strategies[2].fusion.ends", "empty"}},
    {R"([{"op":"replace","path":"/strategies/2/fusion/ends","value":[5, 5]}])",
     {"strategies[2].fusion.ends", "found 5 after 5", "rising"}},
    {R"([{"op":"replace","path":"/strategies/1/hierarchy/group_size","value":7}])",
     {"strategies[1].hierarchy.group_size", "found 7", "256 ranks"}},
    {R"([{"op":"replace","path":"/strategies/1/hierarchy/form","value":"sharded"}])",
     {"strategies[1].hierarchy.first", "sharded"}},
    {R"([{"op":"replace","path":"/strategies/1/hierarchy/inside","value":"halving_doubling"}])",
     {"strategies[1].hierarchy.inside", "halving_doubling", "8 ranks"}},
    {R"([{"op":"replace","path":"/strategies/2/compression/codec","value":"topk"}])",
     {"strategies[2].compression.codec", "'topk'", "dgc, fp16"}},
    {R"([{"op":"replace","path":"/strategies/2/compression/codec","value":"fp16"}])",
     {"strategies[2].compression.sparsity", "fp16"}},
    {R"([{"op":"replace","path":"/strategies/2/compression/sparsity","value":99.9}])",
     {"compression.sparsity", "found 99.9", "a list of shares below 1, such as [0.999]"}},
    {R"([{"op":"replace","path":"/strategies/2/compression/sparsity/1","value":1}])",
     {"strategies[2].compression.sparsity", "found 1", "below 1"}},
    {R"([{"op":"replace","path":"/strategies/2/compression/sparsity","value":[]}])",
     {"strategies[2].compression.sparsity", "empty"}},
    {R"([{"op":"add","path":"/strategies/4/compression","value":{"codec":"dgc"}}])",
     {"strategies[4].compression", "local_sgd"}},
    {R"([{"op":"add","path":"/strategies/3/local_sgd/period","value":4}])",
     {"strategies[3].local_sgd.period", "adaptive"}},
    {R"([{"op":"add","path":"/strategies/4/local_sgd/max_period","value":4}])",
     {"strategies[4].local_sgd.max_period", "adaptive"}},
    {R"([{"op":"add","path":"/strategies/4/local_sgd/delay","value":1},
         {"op":"add","path":"/strategies/4/overlap","value":false}])",
     {"strategies[4].local_sgd.delay", "has no meaning with overlap: false"}},
    {R"([{"op":"add","path":"/strategies/4/local_sgd/delay","value":1000}])",
     {"strategies[4].local_sgd.delay", "expected less than period / fragments"}},
    {R"([{"op":"add","path":"/training/step","value":4}])", {"training.steps", "step"}},
    {R"([{"op":"replace","path":"/training/loss","value":[[5, 1], [5, 2]]}])",
     {"training.loss", "rising"}},
    {R"([{"op":"replace","path":"/training/loss","value":[[0, 0]]}])",
     {"training.loss", "found 0", "above 0"}},
    {R"([{"op":"replace","path":"/published/0/strategy","value":"fusd"}])",
     {"published[0].strategy", "'fusd'", "did you mean 'fused'"}},
    {R"([{"op":"replace","path":"/published/0/strategy","value":"zzzzzzzzzz"}])",
     {"published[0].strategy", "'zzzzzzzzzz'", "plain", "compressed"}},
    {R"([{"op":"replace","path":"/published/0/sweep","value":{"cluster.nodes": 5}}])",
     {"published[0].sweep", "cluster.nodes", "5"}},
    {R"([{"op":"replace","path":"/published/0/sweep","value":{"seed": 5}}])",
     {"published[0].sweep", "'seed'", "not swept"}},
    {R"([{"op":"replace","path":"/published/0/use","value":"fitted"}])",
     {"published[0].use", "'fitted'", "calibrated, predicted"}},
    {R"([{"op":"replace","path":"/published/0/use","value":"predicted"}])",
     {"calibration.parameters", "1 parameters for 0"}},
    {R"([{"op":"replace","path":"/calibration/leave_out","value":"rows"}])",
     {"calibration.leave_out", "'rows'", "none, row, cluster.nodes", "did you mean 'row'"}},
    {R"([{"op":"replace","path":"/calibration/parameters","value":{}}])",
     {"calibration.parameters", "empty"}},
    {R"([{"op":"replace","path":"/calibration/parameters/cluster.inter.efficiency/max",
          "value":0.1}])",
     {"calibration.parameters.cluster.inter.efficiency.max", "found 0.1", "above 0.1"}},
    {R"([{"op":"replace","path":"/simulation/warmup","value":5}])",
     {"simulation.warmup", "all periods"}},
    {R"([{"op":"replace","path":"/search/base","value":"plane"}])",
     {"search.base", "'plane'", "did you mean 'plain'"}},
    {R"([{"op":"replace","path":"/search/fusion/size_mb","value":"breakpoint"}])",
     {"search.fusion.size_mb", "'breakpoint'", "'breakpoints' or a list"}},
    {R"([{"op":"replace","path":"/search/fusion/close","value":["befor"]}])",
     {"search.fusion.close[0]", "'befor'", "after, before", "did you mean 'before'"}},
    {R"([{"op":"remove","path":"/search/fusion/size_mb"}])",
     {"search.fusion.close", "without size_mb"}},
    {R"([{"op":"replace","path":"/search/fusion","value":{"optimum": false}}])",
     {"search.fusion.optimum", "nothing to choose from"}},
    {R"([{"op":"replace","path":"/search/streams","value":[]}])", {"search.streams", "empty"}},
    {R"([{"op":"replace","path":"/search/streams","value":[65]}])",
     {"search.streams[0]", "found 65", "from 1 to 64"}},
    {R"([{"op":"replace","path":"/search/algorithm","value":["rings"]}])",
     {"search.algorithm[0]", "'rings'", "did you mean 'ring'"}},
    {R"([{"op":"replace","path":"/search/hierarchy","value":["flat", "deep"]}])",
     {"search.hierarchy[1]", "'deep'", "an object or 'flat'"}},
    {R"([{"op":"replace","path":"/search/hierarchy/1/group_size","value":7}])",
     {"search.hierarchy[1].group_size", "found 7", "256 ranks"}},
    {R"([{"op":"replace","path":"/search/compression/1/codec","value":"topk"}])",
     {"search.compression[1].codec", "'topk'", "dgc, fp16"}},
    {R"([{"op":"replace","path":"/search/fusion/cycle_ms","value":[-1]}])",
     {"search.fusion.cycle_ms[0]", "found -1"}},
    {R"([{"op":"replace","path":"/search/fusion/close","value":["after"]}])",
     {"search.fusion.cycle_ms", "needs", "before"}},
    {R"([{"op":"replace","path":"/search/exchange","value":["decouple"]}])",
     {"search.exchange[0]", "'decouple'", "did you mean 'decoupled'"}},
    {R"([{"op":"replace","path":"/search/cross_step","value":[true, 1]}])",
     {"search.cross_step[1]", "found 1", "true or false"}},
    {R"([{"op":"replace","path":"/search/cross_step","value":[]}])",
     {"search.cross_step", "empty"}},
    {R"([{"op":"replace","path":"/search/priority","value":["layers"]}])",
     {"search.priority[0]", "'layers'", "did you mean 'layer'"}},
    {R"([{"op":"add","path":"/search/compute_fusion","value":["none"]}])",
     {"search.compute_fusion", "no operators"}},
    {R"([{"op":"replace","path":"/strategies/9/fusion/groups","value":[[0, 4]]}])",
     {"strategies[9].fusion.groups[0][1]", "found 4", "from 0 to 3"}},
    {R"([{"op":"replace","path":"/strategies/9/fusion/groups","value":[[0], [1, 0]]}])",
     {"strategies[9].fusion.groups[1]", "found 0 twice"}},
    {R"([{"op":"replace","path":"/strategies/9/fusion/groups","value":[[0], []]}])",
     {"strategies[9].fusion.groups[1]", "empty"}},
    {R"([{"op":"replace","path":"/strategies/9/fusion/groups","value":[0]}])",
     {"strategies[9].fusion.groups[0]", "found 0", "a list of places"}},
    {R"([{"op":"replace","path":"/strategies/9/fusion/rule","value":"one"}])",
     {"strategies[9].fusion.groups", "only with 'groups'"}},
    {R"([{"op":"replace","path":"/strategies/9/exchange","value":"sharded_update"}])",
     {"strategies[9].regather", "needs exchange 'sharded'"}},
    {R"([{"op":"replace","path":"/strategies/9/exchange","value":"all_reduce"},
         {"op":"remove","path":"/strategies/9/kept_groups"},
         {"op":"remove","path":"/strategies/9/regather"}])",
     {"strategies[9].gather_groups", "with exchange 'all_reduce', only with 'sharded'"}},
    {R"([{"op":"replace","path":"/strategies/9/kept_groups","value":2}])",
     {"strategies[9].kept_groups", "gather_groups has only 1"}},
    {R"([{"op":"replace","path":"/strategies/10/regather_group","value":7}])",
     {"strategies[10].regather_group", "expected a divisor of the 256"}},
    {R"([{"op":"add","path":"/strategies/0/regather_group","value":2}])",
     {"strategies[0].regather_group", "with regather: false, only with true"}},
    {R"([{"op":"add","path":"/strategies/1/hierarchy/across_last","value":true}])",
     {"strategies[1].hierarchy.across_last", "only with each_micro_batch"}},
    {R"([{"op":"add","path":"/strategies/1/hierarchy/across_stream","value":true}])",
     {"strategies[1].hierarchy.across_stream", "with form 'leaders', only with 'sharded'"}},
    {R"([{"op":"replace","path":"/strategies/9/regather","value":false}])",
     {"strategies[9].kept_groups", "with regather: false, only with true"}},
    {R"([{"op":"add","path":"/strategies/2/compression/rank","value":2}])",
     {"strategies[2].compression.rank", "no meaning with codec 'dgc'"}},
    {R"([{"op":"replace","path":"/strategies/9/gather_groups","value":[[3]]}])",
     {"strategies[9].gather_groups[0][0]", "found 3", "from 0 to 2"}},
    {R"([{"op":"replace","path":"","value":[]}])", {"found a list", "an object"}},
    {R"([{"op":"replace","path":"","value":3}])", {"found 3", "an object"}},
};

TEST(Mistakes, TellWhereWhatAndWhatIsAllowed) {
  for (const auto& mistake : kMistakes) {
    SCOPED_TRACE(mistake.patch);
    const std::string message = error_of(full_scenario().patch(Json::parse(mistake.patch)));
    EXPECT_TRUE(message.starts_with("x.json: ")) << message;
    for (const char* part : mistake.tells) {
      EXPECT_TRUE(contains(message, part)) << "'" << part << "' in: " << message;
    }
  }
}

}  // namespace
}  // namespace syncline::input
