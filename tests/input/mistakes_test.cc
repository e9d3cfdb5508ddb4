// One mistake at a time, everywhere: each message names the file, the path, what was found and what
// is allowed.
#include <gtest/gtest.h>

#include <set>

#include "formats/json/reader.h"
#include "tests/support/full_scenario.h"
#include "tests/support/text.h"

namespace syncline::input {
namespace {

using Pointer = Json::json_pointer;
using test::contains;
using test::error_of;
using test::full_scenario;
using test::walk;

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

// A place in the full scenario with the value that is put there, and what is told of it: at that
// place, or, behind an @, at another.
struct Mistake {
  std::string change;
  std::vector<std::string> tells;
};

const Mistake kMistakes[] = {
    {"/cluster/inter/bandwidth_gbps 0", {"found 0", "above 0"}},
    {"/cluster/inter/flow_cap_gbps 0", {"found 0", "above 0"}},
    {"/cluster/inter/efficiency 1.1", {"found 1.1", "above 0", "at most 1"}},
    {"/cluster/inter/nics 1.5", {"found 1.5", "whole number"}},
    {"/cluster/inter/oversubscription 0.5", {"found 0.5", "from 1"}},
    {"/cluster/nodes 0", {"found 0"}},
    {"/cluster/nodes 1048576", {"more than 2^20 GPUs"}},
    {"/cluster/jitter/relative 0.5", {"found 0.5", "to 0.33"}},
    {R"(/cluster/jitter/distribution "uniform")", {"'uniform'", "none, normal, exponential"}},
    {R"(/workload/dtype "fp8")", {"'fp8'", "fp32, fp16, bf16, fp64"}},
    {"/workload/tensors []", {"empty"}},
    {"/workload/tensors/0/shape [0]", {"@workload.tensors[0].shape[0]", "found 0", "from 1"}},
    {"/workload/tensors/0/shape [1099511627776, 2]", {"2^40"}},
    {"/workload/tensors/2/sparse_rows 1001", {"found 1001", "to 1000"}},
    {"/workload/tensors/2/frozen true",
     {"@workload.tensors[2].sparse_rows", "a frozen parameter has none"}},
    {"/strategies []", {"empty"}},
    {R"(/strategies/1/name "plain")", {"'plain'", "two strategies"}},
    {R"(/strategies/0/name "")", {"empty"}},
    {"/strategies/1/streams 65", {"found 65", "from 1 to 64"}},
    {"/strategies/1/overlap false", {"@strategies[1].streams", "overlap"}},
    {R"(/strategies/1/algorithm "rings")",
     {"'rings'", "ring, to_one, double_binary_tree, halving_doubling", "did you mean 'ring'"}},
    {R"(/strategies/1/fusion/rule "sizes")",
     {"'sizes'", "none, layer, size, count, index, groups, one", "did you mean 'size'"}},
    {"/strategies/1/fusion/size_mb 0", {"found 0", "above 0"}},
    {R"(/strategies/1/fusion/rule "one")",
     {"@strategies[1].fusion.size_mb", "rule 'one'", "'size'"}},
    {R"(/strategies/1/fusion/layer_key "dot")", {"'dot'", "last_dot, first_dot"}},
    {"/strategies/2/fusion/ends []", {"empty"}},
    {"/strategies/2/fusion/ends [5, 5]", {"found 5 after 5", "rising"}},
    {"/strategies/1/hierarchy/group_size 7", {"found 7", "256 ranks"}},
    {R"(/strategies/1/hierarchy/form "sharded")", {"@strategies[1].hierarchy.first", "sharded"}},
    {R"(/strategies/1/hierarchy/inside "halving_doubling")", {"halving_doubling", "8 ranks"}},
    {R"(/strategies/2/compression/codec "topk")", {"'topk'", "dgc, fp16"}},
    {R"(/strategies/2/compression/codec "fp16")", {"@strategies[2].compression.sparsity", "fp16"}},
    {"/strategies/2/compression/sparsity 99.9",
     {"@compression.sparsity", "found 99.9", "a list of shares below 1, such as [0.999]"}},
    {"/strategies/2/compression/sparsity/1 1",
     {"@strategies[2].compression.sparsity", "found 1", "below 1"}},
    {"/strategies/2/compression/sparsity []", {"empty"}},
    {R"(/strategies/4/compression {"codec":"dgc"})", {"local_sgd"}},
    {"/strategies/3/local_sgd/period 4", {"adaptive"}},
    {"/strategies/4/local_sgd/max_period 4", {"adaptive"}},
    {"/strategies/4/local_sgd/delay 1000", {"expected less than period / fragments"}},
    {"/training/step 4", {"@training.steps", "step"}},
    {"/training/loss [[5, 1], [5, 2]]", {"rising"}},
    {"/training/loss [[0, 0]]", {"found 0", "above 0"}},
    {R"(/published/0/strategy "fusd")", {"'fusd'", "did you mean 'fused'"}},
    {R"(/published/0/strategy "zzzzzzzzzz")", {"'zzzzzzzzzz'", "plain", "compressed"}},
    {R"(/published/0/sweep {"cluster.nodes": 5})", {"cluster.nodes", "5"}},
    {R"(/published/0/sweep {"seed": 5})", {"'seed'", "not swept"}},
    {R"(/published/0/use "fitted")", {"'fitted'", "calibrated, predicted"}},
    {R"(/published/0/use "predicted")", {"@calibration.parameters", "1 parameters for 0"}},
    {R"(/calibration/leave_out "rows")",
     {"'rows'", "none, row, cluster.nodes", "did you mean 'row'"}},
    {"/calibration/parameters {}", {"empty"}},
    {"/calibration/parameters/cluster.inter.efficiency/max 0.1", {"found 0.1", "above 0.1"}},
    {"/simulation/warmup 5", {"all periods"}},
    {R"(/search/base "plane")", {"'plane'", "did you mean 'plain'"}},
    {R"(/search/fusion/size_mb "breakpoint")", {"'breakpoint'", "'breakpoints' or a list"}},
    {R"(/search/fusion/close ["befor"])",
     {"@search.fusion.close[0]", "'befor'", "after, before", "did you mean 'before'"}},
    {R"(/search/fusion {"optimum": false})", {"@search.fusion.optimum", "nothing to choose from"}},
    {"/search/streams []", {"empty"}},
    {"/search/streams [65]", {"@search.streams[0]", "found 65", "from 1 to 64"}},
    {R"(/search/algorithm ["rings"])", {"@search.algorithm[0]", "'rings'", "did you mean 'ring'"}},
    {R"(/search/hierarchy ["flat", "deep"])",
     {"@search.hierarchy[1]", "'deep'", "an object or 'flat'"}},
    {"/search/hierarchy/1/group_size 7", {"found 7", "256 ranks"}},
    {R"(/search/compression/1/codec "topk")", {"'topk'", "dgc, fp16"}},
    {"/search/fusion/cycle_ms [-1]", {"@search.fusion.cycle_ms[0]", "found -1"}},
    {R"(/search/fusion/close ["after"])", {"@search.fusion.cycle_ms", "needs", "before"}},
    {R"(/search/exchange ["decouple"])",
     {"@search.exchange[0]", "'decouple'", "did you mean 'decoupled'"}},
    {"/search/cross_step [true, 1]", {"@search.cross_step[1]", "found 1", "true or false"}},
    {"/search/cross_step []", {"empty"}},
    {R"(/search/priority ["layers"])", {"@search.priority[0]", "'layers'", "did you mean 'layer'"}},
    {R"(/search/compute_fusion ["none"])", {"no operators"}},
    {"/strategies/9/fusion/groups [[0, 4]]",
     {"@strategies[9].fusion.groups[0][1]", "found 4", "from 0 to 3"}},
    {"/strategies/9/fusion/groups [[0], [1, 0]]",
     {"@strategies[9].fusion.groups[1]", "found 0 twice"}},
    {"/strategies/9/fusion/groups [[0], []]", {"@strategies[9].fusion.groups[1]", "empty"}},
    {"/strategies/9/fusion/groups [0]",
     {"@strategies[9].fusion.groups[0]", "found 0", "a list of places"}},
    {R"(/strategies/9/fusion/rule "one")", {"@strategies[9].fusion.groups", "only with 'groups'"}},
    {R"(/strategies/9/exchange "sharded_update")",
     {"@strategies[9].kept_in_step", "with exchange 'sharded_update', only with 'sharded'"}},
    {"/strategies/9/kept_groups 2", {"found 2, expected at most 1, as gather_groups"}},
    {"/strategies/10/regather_group 7", {"expected a divisor of the 256"}},
    {"/strategies/0/regather_group 2", {"with regather: false, only with true"}},
    {"/strategies/1/hierarchy/across_stream true", {"with form 'leaders', only with 'sharded'"}},
    {"/strategies/9/regather false",
     {"@strategies[9].kept_groups", "with regather: false, only with true"}},
    {"/strategies/2/compression/rank 2", {"no meaning with codec 'dgc'"}},
    {"/strategies/9/gather_groups [[3]]",
     {"@strategies[9].gather_groups[0][0]", "found 3", "from 0 to 2"}},
};

// Several changes that are a mistake together (RFC 6902), or the whole.
const Mistake kPatches[] = {
    {R"([{"op":"add","path":"/strategies/4/local_sgd/delay","value":1},
         {"op":"add","path":"/strategies/4/overlap","value":false}])",
     {"strategies[4].local_sgd.delay", "has no meaning with overlap: false"}},
    {R"([{"op":"remove","path":"/search/fusion/size_mb"}])",
     {"search.fusion.close", "without size_mb"}},
    {R"([{"op":"replace","path":"/strategies/9/exchange","value":"all_reduce"},
         {"op":"remove","path":"/strategies/9/kept_groups"},
         {"op":"remove","path":"/strategies/9/kept_in_step"},
         {"op":"remove","path":"/strategies/9/regather"}])",
     {"strategies[9].gather_groups", "with exchange 'all_reduce', only with 'sharded'"}},
    {R"([{"op":"replace","path":"","value":[]}])", {"found a list", "an object"}},
    {R"([{"op":"replace","path":"","value":3}])", {"found 3", "an object"}},
};

void expect_told(const Json& scenario, const std::vector<std::string>& tells) {
  const std::string message = error_of(scenario);
  EXPECT_TRUE(message.starts_with("x.json: ")) << message;
  for (const auto& part : tells) {
    EXPECT_TRUE(contains(message, part)) << "'" << part << "' in: " << message;
  }
}

TEST(Mistakes, NameThePlaceTheMistakeAndTheAllowedValues) {
  for (auto [change, tells] : kMistakes) {
    SCOPED_TRACE(change);
    const Pointer at(change.substr(0, change.find(' ')));
    Json scenario = full_scenario();
    scenario[at] = Json::parse(change.substr(change.find(' ')));
    if (tells.front().starts_with('@')) {
      tells.front().erase(0, 1);
    } else {
      tells.push_back(place_of(at));
    }
    expect_told(scenario, tells);
  }
  for (const auto& [patch, tells] : kPatches) {
    SCOPED_TRACE(patch);
    expect_told(full_scenario().patch(Json::parse(patch)), tells);
  }
}

}  // namespace
}  // namespace syncline::input
