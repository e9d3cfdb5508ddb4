// Properties of every scenario, whatever its figures: a faster network is never slower,
// units do not matter, names do not matter. Random scenarios with a seed are held against each cost
// model, in the closed-form model and in the merged simulation. A scenario that breaks one is cut
// down to the smallest that still does before it is printed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/sim/sim_executor.h"
#include "reports/run_report.h"
#include "tests/support/full_scenario.h"
#include "tests/support/printed.h"
#include "tests/support/random_scenario.h"
#include "tests/support/studies.h"

namespace syncline::measure {
namespace {

// Random scenarios ------------------------------------------------------------------------------

using test::Dice;

struct Kind {
  int most_streams = 3;
  bool jitter = true;
};

Json random_workload(Dice& dice) {
  Json tensors = Json::array();
  const int count = dice.between(3, 40);
  // Embeddings beside biases: sizes over four decades.
  const bool small = dice.chance(30);
  for (int t = 0; t < count; ++t) {
    const std::string layer = "block" + std::to_string(t / 3) + ".layer" + std::to_string(t / 2);
    Json tensor{{"name", layer + ".p" + std::to_string(t)}};
    const int rows = dice.pick<int>({1, 7, 64, 512, small ? 100 : 2048});
    tensor["shape"] = Json::array({rows, dice.pick<int>({1, 3, 64, 1000})});
    if (dice.chance(10)) tensor["dtype"] = dice.pick<std::string>({"fp16", "bf16", "fp64"});
    if (dice.chance(7)) tensor["sparse_rows"] = dice.between(0, rows);
    tensor["backward_us"] = dice.chance(15) ? 0 : dice.between(1, 3000);
    tensors.push_back(tensor);
  }
  Json workload{{"name", "random"},
                {"batch", dice.between(1, 64)},
                {"forward_ms", dice.between(0, 30)},
                {"update_ms", dice.chance(50) ? 0 : dice.between(1, 3)},
                {"tensors", tensors}};
  if (dice.chance(30)) {
    workload["buffers"] =
        Json::array({Json{{"name", "mean"}, {"shape", Json::array({dice.between(1, 512)})}}});
  }
  return workload;
}

Json random_tier(Dice& dice, int most_gbps) {
  Json tier{{"latency_us", dice.pick<int>({0, 1, 5, 20, 50})},
            {"bandwidth_gbps", dice.between(1, most_gbps)}};
  if (dice.chance(20)) tier["flow_cap_gbps"] = dice.between(1, most_gbps);
  if (dice.chance(20)) tier["oversubscription"] = dice.between(2, 4);
  if (dice.chance(20)) tier["nics"] = 2;
  if (dice.chance(20)) tier["efficiency"] = 0.75;
  if (dice.chance(10)) tier["upload_gbps"] = dice.between(1, most_gbps);
  return tier;
}

Json random_cluster(Dice& dice, const Kind& kind) {
  const auto [nodes, gpus] = dice.pick<std::pair<int, int>>(
      {{2, 1}, {3, 1}, {4, 1}, {8, 1}, {1, 4}, {2, 2}, {3, 2}, {2, 4}, {4, 2}, {4, 4}});
  Json cluster{{"name", "random"}, {"nodes", nodes}, {"gpus_per_node", gpus}};
  if (gpus > 1) cluster["intra"] = random_tier(dice, 400);
  if (nodes > 1) cluster["inter"] = random_tier(dice, 50);
  if (nodes % 4 == 0 && dice.chance(30)) {
    Json level = random_tier(dice, 100);
    level["name"] = "pods";
    level["nodes_per_group"] = 2;
    cluster["upper"] = Json::array({level});
  }
  if (dice.chance(50)) cluster["collective_overhead_us"] = dice.between(0, 30);
  if (dice.chance(60)) {
    cluster["device"] = {{"memory_gbytes_per_s", dice.between(0, 900)},
                         {"launch_us", dice.between(0, 10)},
                         {"host_sync_us", dice.between(0, 50)}};
    if (dice.chance(30)) {
      cluster["device"]["data_parallel_overhead_us"] = dice.between(0, 500);
      cluster["device"]["data_parallel_slowdown"] = dice.between(0, 20) / 100.0;
    }
  }
  if (kind.jitter && dice.chance(20)) {
    cluster["jitter"] = {{"distribution", dice.pick<std::string>({"normal", "exponential"})},
                         {"relative", 0.1}};
  }
  return cluster;
}

Json random_fusion(Dice& dice) {
  const auto rule =
      dice.pick<std::string>({"none", "layer", "size", "size", "count", "index", "one"});
  Json fusion{{"rule", rule}};
  if (rule == "size") {
    fusion["size_mb"] = dice.between(1, 60) / 16.0;
    if (dice.chance(30)) fusion["first_size_mb"] = 0.125;
  }
  if (rule == "count") fusion["count"] = dice.between(1, 9);
  if (rule == "index") fusion["ends"] = Json::array({dice.between(0, 2), dice.between(3, 9)});
  if (rule == "size" || rule == "count") {
    if (dice.chance(30)) fusion["close"] = "before";
    if (dice.chance(30)) fusion["by_layer"] = true;
  }
  if (dice.chance(20)) fusion["align_bytes"] = 256;
  return fusion;
}

Json random_strategy(Dice& dice, const Kind& kind, const std::string& name, int ranks) {
  const std::vector<std::string> algorithms{"ring", "to_one", "double_binary_tree",
                                            "halving_doubling"};
  Json strategy{{"name", name}};
  if (dice.chance(15)) {
    strategy["overlap"] = false;
  } else if (kind.most_streams > 1) {
    strategy["streams"] = dice.between(1, kind.most_streams);
  }
  if (dice.chance(70)) strategy["algorithm"] = dice.pick(algorithms);
  if (dice.chance(85)) strategy["fusion"] = random_fusion(dice);
  if (dice.chance(35)) {
    strategy["hierarchy"] = test::random_hierarchy(dice, ranks, algorithms);
  }
  if (dice.chance(25)) {
    strategy["local_sgd"] = {{"period", dice.pick<int>({1, 2, 4})}};
  } else if (dice.chance(35)) {
    strategy["compression"] = {{"codec", "fp16"}};
    if (dice.chance(60)) {
      strategy["compression"] = {
          {"codec", "dgc"}, {"sparsity", Json::array({0.99})}, {"min_elements", 2000}};
    }
  }
  if (dice.chance(30)) strategy["update"] = "per_bucket";
  return strategy;
}

// One to three strategies; those whose algorithm does not fit their groups are drawn again.
Json random_scenario(std::uint64_t seed, const Kind& kind) {
  Dice dice(seed);
  Json root{{"name", "random"},
            {"workload", random_workload(dice)},
            {"cluster", random_cluster(dice, kind)},
            {"strategies", Json::array()},
            // The third period is like the second; random ranks get a few more, and no mean.
            {"simulation", {{"periods", 3}, {"warmup", 1}}}};
  if (root["cluster"].contains("jitter")) root["simulation"]["periods"] = 9;
  const int ranks =
      root["cluster"]["nodes"].get<int>() * root["cluster"]["gpus_per_node"].get<int>();
  const int wanted = dice.between(1, 3);
  while (static_cast<int>(root["strategies"].size()) < wanted) {
    const std::string name = "s" + std::to_string(root["strategies"].size());
    Json longer = root;
    longer["strategies"].push_back(random_strategy(dice, kind, name, ranks));
    try {
      test::parsed(longer);
      root = longer;
    } catch (const InputError& error) {
      if (std::string(error.what()).find(" does no ") == std::string::npos) throw;
    }
  }
  root["baseline"] = "s0";
  return root;
}

// Cost models -----------------------------------------------------------------------------------

enum class Way { kModel, kSim };

Report evaluated(const Json& root, Way way) {
  return test::studied(root,
                       way == Way::kModel ? run::make_model_executor : sim::make_sim_executor);
}

// What is wrong with this scenario; nothing if it obeys.
using Broken = std::optional<std::string>;
using Property = std::function<Broken(const Json&, Way)>;

std::string seconds(Seconds value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.12g s", value);
  return text;
}

// SimGrid's precision is absolute, and its clock adds up thousands of events.
double rounding(Way way) { return way == Way::kModel ? 1e-9 : 1e-7; }

using Differs = std::function<bool(Seconds before, Seconds after)>;

// The step times of both, row by row; `wrong` says which pairs break it.
Broken compare_steps(const Json& before, const Json& after, Way way, const std::string& what,
                     const Differs& wrong) {
  const auto old_rows = evaluated(before, way).rows;
  const auto new_rows = evaluated(after, way).rows;
  for (std::size_t i = 0; i < old_rows.size(); ++i) {
    const Seconds a = old_rows[i].metrics.step_time;
    const Seconds b = new_rows[i].metrics.step_time;
    if (wrong(a, b)) {
      return what + ": " + old_rows[i].strategy + " from " + seconds(a) + " to " + seconds(b);
    }
  }
  return std::nullopt;
}

Differs slower(double tolerance) {
  return [tolerance](Seconds a, Seconds b) { return b > a * (1 + tolerance); };
}
Differs faster(double tolerance) {
  return [tolerance](Seconds a, Seconds b) { return b < a * (1 - tolerance); };
}
Differs unlike(double tolerance) {
  return [tolerance](Seconds a, Seconds b) { return std::abs(b - a) > a * tolerance; };
}

std::vector<Json::json_pointer> tiers_of(const Json& root) {
  std::vector<Json::json_pointer> tiers;
  for (const char* tier : {"/cluster/intra", "/cluster/inter", "/cluster/upper/0"}) {
    if (root.contains(Json::json_pointer(tier))) tiers.emplace_back(tier);
  }
  return tiers;
}

// Every tier of the cluster in turn.
Broken each_tier(const Json& root, const std::function<Broken(Json&, Json&, std::string)>& visit) {
  for (const auto& tier : tiers_of(root)) {
    Json changed = root;
    if (auto broken = visit(changed, changed[tier], tier.to_string())) return broken;
  }
  return std::nullopt;
}

void scale_key(Json& object, const char* key, double factor) {
  if (object.contains(key)) object[key] = object[key].get<double>() * factor;
}

// Several streams may break it by so much.
Property more_bandwidth_is_not_slower(double several_streams) {
  return [several_streams](const Json& root, Way way) {
    return each_tier(root, [&](Json& changed, Json& tier, const std::string& name) {
      for (const char* key : {"bandwidth_gbps", "upload_gbps"}) scale_key(tier, key, 1.5);
      return compare_steps(root, changed, way, name + " bandwidth x 1.5",
                           slower(std::max(several_streams, rounding(way))));
    });
  };
}

Property more_latency_is_not_faster(double several_streams) {
  return [several_streams](const Json& root, Way way) {
    return each_tier(root, [&](Json& changed, Json& tier, const std::string& name) {
      tier["latency_us"] = tier["latency_us"].get<double>() * 1.5 + 3;
      return compare_steps(root, changed, way, name + " latency up",
                           faster(std::max(several_streams, rounding(way))));
    });
  };
}

Broken overlap_is_not_slower(const Json& root, Way way) {
  Json serial = root;
  Json overlapped = root;
  for (auto& strategy : serial["strategies"]) strategy["overlap"] = false;
  for (auto& strategy : overlapped["strategies"]) strategy["overlap"] = true;
  return compare_steps(serial, overlapped, way, "overlap", slower(rounding(way)));
}

// Layers keep their members, so rules that read layers see the same ones.
Broken names_do_not_matter(const Json& root, Way way) {
  Json renamed = root;
  for (auto& tensor : renamed["workload"]["tensors"]) {
    const auto name = tensor["name"].get<std::string>();
    const auto dot = name.rfind('.');
    tensor["name"] = "zz" + name.substr(0, dot) + "_.x" + name.substr(dot + 1);
  }
  return compare_steps(root, renamed, way, "renamed", unlike(0));
}

Broken idle_levels_do_not_matter(const Json& root, Way way) {
  const Json& cluster = root["cluster"];
  const Json idle{{"latency_us", 777}, {"bandwidth_gbps", 0.001}, {"flow_cap_gbps", 0.0001}};
  Json joined = root;
  Json single = idle;
  single["name"] = "one group";
  single["nodes_per_group"] = cluster["nodes"];
  joined["cluster"]["upper"].push_back(single);
  if (cluster["nodes"] == 1) joined["cluster"]["inter"] = idle;
  if (auto broken = compare_steps(root, joined, way, "a level over one group", unlike(0)))
    return broken;

  if (cluster["gpus_per_node"] == 1) {
    Json unused = root;
    unused["cluster"]["intra"] = idle;
    if (auto broken = compare_steps(root, unused, way, "an unused intra tier", unlike(0)))
      return broken;
  }
  if (cluster["nodes"] == 1 || cluster.contains("upper")) return std::nullopt;
  // Groups of one node: the tier between nodes joins nothing, the one above does its work.
  Json moved = root;
  Json above = cluster["inter"];
  above["name"] = "above";
  above["nodes_per_group"] = 1;
  moved["cluster"]["inter"] = idle;
  moved["cluster"]["upper"] = Json::array({above});
  return compare_steps(root, moved, way, "inter written as an upper level", unlike(0));
}

Broken batch_changes_only_throughput(const Json& root, Way way) {
  Json bigger = root;
  bigger["workload"]["batch"] = 8 * root["workload"]["batch"].get<int>();
  const auto before = evaluated(root, way).rows;
  const auto after = evaluated(bigger, way).rows;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].metrics.step_time != after[i].metrics.step_time) return "step time moved";
    if (8 * before[i].metrics.throughput != after[i].metrics.throughput) return "throughput";
  }
  return std::nullopt;
}

Json slowed_down(Json root, double factor) {
  Json& workload = root["workload"];
  for (const char* key : {"forward_ms", "update_ms"}) scale_key(workload, key, factor);
  for (auto& tensor : workload["tensors"]) scale_key(tensor, "backward_us", factor);
  for (const auto& tier : tiers_of(root)) {
    scale_key(root[tier], "latency_us", factor);
    for (const char* key : {"bandwidth_gbps", "upload_gbps", "flow_cap_gbps"}) {
      scale_key(root[tier], key, 1 / factor);
    }
  }
  Json& cluster = root["cluster"];
  scale_key(cluster, "collective_overhead_us", factor);
  if (cluster.contains("device")) {
    scale_key(cluster["device"], "memory_gbytes_per_s", 1 / factor);
    for (const char* key : {"launch_us", "host_sync_us", "data_parallel_overhead_us"}) {
      scale_key(cluster["device"], key, factor);
    }
  }
  return root;
}

Broken time_has_no_unit(const Json& root, Way way) {
  constexpr double kFactor = 3;
  const auto before = evaluated(root, way).rows;
  const auto after = evaluated(slowed_down(root, kFactor), way).rows;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& [a, b] = std::pair(before[i].metrics, after[i].metrics);
    const double tolerance = kFactor * a.step_time * std::max(1e-9, rounding(way));
    for (const auto figure : {&Metrics::step_time, &Metrics::compute, &Metrics::communication,
                              &Metrics::exposed, &Metrics::lower_bound}) {
      if (std::abs(b.*figure - kFactor * (a.*figure)) > tolerance) {
        return before[i].strategy + ": " + seconds(a.*figure) + " became " + seconds(b.*figure);
      }
    }
  }
  return std::nullopt;
}

Broken steps_respect_the_lower_bound(const Json& root, Way way) {
  for (const auto& row : evaluated(root, way).rows) {
    const Metrics& m = row.metrics;
    if (m.step_time < m.lower_bound * (1 - rounding(way))) {
      return row.strategy + ": step " + seconds(m.step_time) + ", lower bound " +
             seconds(m.lower_bound);
    }
  }
  return std::nullopt;
}

Broken steps_last_as_long_as_the_computation(const Json& root, Way way) {
  for (const auto& row : evaluated(root, way).rows) {
    const Metrics& m = row.metrics;
    if (m.step_time < m.compute * (1 - rounding(way))) {
      return row.strategy + ": step " + seconds(m.step_time) + ", compute " + seconds(m.compute);
    }
    if (std::abs(m.compute + m.comm_overhead + m.exposed - m.step_time) >
        m.step_time * rounding(way)) {
      return row.strategy + ": compute, handling and exposed do not add up to the step";
    }
  }
  return std::nullopt;
}

Broken rows_do_not_know_each_other(const Json& root, Way way) {
  Json longer = root;
  longer["strategies"].insert(
      longer["strategies"].begin(),
      Json{{"name", "other"}, {"streams", 2}, {"fusion", {{"rule", "one"}}}});
  Json reversed = root;
  std::reverse(reversed["strategies"].begin(), reversed["strategies"].end());
  const auto rows = evaluated(root, way).rows;
  const auto with_other = evaluated(longer, way).rows;
  const auto backwards = evaluated(reversed, way).rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const Row* other : {&with_other[i + 1], &backwards[rows.size() - 1 - i]}) {
      if (rows[i].strategy != other->strategy) return "rows in another order";
      if (rows[i].metrics.step_time != other->metrics.step_time ||
          rows[i].metrics.communication != other->metrics.communication ||
          rows[i].speedup != other->speedup) {
        return rows[i].strategy + " from " + seconds(rows[i].metrics.step_time) + " to " +
               seconds(other->metrics.step_time);
      }
    }
  }
  return std::nullopt;
}

Broken the_same_again(const Json& root, Way way) {
  const bool same = test::json_of(evaluated(root, way)) == test::json_of(evaluated(root, way));
  return same ? std::nullopt : Broken("other bytes");
}

// Cutting down ----------------------------------------------------------------------------------

// What `property` says of a scenario; nothing of one that is not valid any more.
Broken judged(const Property& property, const Json& root, Way way) {
  try {
    return property(root, way);
  } catch (const InputError&) {
  } catch (const Json::exception&) {  // the property wanted to change what is not there any more
  }
  return std::nullopt;
}

// Every scenario that is one part shorter.
std::vector<Json> shorter(const Json& root) {
  std::vector<Json> list;
  const auto without = [&](const Json::json_pointer& place, const auto& key) {
    Json copy = root;
    copy[place].erase(key);
    list.push_back(std::move(copy));
  };
  for (std::size_t s = 0; root["strategies"].size() > 1 && s < root["strategies"].size(); ++s) {
    without(Json::json_pointer("/strategies"), s);
    list.back()["baseline"] = list.back()["strategies"][0]["name"];
  }
  for (std::size_t t = 0;
       root["workload"]["tensors"].size() > 1 && t < root["workload"]["tensors"].size(); ++t) {
    without(Json::json_pointer("/workload/tensors"), t);
  }
  const auto without_keys = [&](const std::string& place) {
    for (const auto& [key, value] : root[Json::json_pointer(place)].items()) {
      if (key != "name") without(Json::json_pointer(place), key);
    }
  };
  for (std::size_t s = 0; s < root["strategies"].size(); ++s) {
    without_keys("/strategies/" + std::to_string(s));
  }
  without_keys("/workload");
  without_keys("/cluster");
  for (const char* key : {"intra", "inter", "device"}) {
    if (root["cluster"].contains(key)) without_keys(std::string("/cluster/") + key);
  }
  return list;
}

Json cut_down(Json root, const Property& property, Way way) {
  while (true) {
    auto candidates = shorter(root);
    const auto broken = std::ranges::find_if(
        candidates, [&](const Json& one) { return judged(property, one, way).has_value(); });
    if (broken == candidates.end()) return root;
    root = *broken;
  }
}

void obey(const Property& property, Way way, int scenarios, const Kind& kind = {}) {
  for (int seed = 1; seed <= scenarios; ++seed) {
    const Json root = random_scenario(static_cast<std::uint64_t>(seed), kind);
    if (!property(root, way)) continue;
    const Json small = cut_down(root, property, way);
    ADD_FAILURE() << "seed " << seed << ": " << *property(root, way)
                  << "\nsmallest: " << *property(small, way) << "\n"
                  << small.dump();
    return;
  }
}

// Tests -----------------------------------------------------------------------------------------

constexpr int kOnModel = 400;
constexpr int kOnSim = 20;
constexpr Kind kOneStream{1, true};

// Several streams queue up on shared links, and queues have anomalies (Graham 1969): a collective
// that sets out a little later leaves the link to another one whose decoding or successor is on the
// critical path, and the step ends sooner. In 3000 random scenarios 50 % more bandwidth cost up to
// 0.011 % and more latency gained up to 0.14 %, in the model and in the simulation alike.
constexpr double kBandwidthAnomaly = 1e-3;
constexpr double kLatencyAnomaly = 5e-3;

// Random speeds of ranks are drawn, not expected, in the simulation: their mean is another test's.
constexpr Kind kEven{3, false};

struct Rule {
  const char* name;
  Property property;
  Kind kind = {};
  Kind on_sim = kind;
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> rules{
      {"MoreBandwidthIsNotSlower", more_bandwidth_is_not_slower(0), kOneStream},
      {"MoreLatencyIsNotFaster", more_latency_is_not_faster(0), kOneStream},
      {"MoreBandwidthIsNotSlowerWithSeveralStreams",
       more_bandwidth_is_not_slower(kBandwidthAnomaly)},
      {"MoreLatencyIsNotFasterWithSeveralStreams", more_latency_is_not_faster(kLatencyAnomaly)},
      {"OverlapIsNotSlowerThanOneAfterTheOther", overlap_is_not_slower, kOneStream},
      {"NamesDoNotMatter", names_do_not_matter},
      {"IdleLevelsDoNotMatter", idle_levels_do_not_matter},
      {"BatchChangesOnlyThroughput", batch_changes_only_throughput},
      {"TimeHasNoUnit", time_has_no_unit},
      {"StepsRespectTheLowerBoundWithOneStream", steps_respect_the_lower_bound, {1, false}},
      {"StepsRespectTheLowerBoundWithSeveralStreams", steps_respect_the_lower_bound, kEven},
      {"StepsLastAsLongAsTheComputation", steps_last_as_long_as_the_computation, {}, kEven},
      {"RowsDoNotKnowEachOther", rows_do_not_know_each_other},
      {"TheSameAgainGivesTheSameBytes", the_same_again}};
  return rules;
}

class Properties : public testing::TestWithParam<std::tuple<Way, std::size_t>> {};

TEST_P(Properties, AreTrue) {
  const auto [way, index] = GetParam();
  const Rule& rule = rules()[index];
  const bool model = way == Way::kModel;
  obey(rule.property, way, model ? kOnModel : kOnSim, model ? rule.kind : rule.on_sim);
}

INSTANTIATE_TEST_SUITE_P(Ways, Properties,
                         testing::Combine(testing::Values(Way::kModel, Way::kSim),
                                          testing::Range<std::size_t>(0, rules().size())),
                         [](const auto& i) {
                           return std::string(std::get<0>(i.param) == Way::kModel ? "model"
                                                                                  : "sim") +
                                  rules()[std::get<1>(i.param)].name;
                         });

}  // namespace
}  // namespace syncline::measure
