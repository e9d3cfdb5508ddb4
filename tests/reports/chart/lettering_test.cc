#include "reports/chart/markup.h"

#include <gtest/gtest.h>

namespace syncline::reports::chart {
namespace {

using Lines = std::vector<std::string>;

TEST(Lettering, BreaksAtBlanks) {
  const double room = width_of("one two") + 1;
  EXPECT_EQ(lines_of("one two", room), (Lines{"one two"}));
  EXPECT_EQ(lines_of("one two three", room), (Lines{"one two", "three"}));
  EXPECT_EQ(lines_of("", room), (Lines{""}));
}

TEST(Lettering, BreaksWordsThatAreTooWideBetweenLetters) {
  const double room = width_of("aaa") + 1;
  EXPECT_EQ(lines_of("aaaaaaaa", room), (Lines{"aaa", "aaa", "aa"}));
  const std::string umlaut = "\xc3\xa4";
  EXPECT_EQ(lines_of(umlaut + umlaut, width_of(umlaut)), (Lines{umlaut, umlaut}));
}

TEST(Lettering, WideLettersTakeMoreRoom) {
  EXPECT_GT(width_of("WWW"), 2 * width_of("iii"));
  EXPECT_GT(width_of("\xe4\xb8\xad"), width_of("a"));
}

}  // namespace
}  // namespace syncline::reports::chart
