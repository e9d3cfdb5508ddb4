// What is said of a search beside its table.
#include "reports/tune_report.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace syncline::reports {
namespace {

std::string of_defaults(const std::vector<std::pair<const char*, double>>& losses) {
  tune::Tuning tuning;
  for (const auto& [dialect, percent] : losses) {
    tuning.defaults.emplace_back().dialect = dialect;
    tuning.certainty.defaults.push_back({percent, {percent - 1, percent + 1}});
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

TEST(Certainty, EveryRangeOfSizesIsTold) {
  EXPECT_EQ(of_sizes({{0, kGiB}}),
            "With these knobs buckets of any size are within 1.0 % of the best of them.");
  EXPECT_EQ(of_sizes({{kMiB, kMiB}}),
            "With these knobs buckets of 1 MiB are best, and no other size is within 1.0 %.");
  EXPECT_EQ(of_sizes({{kMiB, 2 * kMiB}, {4 * kMiB, 4 * kMiB}}),
            "With these knobs buckets from 1 MiB to 2 MiB and of 4 MiB are within 1.0 % "
            "of the best of them.");
  const std::string many = of_sizes({{1, 1}, {4, 8}, {16, 32}, {64, 128}, {256, 512}});
  EXPECT_NE(many.find("1 narrower range"), std::string::npos) << many;
}

}  // namespace
}  // namespace syncline::reports
