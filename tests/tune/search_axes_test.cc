// The search over what is exchanged when, ticks and compute fusion: every combination that fits is
// a candidate, no bound is above what the executor says, and pruning names the same best.
#include <gtest/gtest.h>

#include <set>

#include "core/base/error.h"
#include "core/executor.h"
#include "formats/input/document.h"
#include "formats/input/scenario_json.h"
#include "studies/machines/live_space.h"
#include "studies/tune/dialect_search.h"
#include "studies/tune/tuner.h"
#include "tests/support/tunings.h"

namespace syncline::tune {
namespace {

// On nodes of two GPUs, with passes and an update of known times.
input::Document searched(const std::string& search, const std::string& base = "") {
  Json root = test::small_search(search, base);
  root.merge_patch(
      {{"workload", {{"update_ms", 0.1}}},
       {"cluster", {{"gpus_per_node", 2}, {"device", {{"tflops", 15}, {"half_tflops", 100}}}}}});
  for (Json& tensor : root["workload"]["tensors"]) tensor["forward_us"] = 80;
  return input::document_of("x.json", root);
}

using test::Read;

constexpr const char* kSchedules = R"({
    "fusion": {"optimum": true, "size_mb": "breakpoints", "close": ["after", "before"],
               "cycle_ms": [0, 0.5, 2], "rules": ["none", "one"]},
    "streams": [1, 2], "exchange": ["all_reduce", "decoupled", "sharded"],
    "cross_step": [false, true], "priority": ["ready", "layer"], "confirm": 0})";

TEST(SearchAxes, AllCombinationsThatFitAreCandidates) {
  const Read all(searched(kSchedules));
  std::set<std::string> schedules, ticked;
  std::size_t ticks = 0;
  collective::CostCache cache(all.scenario.cluster);
  for (const auto& strategy :
       strategies_of_configurations(all.search, all.scenario.strategies.front(), all.scenario)) {
    const std::string words = input::configuration_words(strategy, all.scenario.strategies.front());
    schedules.insert(words);
    const Configuration configuration(all.scenario, strategy, cache);
    for (const auto& choice : rule_choices(all.search, configuration)) {
      if (choice.kind != FusionKind::kTicks) continue;
      ticked.insert(words);
      ++ticks;
    }
  }
  EXPECT_EQ(schedules.size(), 2U * 3 * 2 * 2) << "streams, exchange, cross_step, priority";
  EXPECT_EQ(ticked, schedules);
  EXPECT_GT(ticks, schedules.size() * 10);
}

// A reader of the ranking must see which of two it is, whatever they differ in.
TEST(SearchAxes, NoTwoCandidatesBearOneName) {
  Read all(searched(R"({
      "fusion": {"rules": ["one"]},
      "hierarchy": ["flat", {"form": "leaders", "group_size": 2},
                    {"form": "leaders", "group_size": 2, "first": "all_reduce"},
                    {"form": "leaders", "group_size": 2, "inside": "to_one"},
                    {"form": "leaders", "group_size": 2, "across": "to_one"},
                    {"form": "sharded", "group_size": 2}],
      "compression": ["none", {"codec": "fp16"}, {"codec": "fp16", "encode_launches": 2},
                      {"codec": "dgc"}, {"codec": "dgc", "encode_launches": 14},
                      {"codec": "dgc", "decode_launches": 14}, {"codec": "dgc", "min_elements": 1},
                      {"codec": "dgc", "sparsity": [0.9999]},
                      {"codec": "dgc", "sparsity": [0.99999]},
                      {"codec": "dgc", "sparsity": [0.75, 0.999]},
                      {"codec": "dgc", "sparsity": [0.75, 0.999], "rampup_step": 9},
                      {"codec": "dgc", "rampup_begin_step": 9}],
      "local_sgd": ["none", {"period": 4}, {"period": 8}, {"period": 4, "subgroup": 2},
                    {"period": 4, "begin_step": 9},
                    {"period": 4, "begin_step": 9, "warmup": "gradients"}],
      "confirm": 0})"));
  for (const auto& [init, most] : {std::pair(1, 16), std::pair(2, 16), std::pair(1, 8)}) {
    LocalSgd adaptive;
    adaptive.enabled = adaptive.adaptive = true;
    adaptive.init_period = init;
    adaptive.max_period = most;
    all.search.local_sgds.push_back(adaptive);
  }
  const Strategy& base = all.scenario.strategies.front();
  std::set<std::string> names;
  const auto candidates = strategies_of_configurations(all.search, base, all.scenario);
  for (const auto& strategy : candidates) {
    const std::string name = input::configuration_words(strategy, base);
    EXPECT_TRUE(names.insert(name).second) << "twice: " << name;
  }
  EXPECT_GT(candidates.size(), 20U);
}

// Whatever is read back from its JSON is what was evaluated.
TEST(SearchAxes, BoundsAreBoundsAndEveryCandidateReadsBack) {
  const Read all(searched(kSchedules));
  Evaluator model(all.scenario);
  int count = 0;
  for (const auto& strategy :
       strategies_of_configurations(all.search, all.scenario.strategies.front(), all.scenario)) {
    const Configuration configuration(all.scenario, strategy, model.cache());
    auto choices = rule_choices(all.search, configuration);
    if (auto choice = explicit_choice(configuration)) choices.push_back(std::move(*choice));
    for (const auto& choice : choices) {
      Strategy candidate = apply_fusion(strategy, choice.fusion);
      candidate.name = fusion_words(candidate.fusion) + ", " +
                       input::configuration_words(strategy, all.scenario.strategies.front());
      const Seconds step = model.step_time(candidate);
      ASSERT_LE(configuration.lower_bound(group_ends(configuration, choice.fusion)),
                step * (1 + 1e-9))
          << candidate.name;
      if (++count % 7 > 0) continue;
      input::Document again = searched("{}");
      again.root["strategies"] = Json::array({input::strategy_json(candidate)});
      const Scenario back = input::parse_scenario(again);
      EXPECT_EQ(model.step_time(back.strategies.front()), step) << candidate.name;
    }
  }
  EXPECT_GT(count, 500);
}

TEST(SearchAxes, PrunedAndExhaustiveAgree) {
  constexpr const char* kTicks = R"({
      "fusion": {"size_mb": [0.5, 1, 4], "close": ["before"], "cycle_ms": [1, 5]}, "confirm": 0})";
  for (const auto& [search, base] : std::vector<std::pair<const char*, const char*>>{
           {kSchedules, ""},
           {kSchedules, R"(, "bucket_copies": true)"},
           {kTicks,
            R"(, "fusion": {"rule": "size", "size_mb": 1, "close": "before", "cycle_ms": 1})"}}) {
    SCOPED_TRACE(std::string(search) + base);
    const Read read(searched(search, base));
    TuneOptions all, some;
    all.method = TuneOptions::Method::kExhaustive;
    some.method = TuneOptions::Method::kPruned;
    const Tuned everything = tune(read.scenario, read.search, all);
    const Tuned pruned = tune(read.scenario, read.search, some);
    // Candidates that no bound tells apart are all evaluated.
    EXPECT_LE(pruned.evaluations, everything.evaluations);
    test::expect_same_ranking(pruned, everything);
    EXPECT_LE(everything.lower_bound, everything.winner().metrics.step_time);
  }
}

// A base that nothing below could have made: parts of gradients, by priority.
TEST(SearchAxes, APresetAsTheBase) {
  const Read read(searched(R"({"fusion": {"rules": ["none", "layer", "one"]},
                                  "priority": ["ready", "layer"], "confirm": 0})",
                           R"(, "preset": "bytescheduler")"));
  const Tuned tuned = tune(read.scenario, read.search, {});
  EXPECT_EQ(tuned.points, 1 + 2U * 4) << "the row itself, and both priorities";
  for (const auto& ranked : tuned.ranking) {
    input::Document again = searched("{}");
    again.root["strategies"] = Json::array({input::strategy_json(ranked.strategy)});
    EXPECT_NO_THROW(input::parse_scenario(again)) << ranked.strategy.name;
  }
}

TEST(SearchAxes, ComputeFusionIsSearched) {
  input::Document document = searched(
      R"({"compute_fusion": ["none", {"fuse_bn_act_ops": true}, {"fuse_all_optimizer_ops": true}],
          "fusion": {"size_mb": [2, 8, 32]}, "confirm": 0})");
  document.root["workload"] = Json::parse(R"({"name": "w", "batch": 64, "operators":
      {"architecture": "resnet50", "dtype": "fp16", "layout": "NHWC"}})");
  const Read read(document);
  TuneOptions options;
  options.method = TuneOptions::Method::kPruned;
  const Tuned tuned = tune(read.scenario, read.search, options);
  EXPECT_EQ(tuned.points, 1 + 3U * 4) << "the row itself, and the switches";
  EXPECT_NE(tuned.winner().strategy.name.find("operators fused"), std::string::npos)
      << tuned.winner().strategy.name;
  EXPECT_LT(tuned.winner().metrics.step_time, tuned.baseline.metrics.step_time);
  EXPECT_LE(tuned.lower_bound, tuned.winner().metrics.step_time);
}

// Horovod's own knobs: what is emitted is the best of threshold x cycle time with ticks evaluated.
TEST(SearchAxes, HorovodIsTunedOverCycleTimes) {
  const input::Document document =
      searched(R"({"fusion": {"size_mb": "breakpoints", "close": ["before"],
                                 "cycle_ms": [1, 2.5, 5, 10, 25]}, "confirm": 0})",
               R"(, "dialect": "horovod", "config": {})");
  const Read read(document);
  const Tuned tuned = tune(read.scenario, read.search, {});
  Evaluator model(read.scenario);
  const Emitted emitted =
      best_config(*dialect::find_dialect("horovod"), tuned.winner().strategy, Json(), model);
  ASSERT_GT(emitted.strategy.fusion.cycle, 0);
  EXPECT_LE(emitted.step_time, tuned.winner().metrics.step_time * (1 + 1e-9));
  // No other cycle time that is tried does better with the same threshold.
  for (const double cycle : {1.0, 2.5, 5.0, 10.0, 25.0}) {
    Strategy other = emitted.strategy;
    other.fusion.cycle = cycle * kMillisecond;
    EXPECT_LE(emitted.step_time, model.step_time(other) * (1 + 1e-9)) << cycle;
  }
}

TEST(SearchAxes, ALiveSearchHasThemToo) {
  const Read read(searched(
      R"({"fusion": {"optimum": true, "size_mb": [1], "close": ["before"], "cycle_ms": [0, 1]},
          "exchange": ["all_reduce", "decoupled"], "cross_step": [false, true], "confirm": 0})"));
  const SearchProblem problem = live_problem(read.scenario, read.search, {1, 12, 10});
  bool ticks = false, crossing = false, decoupled = false;
  for (const auto& candidate : problem.candidates) {
    ticks |= candidate.strategy.fusion.cycle > 0;
    crossing |= candidate.strategy.cross_step;
    decoupled |= candidate.strategy.exchange == Strategy::Exchange::kDecoupled;
    EXPECT_GE(candidate.at[0], 0) << "a logarithm of at least one bucket";
    EXPECT_GT(candidate.at[1], 1) << candidate.name;
  }
  EXPECT_TRUE(ticks);
  EXPECT_TRUE(crossing);
  EXPECT_TRUE(decoupled);
}

}  // namespace
}  // namespace syncline::tune
