// What is said of a search beside its table.
#include "reports/certainty.h"

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
            "The frameworks' own defaults beside the best: pytorch +3.7 % (2.7 to 4.7 %) and fsdp "
            "0.0 % (-1 to 1 %).");
  EXPECT_EQ(of_defaults({{"paddle", -2}, {"pytorch", 3.7}}),
            "The frameworks' own defaults beside the best: paddle -2.0 % (-3 to -1 %) and pytorch "
            "+3.7 % (2.7 to 4.7 %); paddle is faster by what this search held as it is.");
}

}  // namespace
}  // namespace syncline::reports
