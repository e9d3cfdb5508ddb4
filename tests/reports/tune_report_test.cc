// What the first lines of a tuning say of other trainings.
#include "reports/tune_report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/input/document.h"
#include "reports/chart/markup.h"
#include "reports/decisions.h"
#include "reports/tune_figures.h"
#include "studies/rows/memory.h"
#include "studies/tune/alternatives.h"
#include "studies/tune/tuning.h"
#include "tests/support/expect.h"

namespace syncline::reports {
namespace {

tune::Tuning tuned(const std::string& more,
                   const std::string& strategies = R"([{"name": "dense"}])") {
  const auto document = input::document_from_text(
      "alternatives",
      R"({"name": "alternatives", "workload": {"name": "w", "forward_ms": 5, "tensors": [
        {"name": "b", "shape": [4000000], "backward_us": 4000},
        {"name": "a", "shape": [4000000], "backward_us": 4000}]},
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1, "library": "gloo",
                  "inter": {"latency_us": 50, "bandwidth_gbps": 1}},
      "strategies": )" +
          strategies + more + "}");
  return tune::tune_document(document, {}, "", nullptr);
}

// Its line stands out, not one that trains otherwise, however fast.
TEST(Alternatives, TheBestOfTheSameTrainingIsMarked) {
  const tune::Tuning tuning = tuned("");
  const Table table = alternatives_of(tuning);
  ASSERT_EQ(table.lines.size(), tuning.alternatives.size());
  for (std::size_t i = 0; i < table.lines.size(); ++i) {
    const bool best = tuning.alternatives[i].strategy.name == tuning.tuned.winner().strategy.name;
    EXPECT_EQ(table.lines[i].tone == Tone::kBest, best) << tuning.alternatives[i].strategy.name;
  }
}

// Its own sentence, unless it is the best of all: then the first one names it.
TEST(Verdicts, TheBestSingleSizeIsNamedIfAnotherRuleIsBetter) {
  tune::Tuning tuning = tuned("");
  const auto said = [&] {
    const auto verdicts = tune_verdicts(tuning);
    return std::ranges::count_if(verdicts, [](const std::string& sentence) {
      return sentence.starts_with("The best single size is ");
    });
  };
  ASSERT_TRUE(tuning.tuned.best_threshold);
  measure::Metrics& metrics = tuning.tuned.best_threshold->metrics;
  metrics.step_time = tuning.tuned.winner().metrics.step_time;
  EXPECT_EQ(said(), 0);
  metrics.step_time *= 1.01;
  EXPECT_EQ(said(), 1);
}

TEST(TuneFigures, BarsAreSortedWithTheirIntervalsAndTheBestMarked) {
  const tune::Tuning tuning = tuned("");
  const auto pictures = figures_of(tuning);
  const chart::Figure& bars = pictures.back().figure;
  ASSERT_EQ(bars.up.best.size(), 1U);
  EXPECT_EQ(bars.up.names[bars.up.best[0]], tuning.tuned.winner().strategy.name);
  ASSERT_EQ(bars.ends.size(), bars.up.names.size());
  std::vector<double> steps(bars.ends.size());
  for (const auto& box : bars.boxes) {
    double& step = steps[static_cast<std::size_t>(box.lane)];
    step = std::max(step, box.to);
  }
  EXPECT_TRUE(std::ranges::is_sorted(steps));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_LT(bars.ends[i].low, steps[i]);
    EXPECT_GT(bars.ends[i].high, steps[i]);
  }
}

TEST(TuneFigures, DdpsOwnCurveIsShownIfDdpIsAsked) {
  const auto has_curve = [](const tune::Tuning& tuning) {
    const auto& series = size_figure(tuning).series;
    return std::ranges::any_of(
        series, [](const auto& one) { return one.name == "DDP's own, over bucket_cap_mb"; });
  };
  EXPECT_FALSE(has_curve(tuned("")));
  EXPECT_TRUE(has_curve(tuned("", R"([{"name": "d", "dialect": "pytorch", "config": {}}])")));
}

TEST(Alternatives, FollowTheBestThatTrainsTheSame) {
  const tune::Tuning tuning = tuned("");
  EXPECT_TRUE(test::says(headline(tuning), "with the same training"));
  const auto beyond = beyond_sentences(tuning);
  ASSERT_EQ(beyond.size(), 2U);
  EXPECT_TRUE(test::says(beyond[0], "Rounded gradients gain clearly more: 'fp16"));
  EXPECT_TRUE(test::says(beyond[1], "Changes of the training gain clearly more: '"));
  for (const auto& sentence : beyond) {
    EXPECT_TRUE(test::says(sentence, "accuracy not known here"));
  }
}

// On a screen of 80 columns what a row gains and costs stays; its step time leaves.
TEST(Alternatives, StayWholeOnANarrowScreen) {
  tune::Tuning tuning = tuned("");
  const std::string table = plain_grid(grid_of(alternatives_of(tuning)), {.width = 80});
  EXPECT_TRUE(test::says(table, "gain", "of gain", "decided", "per GPU", "training",
                         "\n    how to set it", "faster", " GB  rounded",
                         "\n    \"compression\": "));
  EXPECT_TRUE(test::says(table, "Left out at 80 columns: step time; 80 % interval.\n"));
  tuning.alternatives.back().memory.available = 1e6;
  const std::string full = plain_grid(grid_of(alternatives_of(tuning)), {.width = 80});
  EXPECT_TRUE(test::says(full, " of 0.001 GB"));
  // Little room: jobs hold more than is counted.
  measure::Memory& narrow = tuning.alternatives.back().memory;
  narrow.available = narrow.total() * 1.01;
  EXPECT_TRUE(narrow.fits() && narrow.may_not_fit());
  const std::string tight = plain_grid(grid_of(alternatives_of(tuning)), {.width = 80});
  EXPECT_TRUE(test::says(tight, " GB?"));
}

// Every form of an answer has the same rows, and what `explain` advises has the same columns.
TEST(Decisions, HaveTheSameRowsInEveryForm) {
  const tune::Tuning tuning = tuned("");
  const Answer answer = answer_of(tuning);
  const std::string page = html_page(answer, "1.2.3");
  const Json rows = answer.json().at("alternatives");
  ASSERT_EQ(rows.size(), tuning.alternatives.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const tune::Alternative& row = tuning.alternatives[i];
    EXPECT_EQ(rows[i].at("change"), row.strategy.name);
    EXPECT_EQ(rows[i].at("training"), measure::word_of(row.training));
    EXPECT_EQ(rows[i].at("memory_bytes").at("total"), exact(row.memory.total()));
    EXPECT_TRUE(test::says(page, chart::escape(row.strategy.name), chart::escape(row.set_with)));
    if (i == 0) continue;
    EXPECT_EQ(rows[i].at("decided"), decided_word(row.gain));
    EXPECT_EQ(rows[i].at("set_with"), row.set_with);
  }
  EXPECT_EQ(decided_word({1.01, 1.2}), "faster");
  EXPECT_EQ(decided_word({0.9, 1.2}), "open");
  EXPECT_EQ(decided_word({0.8, 0.99}), "slower");
}

// A baseline that does not fit is nothing to stay with.
TEST(Headline, DoesNotStayWithWhatDoesNotFit) {
  tune::Tuning tuning = tuned(R"(, "search": {"streams": [1, 2], "confirm": 0})");
  EXPECT_TRUE(test::says(headline(tuning), "Nothing to gain"));
  tune::Ranked other = tuning.tuned.baseline;
  other.strategy.name = "sharded";
  other.strategy.exchange = Strategy::Exchange::kSharded;
  tuning.tuned.ranking.insert(tuning.tuned.ranking.begin(), other);
  EXPECT_TRUE(test::says(headline(tuning), "No worthwhile gain"));
  const auto room = [&](const Strategy& strategy) {
    return measure::memory_of(tuning.scenario, strategy).states();
  };
  ASSERT_LT(room(other.strategy), room(tuning.tuned.baseline.strategy));
  tuning.scenario.cluster.device.memory_size = room(other.strategy);
  EXPECT_TRUE(test::says(headline(tuning), "'sharded' is the best found that fits"));
  EXPECT_TRUE(test::says(headline(tuning), "'dense' ("));
  tuning.scenario.cluster.device.memory_size = room(other.strategy) / 2;
  tuning.shortage = {"'dense' needs much", "", "'FSDP2' needs little and fits: --set x=y", false};
  EXPECT_TRUE(test::says(headline(tuning), "Nothing here fits in memory: 'dense' needs much",
                         "fits: --set x=y."));
}

// Of two the surer one, where the faster one may also be slower than the baseline.
// However the answer goes on.
TEST(Headline, SaysThatTheNetworkCannotCarryTheTraining) {
  tune::Tuning tuning = tuned("");
  tune::Ranked& best = tuning.tuned.ranking.front();
  best.metrics.exposed = best.metrics.step_time / 2;
  EXPECT_TRUE(test::lacks(headline(tuning), "cannot carry"));
  best.metrics.exposed = 0.99 * best.metrics.step_time;
  const std::string slow =
      "The network cannot carry this training: 99.0 % of each step waits for it.";
  EXPECT_TRUE(headline(tuning).starts_with(slow)) << headline(tuning);
  EXPECT_TRUE(test::says(headline(tuning), "Nothing to gain"));
  best.strategy.name = "another";
  EXPECT_TRUE(headline(tuning).starts_with(slow)) << headline(tuning);
  EXPECT_TRUE(test::says(headline(tuning), "'another'"));
}

TEST(Alternatives, ListedFirstAreCertain) {
  tune::Tuning tuning = tuned("");
  tune::Alternative risky = *tune::best_alternative(tuning, measure::TrainingChange::kRounded);
  risky.strategy.name = "risky";
  risky.metrics.step_time *= 0.8;
  risky.clearly_faster = false;
  tuning.alternatives.push_back(risky);
  const auto beyond = beyond_sentences(tuning);
  ASSERT_EQ(beyond.size(), 2U);
  EXPECT_TRUE(test::says(beyond[0], "Rounded gradients gain clearly more: 'fp16"));
}

// A search of the scenario's own may find another training to be the best.
TEST(Alternatives, ABestThatChangesTheTrainingIsNotCalledTheSame) {
  const tune::Tuning tuning =
      tuned(R"(, "search": {"base": "dense", "compression": [{"codec": "dgc"}, "none"]})");
  ASSERT_EQ(tuning.tuned.winner().strategy.compression.codec, "dgc");
  EXPECT_TRUE(test::lacks(headline(tuning), "same training"));
  std::string beyond;
  for (const auto& sentence : beyond_sentences(tuning)) beyond += sentence;
  EXPECT_TRUE(test::says(beyond, "That changes the training, accuracy not known here; "));
  const auto* same = tune::best_alternative(tuning, measure::TrainingChange::kSame);
  const bool none = same == &tuning.alternatives.front();
  const std::string words = none ? "nothing that trains the same beats the baseline"
                                 : "the best that trains the same: '" + same->strategy.name;
  EXPECT_TRUE(test::says(beyond, words));
  EXPECT_TRUE(test::lacks(beyond, "Changes of the training gain"));
}

// What is said of a search beside its table.

std::string of_defaults(const std::vector<std::pair<const char*, double>>& losses) {
  tune::Tuning tuning;
  for (const auto& [dialect, percent] : losses) {
    tuning.defaults.push_back({{}, dialect, {}, {}, percent, {percent - 1, percent + 1}});
  }
  const auto sentences = certainty_sentences(tuning);
  const auto found = std::find_if(sentences.begin(), sentences.end(), [](const auto& sentence) {
    return sentence.starts_with("The frameworks' own defaults");
  });
  return found == sentences.end() ? "" : *found;
}

TEST(Certainty, ADefaultThatIsFasterThanTheBestIsExplained) {
  EXPECT_EQ(of_defaults({}), "");
  EXPECT_EQ(of_defaults({{"pytorch", 3.7}, {"fsdp", -0.04}}),
            "The frameworks' own defaults against the best: pytorch +3.7 % (2.7 to 4.7 %) and fsdp "
            "0.0 % (-1 to 1 %).");
  EXPECT_EQ(of_defaults({{"paddle", -2}, {"pytorch", 3.7}}),
            "The frameworks' own defaults against the best: paddle -2.0 % (-3 to -1 %) and pytorch "
            "+3.7 % (2.7 to 4.7 %); paddle is faster by a knob that this search did not vary.");
}

std::string of_sizes(const std::vector<tune::SizeRange>& ranges) {
  tune::Tuning tuning;
  tuning.tuned.curve = {{0, 1}, {kGiB, 1}};
  tuning.certainty.as_good = ranges;
  return certainty_sentences(tuning).front();
}

TEST(Certainty, EveryRangeOfSizesIsReported) {
  EXPECT_EQ(of_sizes({{0, kGiB}}),
            "With these settings buckets of any size are within 1.0 % of the best.");
  EXPECT_EQ(of_sizes({{kMiB, kMiB}}),
            "With these settings buckets of 1 MiB are best, and no other size is within 1.0 %.");
  EXPECT_EQ(of_sizes({{kMiB, 2 * kMiB}, {4 * kMiB, 4 * kMiB}}),
            "With these settings buckets from 1 MiB to 2 MiB and of 4 MiB are within 1.0 % "
            "of the best.");
  const std::string many = of_sizes({{1, 1}, {4, 8}, {16, 32}, {64, 128}, {256, 512}});
  EXPECT_TRUE(test::says(many, "1 narrower range"));
}

}  // namespace
}  // namespace syncline::reports
