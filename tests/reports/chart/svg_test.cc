#include "reports/chart/figure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "formats/text/visible.h"
#include "reports/chart/markup.h"
#include "tests/support/expect.h"

namespace syncline::reports::chart {
namespace {

const std::string kHostile =
    "</script><script>alert(1)</script> \" onload='x' & ]]> \x01\x7f\xc2\x9b \xff\xfe end";

// Every name of a figure, hostile.
Figure hostile_figure() {
  return {.id = "s-x",
          .title = kHostile,
          .across = {kHostile, Unit::kBytes, true},
          .up = {kHostile, Unit::kSeconds},
          .series = {{.name = kHostile,
                      .points = {{1024, 0.1}, {4096, 0.2}},
                      .dots = true,
                      .labels = {kHostile, kHostile}}},
          .rules = {{kHostile, true, 2048, kGrey}},
          .stretches = {{kHostile, 1024, 2048, kGreen}},
          .keys = {{kHostile, kBlue}}};
}

// Bars in lanes of these names.
Figure lanes(std::vector<std::string> names, std::vector<Box> boxes) {
  return {.id = "s-y",
          .title = "",
          .across = {"time", Unit::kSeconds},
          .up = {.title = "", .names = std::move(names)},
          .boxes = std::move(boxes)};
}

// Well-formed as far as a name can break it: tags balance, attributes hold no markup.
void expect_sound(const std::string& svg) {
  EXPECT_FALSE(not_utf8(svg));
  EXPECT_TRUE(test::lacks(svg, "<script", "nan", "inf"));
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z]+)((?:\\s+[a-zA-Z:-]+=\"[^\"<>]*\")*)\\s*(/?)>|<");
  std::string rest = svg;
  // The style sheet has its own letters.
  const std::size_t style = rest.find("<style>");
  if (style != std::string::npos) rest.erase(style, rest.find("</style>") + 8 - style);
  for (std::sregex_iterator at(rest.begin(), rest.end(), tag), end; at != end; ++at) {
    ASSERT_NE((*at)[0].str(), "<")
        << "a tag that is none: " << rest.substr(static_cast<std::size_t>(at->position()), 80);
    const std::string name = (*at)[2];
    if ((*at)[1].length() > 0) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), name);
      open.pop_back();
    } else if ((*at)[4].length() == 0) {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(Svg, NamesOfOthersStayText) {
  for (const auto& figure :
       {hostile_figure(), lanes({kHostile}, {{0, 0, 1, kBlue, kHostile, kHostile}})}) {
    expect_sound(svg_inline(figure));
    expect_sound(svg_file(figure));
    EXPECT_TRUE(test::says(svg_inline(figure), "&lt;/script&gt;"));
  }
}

TEST(Svg, HasTheFiguresWithAllDigits) {
  Figure figure = hostile_figure();
  figure.series[0].points = {{1024, 0.1}, {1048576, 0.30000000000000004}};
  EXPECT_TRUE(
      test::says(svg_inline(figure), "data-points=\"1024,0.1 1048576,0.30000000000000004\""));
}

TEST(Svg, DrawsFromTheLowerLeftToTheUpperRight) {
  const Figure figure{.id = "s-line",
                      .title = "",
                      .across = {"x"},
                      .up = {"y"},
                      .series = {{.name = "a line", .points = {{0, 0}, {10, 10}}}}};
  std::smatch found;
  const std::string svg = svg_inline(figure);
  ASSERT_TRUE(std::regex_search(svg, found,
                                std::regex("class=\"l l0\" d=\"M(\\S+) (\\S+)L(\\S+) (\\S+)\"")))
      << svg;
  EXPECT_EQ(found[1], "0");
  EXPECT_EQ(found[2], "320");
  EXPECT_GT(std::stod(found[3]), 700);
  EXPECT_LT(std::stod(found[4]), 20);
}

TEST(Svg, SeriesBeyondTheColoursHaveOtherStrokes) {
  Figure figure = hostile_figure();
  figure.series.assign(14, figure.series[0]);
  figure.rules.clear();
  for (int i = 0; i < 14; ++i) figure.series[static_cast<std::size_t>(i)].colour = i;
  std::set<std::string> strokes;
  const std::string svg = svg_inline(figure);
  const std::regex line("class=\"(l l[^\"]*)\" d=\"M0 0h22\"");
  for (std::sregex_iterator at(svg.begin(), svg.end(), line), end; at != end; ++at) {
    strokes.insert((*at)[1]);
  }
  EXPECT_EQ(strokes.size(), 14U);
}

TEST(Svg, LegendsAreBelowThePlot) {
  const std::string svg = svg_inline(hostile_figure());
  std::smatch plot, key;
  ASSERT_TRUE(std::regex_search(
      svg, plot,
      std::regex("class=\"plot\" x=\"\\S+\" y=\"(\\S+)\" width=\"\\S+\" height=\"(\\S+)\"")));
  ASSERT_TRUE(std::regex_search(svg, key, std::regex("translate\\(\\S+ (\\S+)\\)")));
  EXPECT_GT(std::stod(key[1]), std::stod(plot[1]) + std::stod(plot[2]));
}

// What stands between tags, in order.
std::string words_of(const std::string& svg) {
  std::string words;
  const std::regex text("<text[^>]*>([^<]*)</text>");
  for (std::sregex_iterator at(svg.begin(), svg.end(), text), end; at != end; ++at) {
    words += (words.empty() ? "" : " ") + (*at)[1].str();
  }
  return words;
}

const std::string kLong =
    "a strategy that says at length what it does with gradients, streams and the network, and then "
    "a_word_without_any_blank_in_it_that_is_wider_than_all_the_room_that_there_is_for_a_name";

TEST(Svg, NamesOfLanesAreNeverCut) {
  const Figure figure = lanes({kLong, "short"}, {{0, 0, 1, kBlue}, {1, 0, 2, kBlue}});
  const std::string svg = svg_inline(figure);
  std::string words = words_of(svg);
  EXPECT_TRUE(test::says(words, "a strategy that says at length what it does"));
  const auto without_blanks = [](std::string text) {
    std::erase(text, ' ');
    return text;
  };
  EXPECT_TRUE(test::says(without_blanks(words), without_blanks(kLong)));
  EXPECT_TRUE(test::lacks(svg, "\xe2\x80\xa6"));
  // Each line ends left of the plot and begins within the picture.
  const std::regex line("<text x=\"(\\S+)\" y=\"\\S+\" text-anchor=\"end\">([^<]*)</text>");
  for (std::sregex_iterator at(svg.begin(), svg.end(), line), end; at != end; ++at) {
    EXPECT_GE(std::stod((*at)[1]) - width_of((*at)[2].str()), 0) << (*at)[2];
  }
}

TEST(Svg, NamesOfColumnsAreUprightIfTheyNeedRoom) {
  Figure figure;
  figure.id = "s-heat";
  figure.up.names = {"one"};
  for (int i = 0; i < 20; ++i) {
    figure.across.names.push_back("bandwidth_gbps " + std::to_string(100 + i));
    figure.cells.push_back({i, 0, 0, "1.00", 1});
  }
  const std::string svg = svg_inline(figure);
  for (const auto& name : figure.across.names) {
    EXPECT_TRUE(test::says(svg, ">" + name + "</text>")) << name;
  }
  EXPECT_TRUE(test::says(svg, "rotate(-90"));
  figure.across.names.resize(3);
  figure.cells.resize(3);
  EXPECT_TRUE(test::lacks(svg_inline(figure), "rotate(-90"));
}

TEST(Svg, LegendsAndTitlesAreNeverCut) {
  Figure figure = hostile_figure();
  figure.title = figure.up.title = figure.series[0].name = kLong;
  figure.rules.clear();
  const std::string words = words_of(svg_file(figure));
  std::size_t found = 0;
  for (std::size_t at = words.find("a strategy that says"); at != std::string::npos;
       at = words.find("a strategy that says", at + 1)) {
    ++found;
  }
  EXPECT_EQ(found, 3U) << words;
  EXPECT_TRUE(test::lacks(words, "\xe2\x80\xa6"));
}

TEST(Svg, TheBestHasAStarAndEndsHaveStrokes) {
  Figure figure = lanes({"fast", "slow"}, {{0, 0, 1, kBlue}, {1, 0, 2, kBlue}});
  figure.up.best = {0};
  figure.ends = {{0, 0.9, 1.2}};
  const std::string svg = svg_inline(figure);
  EXPECT_TRUE(test::says(svg, "class=\"best\">\xe2\x98\x85 fast</text>", ">slow</text>",
                         "data-low=\"0.9\" data-high=\"1.2\""));
}

TEST(Svg, ABarBeyondTheAxisIsBrokenWithItsEnd) {
  Figure figure = lanes({"fast", "slow"}, {{0, 0, 0.1, kBlue}, {1, 0, 3.21, kBlue}});
  const std::string whole = svg_inline(figure);
  EXPECT_TRUE(test::lacks(whole, "3.21 s"));
  figure.across.cut = 0.1;
  const std::string broken = svg_inline(figure);
  EXPECT_TRUE(test::says(broken, ">3.21 s</text>"));
  const auto end_of = [](const std::string& svg) {
    std::smatch found;
    EXPECT_TRUE(std::regex_search(svg, found, std::regex("data-x=\"lin \\S+ (\\S+) s\"")));
    return std::stod(found[1]);
  };
  EXPECT_GT(end_of(whole), 3.21);
  EXPECT_LT(end_of(broken), 0.2);
}

TEST(Svg, AnEmptyFigureIsStillAPicture) {
  expect_sound(svg_file({.id = "s-none",
                         .title = "",
                         .across = {"x", Unit::kBytes, true},
                         .up = {"y", Unit::kSeconds, true}}));
}

TEST(Escape, CountsLetters) { EXPECT_EQ(letters_of("\xc3\xa4\xc3\xb6"), 2U); }

TEST(Escape, ReplacesControlCharacters) {
  EXPECT_EQ(escape("a\xff<"), "a\xef\xbf\xbd&lt;");
  EXPECT_EQ(escape("a\nb"), "a b");
  EXPECT_EQ(escape("a\nb", "\n"), "a\nb");
  EXPECT_EQ(escape("\xef\xbf\xbf"), "\xef\xbf\xbd");
}

}  // namespace
}  // namespace syncline::reports::chart
