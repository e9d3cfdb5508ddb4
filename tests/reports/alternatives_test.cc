// What the first lines of a tuning say of other trainings.
#include "reports/alternatives.h"

#include <gtest/gtest.h>

#include "core/input/document.h"
#include "core/tune/alternatives.h"
#include "reports/certainty.h"

namespace syncline::reports {
namespace {

tune::Tuning tuned(const std::string& more) {
  const auto document = input::document_from_text(
      "alternatives",
      R"({"name": "alternatives", "workload": {"name": "w", "forward_ms": 5, "tensors": [
        {"name": "b", "shape": [4000000], "backward_us": 4000},
        {"name": "a", "shape": [4000000], "backward_us": 4000}]},
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1, "library": "gloo",
                  "inter": {"latency_us": 50, "bandwidth_gbps": 1}},
      "strategies": [{"name": "dense"}])" +
          more + "}");
  return tune::tune_document(document, {}, "", nullptr);
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Alternatives, StandBehindTheBestThatTrainsTheSame) {
  const tune::Tuning tuning = tuned("");
  EXPECT_TRUE(holds(headline(tuning), "with the same training")) << headline(tuning);
  const std::string beyond = beyond_sentence(tuning);
  EXPECT_TRUE(holds(beyond, "Rounded gradients gain clearly more: 'fp16")) << beyond;
  EXPECT_TRUE(holds(beyond, "accuracy not known here")) << beyond;
}

// A search of the scenario's own may find another training to be the best.
TEST(Alternatives, ABestThatChangesTheTrainingIsNotCalledTheSame) {
  const tune::Tuning tuning =
      tuned(R"(, "search": {"base": "dense", "compression": [{"codec": "dgc"}, "none"]})");
  ASSERT_EQ(tuning.tuned.choice.strategy.compression.codec, "dgc");
  EXPECT_FALSE(holds(headline(tuning), "same training")) << headline(tuning);
  const std::string beyond = beyond_sentence(tuning);
  EXPECT_TRUE(holds(beyond, "That changes the training, accuracy not known here; ")) << beyond;
  const auto* same = tune::best_alternative(tuning, measure::Training::kSame);
  EXPECT_TRUE(holds(beyond, "the best that trains the same: '" + same->strategy.name)) << beyond;
  EXPECT_FALSE(holds(beyond, "Changes of the training gain")) << beyond;
}

}  // namespace
}  // namespace syncline::reports
