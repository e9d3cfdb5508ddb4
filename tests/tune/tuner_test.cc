// The tuner: at the optimum on the measured traces, the same answer with and without pruning, and
// nothing evaluated that its own bounds contradict.
#include "studies/tune/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/collective/critical_path.h"
#include "core/executor.h"
#include "core/metrics/bound.h"
#include "core/plan.h"
#include "formats/input/document.h"
#include "formats/input/scenario_json.h"
#include "studies/tune/dialect_search.h"
#include "studies/tune/thresholds.h"
#include "tests/support/one_stream.h"
#include "tests/support/traces.h"
#include "tests/support/tunings.h"

namespace syncline::tune {
namespace {

using test::TraceCase;

constexpr const char* kFusionSearch =
    R"(, "search": {"fusion": {"optimum": true, "size_mb": "breakpoints",
                               "close": ["before", "after"]}, "confirm": 0})";

Tuned tuned(const input::Document& document, TuneOptions options = {}) {
  const test::Read read(document);
  return tune(read.scenario, read.search, options);
}

class TunedTrace : public testing::TestWithParam<TraceCase> {};

// Through the ordinary way: a scenario, its planner, its executor. The makespan of the CSV is the
// step without forward pass and update.
TEST_P(TunedTrace, IsAtTheOptimumAndAtTheBestThreshold) {
  const TraceCase& row = GetParam();
  const input::Document document = test::trace_document(row, kFusionSearch);
  const Scenario scenario = input::parse_scenario(document);
  const Seconds rest = scenario.workload.forward + scenario.workload.update;
  TuneOptions options;
  options.top = 3;
  const Tuned result = tuned(document, options);
  ASSERT_TRUE(result.complete);
  EXPECT_TRUE(result.optimum_exact);

  const Seconds optimum = row.number("optimum_ms") * kMillisecond;
  ASSERT_TRUE(result.best_explicit && result.best_threshold);
  const Seconds explicit_buckets = result.best_explicit->metrics.step_time - rest;
  EXPECT_NEAR(explicit_buckets / optimum, 1, 1e-5);  // the CSV prints microseconds
  EXPECT_NEAR((result.one_stream_optimum - rest) / optimum, 1, 1e-5);
  EXPECT_NEAR(result.optimum / result.one_stream_optimum, 1, 1e-9);
  EXPECT_LE(result.winner().metrics.step_time, result.optimum * 1.0061) << "round, and simple";

  const auto problem = test::step_trace(scenario.workload).gradients;
  const test::AffineCost affine{row.number("alpha"), row.number("beta")};
  const Seconds exact = best_fusion(problem, affine).finish;
  EXPECT_NEAR(explicit_buckets / exact, 1, 1e-9);

  const double least =
      std::min(row.number("best_thr_before_pct"), row.number("best_thr_after_pct"));
  const Seconds threshold = result.best_threshold->metrics.step_time - rest;
  const double round = 0.5 * result.best_threshold->metrics.step_time / threshold;  // may cost that
  EXPECT_GE(percent_above(threshold, exact), least - 0.0051);
  EXPECT_LE(percent_above(threshold, exact), least + round * 1.01 + 0.0051);
  for (const auto& [kind, column] : {std::pair{FusionKind::kSizeBefore, "best_thr_before_pct"},
                                     std::pair{FusionKind::kSizeAfter, "best_thr_after_pct"}}) {
    const Ranked& best = result.best_of_kind.at(kind);
    EXPECT_NEAR(percent_above(best.metrics.step_time - rest, exact), row.number(column), 0.0051)
        << column;
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, TunedTrace, testing::ValuesIn(test::trace_cases()));

// A faster strategy that the device has no room for is not recommended where another one fits.
TEST(Tuner, RecommendsWhatFits) {
  const auto choice = [](const char* gigabytes) {
    const input::Document document = input::document_from_text("t", std::string(R"({
      "name": "t",
      "workload": {"name": "w", "forward_ms": 100, "backward_ms": 200, "dtype": "fp16",
        "tensors": [{"name": "layers.1.weight", "shape": [10000, 10000]},
                    {"name": "layers.0.weight", "shape": [10000, 10000]}]},
      "cluster": {"name": "c", "nodes": 8, "gpus_per_node": 1,
        "inter": {"latency_us": 10, "bandwidth_gbps": 100},
        "device": {"memory_gbytes": )") + gigabytes + R"(}},
      "strategies": [
        {"name": "ddp", "dialect": "pytorch", "config": {"gradient_as_bucket_view": true}},
        {"name": "fsdp", "dialect": "fsdp", "config": {"units": ["layers.*"]}}],
      "search": {"base": "ddp", "fusion": {"size_mb": "breakpoints"}, "confirm": 0}})");
    return tuned(document).winner().strategy;
  };
  EXPECT_EQ(choice("80").exchange, Strategy::Exchange::kAllReduce);
  EXPECT_EQ(choice("3").name, "fsdp");
}

// With other keys of the cluster, and further ones of the strategy.
input::Document small_document(const std::string& search, const Json& cluster = {},
                               const std::string& base = "") {
  Json root = test::small_search(search, base);
  for (const auto& [key, value] : cluster.items()) root["cluster"][key] = value;
  return input::document_of("small", root);
}

constexpr const char* kJointSearch = R"({
    "fusion": {"optimum": true, "size_mb": "breakpoints", "close": ["after", "before"],
               "count": "breakpoints", "rules": ["none", "layer", "one"]},
    "streams": [1, 2, 3], "algorithm": ["ring", "halving_doubling", "double_binary_tree"],
    "hierarchy": ["flat", {"form": "sharded", "group_size": 4}],
    "compression": ["none", {"codec": "fp16"}, {"codec": "dgc", "sparsity": [0.99]}],
    "local_sgd": ["none", {"period": 4}], "confirm": 0})";

struct Job {
  const char* name;
  Json cluster;
  const char* base;
};

class PrunedAndExhaustive : public testing::TestWithParam<Job> {};

TEST_P(PrunedAndExhaustive, Agree) {
  const input::Document document =
      small_document(kJointSearch, GetParam().cluster, GetParam().base);
  TuneOptions all, some;
  all.method = TuneOptions::Method::kExhaustive;
  some.method = TuneOptions::Method::kPruned;
  const Tuned everything = tuned(document, all);
  const Tuned pruned = tuned(document, some);
  EXPECT_EQ(everything.points, pruned.points);
  EXPECT_EQ(everything.evaluations, everything.points);
  EXPECT_LT(pruned.evaluations, everything.evaluations / 2);
  test::expect_same_ranking(pruned, everything);
  for (const auto kind : {&Tuned::best_threshold, &Tuned::best_explicit}) {
    const Ranked& own = *(pruned.*kind);
    EXPECT_NEAR(own.metrics.step_time / (everything.*kind)->metrics.step_time, 1, 1e-9)
        << own.strategy.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, PrunedAndExhaustive,
    testing::Values(Job{"plain", {}, ""},
                    Job{"with_stragglers", {{"jitter", {{"relative", 0.1}}}}, ""},
                    Job{"without_overlap", {}, R"(, "overlap": false)"}),
    [](const auto& i) { return std::string(i.param.name); });

// A bound above what the executor says would prune the best.
TEST(Tuner, BoundsAreBoundsAndExactConfigurationsAreExact) {
  const auto [scenario, search] = test::Read(small_document(kJointSearch));
  Evaluator model(scenario);
  int exact = 0;
  for (const auto& strategy :
       strategies_of_configurations(search, scenario.strategies.front(), scenario)) {
    const Configuration configuration(scenario, strategy, model.cache());
    auto choices = rule_choices(search, configuration);
    if (auto choice = explicit_choice(configuration)) choices.push_back(std::move(*choice));
    for (const auto& choice : choices) {
      Strategy own = strategy;
      own.fusion = choice.fusion;
      SCOPED_TRACE(input::configuration_words(own, scenario.strategies.front()) + " " +
                   fusion_words(own.fusion));
      const Seconds step = model.step_time(own);
      const Seconds bound = configuration.lower_bound(group_ends(configuration, choice.fusion));
      ASSERT_LE(bound, step * (1 + 1e-9));
      if (!configuration.exact() || choice.kind == FusionKind::kRule) continue;
      ASSERT_NEAR(bound / step, 1, 1e-9);
      ++exact;
    }
  }
  EXPECT_GT(exact, 100) << "exact arms were compared";
}

// Bounds that are found together are those of a configuration with each number of streams.
TEST(Tuner, BoundsOfAllStreamsAtOnceAreTheirOwn) {
  const auto [scenario, search] = test::Read(small_document(kJointSearch));
  Evaluator model(scenario);
  const std::vector<int> streams{1, 2, 3, 4};
  Configuration together(scenario, scenario.strategies.front(), model.cache());
  for (const auto& choice : rule_choices(search, together)) {
    const GroupEnds ends = group_ends(together, choice.fusion);
    const auto bounds = together.lower_bounds(ends, streams);
    for (std::size_t k = 0; k < streams.size(); ++k) {
      Strategy strategy = scenario.strategies.front();
      strategy.streams = streams[k];
      const Configuration alone(scenario, strategy, model.cache());
      ASSERT_EQ(alone.lower_bound(ends), bounds[k]) << streams[k];
      together.set_streams(streams[k]);
      ASSERT_EQ(together.lower_bound(ends), bounds[k]) << streams[k];
      ASSERT_EQ(together.exact(), alone.exact()) << streams[k];
    }
  }
}

// A model of more than kMaxExact gradients: what is known of buckets' costs is known by size.
Scenario scenario_of_many(int gradients) {
  std::mt19937 random(7);
  input::Document document = small_document("{}");
  Json& tensors = document.root["workload"]["tensors"];
  tensors = Json::array();
  for (int i = 0; i < gradients; ++i) {
    tensors.push_back({{"name", "l" + std::to_string(i / 4) + "." + std::to_string(i)},
                       {"shape", {1 + static_cast<int>(random() % 400000)}},
                       {"backward_us", 5 + random() % 40}});
  }
  return input::parse_scenario(document);
}

TEST(Tuner, BoundsOfManyGradientsAreBoundsAndClose) {
  const Scenario scenario = scenario_of_many(700);
  Evaluator model(scenario);
  Search search;
  search.breakpoints = true;
  search.closes = {Fusion::Close::kAfter};
  for (const char* algorithm : {"ring", "halving_doubling", "double_binary_tree"}) {
    Strategy strategy = scenario.strategies.front();
    strategy.algorithm = algorithm;
    const Configuration configuration(scenario, strategy, model.cache());
    EXPECT_FALSE(configuration.exact());
    const auto choices = rule_choices(search, configuration);
    ASSERT_GT(choices.size(), 300u);
    for (std::size_t i = 0; i < choices.size(); i += 11) {
      const Strategy candidate = apply_fusion(strategy, choices[i].fusion);
      const Seconds step = model.step_time(candidate);
      const Seconds bound = configuration.lower_bound(group_ends(configuration, choices[i].fusion));
      ASSERT_LE(bound, step * (1 + 1e-9)) << algorithm << " " << fusion_words(candidate.fusion);
      EXPECT_GT(bound, step * 0.99) << algorithm << " " << fusion_words(candidate.fusion);
    }
  }
}

// 150 gradients of as many sizes on 16 nodes of 8: 11,325 buckets of neighbours.
Scenario scenario_of_many_sizes() {
  input::Document document = small_document("{}");
  document.root["cluster"]["nodes"] = 16;
  document.root["cluster"]["gpus_per_node"] = 8;
  document.root["cluster"]["intra"] = {{"latency_us", 2}, {"bandwidth_gbps", 2400}};
  document.root["cluster"]["inter"] = {{"latency_us", 5}, {"bandwidth_gbps", 400}};
  Json& tensors = document.root["workload"]["tensors"];
  tensors = Json::array();
  for (int i = 0; i < 150; ++i) {
    tensors.push_back(
        {{"name", "l" + std::to_string(i)}, {"shape", {1000 + i, 100}}, {"backward_us", 50}});
  }
  return input::parse_scenario(document);
}

TEST(Tuner, TheOptimumWalksTheLinksForFewOfItsSizes) {
  const Scenario scenario = scenario_of_many_sizes();
  collective::CostCache cache(scenario.cluster);
  for (const char* algorithm : {"ring", "halving_doubling", "double_binary_tree"}) {
    Strategy strategy = scenario.strategies.front();
    strategy.algorithm = algorithm;
    const Configuration configuration(scenario, strategy, cache);
    const std::size_t before = collective::walks();
    ASSERT_FALSE(configuration.optimum().ends.empty());
    EXPECT_LT(collective::walks() - before, 1500u) << algorithm;
  }
}

// A bound walks the links for each size of bucket. Only rows that are shown have one.
TEST(Tuner, CandidatesAreEvaluatedWithoutTheirBounds) {
  const Scenario scenario = scenario_of_many_sizes();
  Evaluator model(scenario);
  const Strategy& strategy = scenario.strategies.front();
  const auto first = model.metrics_of(strategy);
  EXPECT_TRUE(std::isnan(first.lower_bound));
  const std::size_t before = collective::walks();
  model.evaluate(strategy);
  EXPECT_EQ(collective::walks(), before) << "all sizes are known";
}

TEST(Tuner, ShownCandidatesHaveABound) {
  const input::Document document = small_document(R"({"fusion": {"size_mb": "breakpoints"}})");
  const Scenario scenario = input::parse_scenario(document);
  collective::CostCache cache(scenario.cluster);
  const Tuned result = tuned(document);
  std::vector<Ranked> shown = result.ranking;
  shown.push_back(result.baseline);
  for (const Ranked& each : shown) {
    EXPECT_EQ(each.metrics.lower_bound,
              measure::lower_bound_of(scenario, each.strategy, each.metrics.step_time, cache))
        << each.strategy.name;
  }
}

// The work of a search does not grow with the model: larger models have fewer candidates evaluated.
TEST(Tuner, WorkLimitsTheCandidatesOfLargeModels) {
  const Scenario scenario = scenario_of_many(700);
  Search search;
  search.base = scenario.baseline;
  search.breakpoints = true;
  search.closes = {Fusion::Close::kAfter};
  TuneOptions options;
  options.work = 7000;
  const Tuned tuned = tune(scenario, search, options);
  EXPECT_EQ(tuned.evaluations, 10u);
  EXPECT_FALSE(tuned.complete);
}

// Where the configuration is exact no contiguous fusion is better than its optimum: all 2^11 of
// them.
TEST(Tuner, TheOptimumIsTheBestOfAllFusions) {
  for (const char* base :
       {"", R"(, "overlap": false)", R"(, "hierarchy": {"form": "sharded", "group_size": 4})",
        R"(, "local_sgd": {"period": 2})"}) {
    const input::Document document = small_document("{}", {}, base);
    const Scenario scenario = input::parse_scenario(document);
    Evaluator model(scenario);
    const Strategy& strategy = scenario.strategies.front();
    const Configuration configuration(scenario, strategy, model.cache());
    ASSERT_TRUE(configuration.exact()) << base;
    const auto step_of = [&](const std::vector<std::size_t>& ends) {
      Strategy fused = strategy;
      fused.fusion = by_ends(ends);
      return model.step_time(fused);
    };
    const Seconds optimum = step_of(configuration.optimum().ends);
    EXPECT_NEAR(configuration.step_time(configuration.optimum().finish) / optimum, 1, 1e-9) << base;
    Seconds best = optimum;
    for (std::size_t cuts = 0; cuts < (1u << 11); cuts += 3) {
      std::vector<std::size_t> ends;
      for (std::size_t i = 0; i < 11; ++i) {
        if (cuts >> i & 1) ends.push_back(i);
      }
      ends.push_back(11);
      best = std::min(best, step_of(ends));
    }
    EXPECT_GE(best, optimum * (1 - 1e-9)) << base;
  }
}

// Whoever costs the list, one after the other or in processes, the answer is the same.
TEST(Tuner, EvaluatedTogetherOrOneByOneIsTheSame) {
  const input::Document document = small_document(kJointSearch);
  for (const std::size_t budget : {std::size_t{0}, std::size_t{50}}) {
    TuneOptions one, together;
    one.method = together.method = TuneOptions::Method::kExhaustive;
    one.budget = together.budget = budget;
    together.parallel_map = run::over_processes(3);
    const Tuned a = tuned(document, one), b = tuned(document, together);
    EXPECT_EQ(a.evaluations, b.evaluations);
    EXPECT_EQ(a.complete, b.complete);
    EXPECT_EQ(a.left_bound, b.left_bound);
    ASSERT_EQ(a.ranking.size(), b.ranking.size());
    for (std::size_t i = 0; i < a.ranking.size(); ++i) {
      EXPECT_EQ(a.ranking[i].strategy.name, b.ranking[i].strategy.name);
      EXPECT_EQ(a.ranking[i].metrics.step_time, b.ranking[i].metrics.step_time);
    }
  }
}

TEST(Tuner, ABudgetIsKeptAndReported) {
  TuneOptions options;
  options.budget = 7;
  const Tuned result = tuned(small_document(kJointSearch), options);
  EXPECT_EQ(result.evaluations, 7u);
  EXPECT_FALSE(result.complete);
  EXPECT_LE(result.left_bound, result.winner().metrics.step_time);
  EXPECT_LE(result.left_bound, tuned(small_document(kJointSearch)).winner().metrics.step_time);
}

// What changes no figure is no other answer: of streams that are never busy together the fewest.
TEST(Tuner, EqualCandidatesAreRankedOnce) {
  const Tuned result = tuned(small_document(
      R"({"fusion": {"rules": ["none", "one"], "size_mb": [0.1, 1]}, "streams": [4, 3, 2, 1],
          "confirm": 0})"));
  const auto alike = [](const measure::Metrics& a, const measure::Metrics& b) {
    return std::abs(a.step_time / b.step_time - 1) < 1e-9 && a.collectives == b.collectives &&
           std::abs(a.communication / b.communication - 1) < 1e-9 &&
           a.bytes_on_wire == b.bytes_on_wire;
  };
  ASSERT_GE(result.ranking.size(), 2U);
  for (std::size_t i = 0; i < result.ranking.size(); ++i) {
    const Ranked& one = result.ranking[i];
    for (std::size_t k = i + 1; k < result.ranking.size(); ++k) {
      EXPECT_FALSE(alike(one.metrics, result.ranking[k].metrics))
          << one.strategy.name << " and " << result.ranking[k].strategy.name;
    }
    if (one.metrics.collectives == 1) {
      EXPECT_EQ(one.strategy.streams, 1) << one.strategy.name;
    }
  }
}

// What a simulation would take long for is left out from the end: the baseline, then the last of
// the best.
TEST(Tuner, ConfirmsAsFarAsTheWorkGoes) {
  const input::Document document = small_document(
      R"({"fusion": {"rules": ["none", "one"], "size_mb": [0.1, 1]}, "streams": [1, 2],
          "confirm": 3})");
  const auto confirmed = [](const Tuned& result) {
    return std::ranges::count_if(result.ranking,
                                 [](const Ranked& ranked) { return ranked.confirmed.has_value(); });
  };
  TuneOptions options;
  options.confirm = run::make_model_executor;
  const Tuned all = tuned(document, options);
  ASSERT_GE(all.ranking.size(), 3U);
  EXPECT_EQ(confirmed(all), 3);
  EXPECT_TRUE(all.baseline.confirmed && all.confirmed_all);
  EXPECT_NEAR(*all.ranking[1].confirmed, all.ranking[1].metrics.step_time, 1e-12);

  const int ranks = input::parse_scenario(document).cluster.ranks();
  for (const std::size_t few : {0u, 1u, 2u}) {
    options.confirm_work = 0.5;
    for (std::size_t i = 0; i < few; ++i) {
      const Ranked& ranked = all.ranking[i];
      options.confirm_work +=
          ranked.metrics.collectives * (ranked.strategy.streams > 1 ? ranks : 1);
    }
    const Tuned some = tuned(document, options);
    EXPECT_EQ(confirmed(some), static_cast<std::ptrdiff_t>(few));
    EXPECT_FALSE(some.confirmed_all || some.baseline.confirmed);
  }
}

// However many configurations come to the same figures, as many rows as were asked for are ranked,
// and they are those of a walk over everything.
TEST(Tuner, PrunedSearchRanksTheRequestedNumber) {
  const std::string search = R"({"fusion": {"size_mb": "breakpoints", "rules": ["none", "one"]},
      "streams": [1, 2, 3, 4, 5, 6, 7, 8], "confirm": 0})";
  for (const std::size_t top : {1u, 2u, 5u, 20u}) {
    TuneOptions all, some;
    all.top = some.top = top;
    all.method = TuneOptions::Method::kExhaustive;
    some.method = TuneOptions::Method::kPruned;
    for (const Json& cluster : {Json(), Json{{"jitter", {{"relative", 0.3}}}}}) {
      SCOPED_TRACE(std::to_string(top) + cluster.dump());
      test::expect_same_ranking(tuned(small_document(search, cluster), some),
                                tuned(small_document(search, cluster), all));
    }
  }
}

// A size is one that a person would write, unless those near it cost more than 0.5 % of a step.
TEST(Tuner, ProposesRoundSizes) {
  for (const char* close : {"after", "before"}) {
    for (const double gbps : {2.0, 5.0, 10.0, 25.0}) {
      input::Document document =
          small_document(R"({"fusion": {"size_mb": "breakpoints", "close": [")" +
                         std::string(close) + R"("]}, "confirm": 0})");
      document.root["cluster"]["inter"]["bandwidth_gbps"] = gbps;
      const Scenario scenario = input::parse_scenario(document);
      const Tuned result = tuned(document);
      Evaluator model(scenario);
      for (const auto& ranked : result.ranking) {
        const Strategy& found = ranked.strategy;
        if (found.name == "base") continue;
        ASSERT_EQ(found.fusion.rule, Fusion::Rule::kSize) << found.name;
        for (const Bytes size : rounder_sizes(found.fusion.size)) {
          if (size == found.fusion.size) break;  // a whole number
          Strategy round = found;
          round.fusion.size = size;
          EXPECT_GT(model.step_time(round), result.fastest * 1.005)
              << size << " rather than " << found.name;
        }
      }
    }
  }
}

// The best stands first, nothing below it is faster, and no candidate is by more than what is left
// for a simple strategy (0.1 %) of a round size (0.5 %).
TEST(Tuner, TheBestIsTheFirstOfItsTable) {
  for (const double gbps : {0.1, 1.0, 10.0, 100.0, 1000.0}) {
    input::Document document = small_document(kJointSearch);
    document.root["cluster"]["inter"]["bandwidth_gbps"] = gbps;
    const Tuned result = tuned(document);
    EXPECT_LE(result.winner().metrics.step_time, result.fastest * 1.0061) << gbps;
    for (std::size_t i = 1; i < result.ranking.size(); ++i) {
      EXPECT_LE(result.ranking[i - 1].metrics.step_time, result.ranking[i].metrics.step_time);
    }
  }
}

// What the user has stays the best while nothing gains more than 0.1 % of a step. The difference of
// two strategies is the same whatever the forward pass takes, its share of the step is not.
TEST(Tuner, ATenthOfAPercentIsNoGain) {
  const auto tuned_after = [](double forward_ms) {
    input::Document document = small_document(R"({"fusion": {"rules": ["none"]}, "confirm": 0})",
                                              {}, R"(, "fusion": {"rule": "one"})");
    document.root["workload"]["forward_ms"] = forward_ms;
    return tuned(document);
  };
  const Tuned near = tuned_after(1);
  const double gained_ms = 1e3 * (near.baseline.metrics.step_time - near.fastest);
  ASSERT_GT(gained_ms, 0.01 * 1e3 * near.fastest);
  for (const double share : {0.0005, 0.0009, 0.0011, 0.002}) {
    const Tuned result = tuned_after(1 + gained_ms / share - 1e3 * near.fastest);
    EXPECT_NEAR(result.baseline.metrics.step_time / result.fastest, 1 + share, 1e-9);
    EXPECT_EQ(result.winner().strategy.name == "base", share < 0.001) << share;
  }
}

// Links that nobody measured do not beat a library that was measured; without a calibration both
// compete.
TEST(Tuner, MeasuredCollectivesAreNotBeatenByUnmeasuredOnes) {
  input::Document document = small_document("{}", {{"library", "nccl"}});
  document.root.erase("search");
  document.root["cluster"]["device"]["name"] = "A100";
  document.root["strategies"].push_back({{"name", "own ring"}, {"algorithm", "ring"}});
  Scenario scenario = input::parse_scenario(document);
  const Search search = default_search(scenario);
  ASSERT_EQ(search.algorithms.size(), 2u);
  EXPECT_TRUE(tune(scenario, search, {}).unmeasured.empty());
  scenario.cluster.cost_model =
      [](const collective::Collective& asked) -> std::optional<CollectiveTime> {
    if (!asked.nccl) return std::nullopt;
    return CollectiveTime{.time = 1e-2 + 1e-9 * static_cast<double>(asked.bytes())};
  };
  const Tuned result = tune(scenario, search, {});
  for (const auto& ranked : result.ranking) EXPECT_EQ(ranked.strategy.algorithm, "nccl");
  EXPECT_EQ(result.unmeasured, (std::vector<std::string>{"'own ring'", "algorithm ring"}));
}

// Each gradient alone, which the sizes begin with, has no size that could be rounder.
TEST(Tuner, ABestWithoutASizeStaysAsItIs) {
  const Scenario scenario =
      input::parse_scenario(input::read_document(SYNCLINE_SOURCE_DIR "/scenarios/first.json"));
  const Tuned result = tune(scenario, default_search(scenario), {});
  EXPECT_EQ(result.winner().strategy.fusion.rule, Fusion::Rule::kNone);
}

TEST(Tuner, ProgressCountsTheBudget) {
  TuneOptions options;
  options.budget = 7;
  std::size_t most = 0, last = 0;
  options.progress = [&](std::size_t done, std::size_t wanted) { last = done, most = wanted; };
  const Tuned result = tuned(small_document(kJointSearch), options);
  ASSERT_GT(result.points, 100U);
  EXPECT_EQ(most, 7U);
  EXPECT_EQ(last, 7U);
}

TEST(Tuner, KeepsKnobsThatTheSearchDoesNotName) {
  const input::Document document =
      small_document(R"({"streams": [1, 2], "confirm": 0})", {},
                     R"(, "fusion": {"rule": "size", "size_mb": 0.5}, "algorithm": "to_one")");
  const Tuned result = tuned(document);
  EXPECT_EQ(result.points, 3u) << "the row itself, and both numbers of streams";
  for (const auto& ranked : result.ranking) {
    EXPECT_EQ(ranked.strategy.fusion.size, kMiB / 2);
    EXPECT_EQ(ranked.strategy.algorithm, "to_one");
  }
}

TEST(Tuner, TheCurveFallsOnTheThresholds) {
  const Tuned result =
      tuned(small_document(R"({"fusion": {"size_mb": "breakpoints"}, "confirm": 0})"));
  ASSERT_GT(result.curve.size(), 5u);
  const Seconds least = std::ranges::min(result.curve, {}, &CurvePoint::step_time).step_time;
  EXPECT_LE(least, result.best_threshold->metrics.step_time * (1 + 1e-9));
  EXPECT_GE(least * 1.0051, result.best_threshold->metrics.step_time);
}

// What is printed as the best is a strategy that a scenario takes, with the same step time.
TEST(Tuner, TheBestAsJsonReadsBackTheSame) {
  for (const char* search :
       {kJointSearch, R"({"fusion": {"size_mb": "breakpoints", "close": ["before"]}})",
        R"({"fusion": {"count": "breakpoints"}})",
        R"({"compression": [{"codec": "dgc", "sparsity": [0.9], "encode_launches": 14}]})"}) {
    input::Document document = small_document(search);
    const Tuned result = tuned(document);
    for (const auto& ranked : result.ranking) {
      document.root["strategies"] = Json::array({input::strategy_json(ranked.strategy)});
      document.root.erase("search");
      const Scenario again = input::parse_scenario(document);
      EXPECT_EQ(step_by_model(again, again.strategies.front()), ranked.metrics.step_time)
          << ranked.strategy.name;
    }
  }
}

// Each dialect's configuration, read by that dialect inside a scenario, predicts what was said.
TEST(Tuner, EmittedConfigurationsReadBackTheSame) {
  for (const char* base : {"", R"(, "streams": 3)", R"(, "compression": {"codec": "fp16"})"}) {
    input::Document document =
        small_document(R"({"fusion": {"optimum": true}, "confirm": 0})", {}, base);
    const Scenario scenario = input::parse_scenario(document);
    const Tuned result = tuned(document);
    Evaluator model(scenario);
    for (const char* name : {"paddle", "mindspore", "pytorch", "horovod"}) {
      const Emitted emitted =
          best_config(*dialect::find_dialect(name), result.winner().strategy, Json(), model);
      document.root["strategies"] =
          Json::array({{{"name", "back"}, {"dialect", name}, {"config", emitted.config}}});
      document.root.erase("search");
      const Scenario again = input::parse_scenario(document);
      const Seconds step = model.step_time(again.strategies.front());
      EXPECT_EQ(step, emitted.step_time) << name << base << emitted.config;
      EXPECT_EQ(emitted.exact, emitted.difference.empty()) << name;
      // One flat ring with any buckets is what MindSpore can say.
      if (std::string(base).empty() && std::string(name) == "mindspore") {
        EXPECT_TRUE(emitted.exact) << emitted.difference;
        EXPECT_NEAR(step / result.winner().metrics.step_time, 1, 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace syncline::tune
