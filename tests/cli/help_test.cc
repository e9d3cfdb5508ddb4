// --help fits one screen, in plain words; --help-all names every option and its default.
#include "tests/support/help.h"

#include <gtest/gtest.h>

#include "tests/support/text.h"

namespace syncline::cli {
namespace {

using test::contains;
using test::syncline_run;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

TEST(Help, OfEachVerbFitsOneScreen) {
  for (const auto& verb : test::verbs_in_help()) {
    const auto ran = syncline_run({verb, "--help"});
    EXPECT_EQ(ran.code, 0) << verb << ran.err;
    EXPECT_TRUE(contains(ran.out, verb)) << ran.out;
    const auto lines = lines_of(ran.out);
    EXPECT_LE(lines.size(), 24U) << verb;
    for (const auto& line : lines) EXPECT_LE(line.size(), 80U) << verb << ": " << line;
  }
}

TEST(Help, NoLineOfAllOptionsIsWiderThanAScreen) {
  for (const auto& line : lines_of(syncline_run({"--help-all"}).out)) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(Help, OfTheProgramGroupsTheVerbs) {
  const std::string help = syncline_run({"--help"}).out;
  std::size_t last = 0;
  for (const char* group : {"\nAsk (", "\nMeasure (", "\nApply (", "\nLook up:"}) {
    const std::size_t at = help.find(group);
    ASSERT_NE(at, std::string::npos) << group;
    EXPECT_GT(at, last) << group;
    last = at;
  }
  EXPECT_TRUE(contains(help, "Exit codes"));
  EXPECT_GE(test::verbs_in_help().size(), 17U);
}

TEST(Help, IsPrintedWithoutAVerb) {
  const auto ran = syncline_run({});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, syncline_run({"--help"}).out);
}

// The last line names --help-all exactly where that shows more.
TEST(Help, NamesWhereMoreOptionsAre) {
  for (const auto& verb : test::verbs_in_help()) {
    const std::string common = syncline_run({verb, "--help"}).out;
    const auto shown = test::entries_in_help(common);
    const auto all = test::entries_of(verb);
    const bool more = all.size() > shown.size() + 1;  // --help-all itself
    EXPECT_EQ(common.ends_with("\nMore options: syncline " + verb + " --help-all\n"), more) << verb;
  }
}

// An option without a default leaves something out: a file, a filter, a measurement.
bool needs_no_default(const std::string& key) {
  static const std::set<std::string> values{"FILE", "FOLDER", "KEY=VALUE", "KEY=VALUE..."};
  static const std::set<std::string> names{"--target",     "--utilisation", "--micro-batch-sizes",
                                           "--live",       "--node",        "--line-rate",
                                           "--throughput", "--emit",        "--gpu",
                                           "--net",        "--step",        "--batch",
                                           "--cut",        "--uplink",      "--wrong",
                                           "--part",       "--tp",          "--trace-of",
                                           "--pp",         "--vp",          "--cp",
                                           "--ep",         "--etp",         "--schedule"};
  const std::string value = key.substr(std::min(key.find(' ') + 1, key.size()));
  const bool is_flag = !contains(key, " ");
  if (is_flag || values.contains(value) || value == "FILE...") return true;
  return names.contains(key.substr(0, key.find(' ')));
}

TEST(Help, EachOptionNamesItsDefaultOrNeedsNone) {
  for (const auto& verb : test::verbs_in_help()) {
    for (const auto& entry : test::entries_of(verb)) {
      if (!entry.is_option() || needs_no_default(entry.key)) continue;
      EXPECT_TRUE(contains(entry.text, "(default") || contains(entry.text, "(required)"))
          << verb << " " << entry.key << ": " << entry.text;
    }
  }
}

// Words that mean something here alone: see docs/design.md for the field's.
TEST(Help, SaysItInTheFieldsWords) {
  const std::regex own(
      "\\b(price[ds]?|laws?|book|arms?|doubts?|sway|pinned|anew|told|tells?|says?|remarks?|slip|"
      "obstacle|beside|behind|ahead|holds?|pays?|exchanges?|taken|meet|beat|bye|carriers|leads|"
      "slowed|binds|pieces|belief|truth|what|whose)\\b");
  for (const auto& verb : test::verbs_in_help()) {
    const std::string help = syncline_run({verb, "--help-all"}).out;
    for (const auto& entry : test::entries_in_help(help)) {
      EXPECT_FALSE(std::regex_search(entry.text, own)) << verb << " " << entry.key << entry.text;
      const auto words = std::count(entry.text.begin(), entry.text.end(), ' ') + 1;
      EXPECT_TRUE(words <= 14 || !entry.choices().empty()) << verb << " " << entry.text;
    }
    EXPECT_FALSE(std::regex_search(help.substr(0, help.find('\n')), own)) << help;
  }
}

}  // namespace
}  // namespace syncline::cli
