#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

#include "reports/grid.h"
#include "reports/page.h"
#include "reports/table.h"
#include "tests/support/dice.h"
#include "tests/support/expect.h"

namespace syncline::reports {
namespace {

using Lines = std::vector<std::string>;

TEST(Screen, WidthIsWhatATerminalShows) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("\u00fcber"), 4U);     // one column though two bytes
  EXPECT_EQ(display_width("u\u0308ber"), 4U);    // combining diaeresis
  EXPECT_EQ(display_width("\u7b56\u7565"), 4U);  // two wide letters
  EXPECT_EQ(display_width("\U0001f680"), 2U);    // emoji
  EXPECT_EQ(display_width("\xff\xc3"), 2U);      // broken bytes do not run over the end
}

TEST(Screen, ProseIsBrokenAtBlanks) {
  EXPECT_EQ(wrap("one two three", 0), Lines{"one two three"});
  EXPECT_EQ(wrap("one two three", 13), Lines{"one two three"});
  EXPECT_EQ(wrap("one two three", 12), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("- one two three", 9, 2), (Lines{"- one two", "  three"}));
  EXPECT_EQ(wrap("a  bb  cc", 6), (Lines{"a  bb", "cc"}));
  EXPECT_EQ(wrap("gains 80 % of it", 9), (Lines{"gains", "80 % of", "it"}));
}

TEST(Screen, AWordThatIsWiderIsBrokenAtASign) {
  EXPECT_EQ(wrap("attention/weights.of", 13), (Lines{"attention/", "weights.of"}));
  EXPECT_EQ(wrap("abcdefgh", 3), (Lines{"abc", "def", "gh"}));
  EXPECT_EQ(wrap("\u7b56\u7565\u7b56", 5), (Lines{"\u7b56\u7565", "\u7b56"}));
}

TEST(Screen, LabelledLinesGoOnBelowTheirText) {
  EXPECT_EQ(wrapped_lines("  bound by  what is much of it\n", 27),
            "  bound by  what is much of\n"
            "            it\n");
  EXPECT_EQ(wrapped_lines("head and more\n\n  x\n", 10), "head and\n  more\n\n  x\n");
}

// Whatever the text: nothing is wider than asked, and nothing but blanks is lost.
TEST(Screen, WrappingKeepsEveryLetter) {
  test::Dice dice(16);
  const auto random = [&](int below) {
    return static_cast<std::size_t>(dice.between(0, below - 1));
  };
  for (int round = 0; round < 2000; ++round) {
    const Lines letters{"a", "bc", " ", "  ", "/", "\u00fc", "\u7b56", "\U0001f680", "e\u0301"};
    std::string text;
    for (std::size_t i = random(60); i > 0; --i) text += letters[random(9)];
    const std::size_t width = 6 + random(30), indent = random(3);
    std::string joined;
    for (const auto& line : wrap(text, width, indent)) {
      EXPECT_LE(display_width(line), width) << "'" << text << "'";
      joined += line;
    }
    const auto squeezed = [](std::string all) {
      std::erase(all, ' ');
      return all;
    };
    EXPECT_EQ(squeezed(joined), squeezed(text));
  }
}

Grid names_and_figures() {
  return {{{"strategy", false}, {"step\ntime"}, {"bytes", true, 2}, {"gain", true, 1}},
          {{{"a name of several words, which is long", "1.0 s", "12 MiB", "2x"}},
           {{"short", "2.0 s", "24 MiB", "1x"}}}};
}

TEST(Screen, NamesAreBrokenBeforeColumnsLeave) {
  EXPECT_EQ(plain_grid(names_and_figures(), {48}),
            "                           step\n"
            "strategy                   time   bytes  gain\n"
            "---------------------------------------------\n"
            "a name of several words,  1.0 s  12 MiB    2x\n"
            "  which is long\n"
            "short                     2.0 s  24 MiB    1x\n");
}

TEST(Screen, ColumnsLeaveByRankAndAreNamed) {
  const std::string text = plain_grid(names_and_figures(), {40});
  EXPECT_EQ(text,
            "                           step\n"
            "strategy                   time  gain\n"
            "-------------------------------------\n"
            "a name of several words,  1.0 s    2x\n"
            "  which is long\n"
            "short                     2.0 s    1x\n"
            "Left out at 40 columns: bytes.\n");
  EXPECT_TRUE(
      test::says(plain_grid(names_and_figures(), {20}), "Left out at 20\ncolumns: bytes;\ngain."));
}

// Random tables on random screens: no line is wider, and every column is shown or named.
TEST(Screen, NoTableIsWiderThanItsScreen) {
  test::Dice dice(17);
  const auto random = [&](int below) {
    return static_cast<std::size_t>(dice.between(0, below - 1));
  };
  for (int round = 0; round < 1000; ++round) {
    Grid grid;
    for (std::size_t c = 1 + random(9); c > 0; --c) {
      grid.columns.push_back({"h" + std::to_string(c) + std::string(random(12), 'x'), random(3) > 0,
                              static_cast<int>(random(4))});
    }
    for (std::size_t i = random(4); i > 0; --i) {
      auto& line = grid.lines.emplace_back();
      for (std::size_t c = 0; c < grid.columns.size(); ++c) {
        line.cells.push_back(std::string(random(9), 'a') + " " + std::string(random(40), 'b'));
      }
    }
    const std::size_t width = 24 + random(120);
    const std::string text = plain_grid(grid, {width});
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width);
    for (std::size_t c = 1; c < grid.columns.size(); ++c) {
      EXPECT_TRUE(test::says(text, "h" + std::to_string(grid.columns.size() - c)));
    }
  }
}

TEST(Screen, ColoursSurroundOnlyWholeLines) {
  Grid grid{{{"n", false}, {"v"}}, {{{"a", "1"}, false, Tone::kBest}, {{"b", "2"}}}};
  const std::string text = plain_grid(grid, {0, true});
  EXPECT_TRUE(test::says(text, "\n\033[1;32ma  1\033[0m\nb  2\n"));
  EXPECT_EQ(plain_grid(grid), "n  v\n----\na  1\nb  2\n");
}

TEST(Screen, APageHasNoCodesButTheScreens) {
  Page page{"ti\033[31mtle",
            "",
            {std::string("pro\033[1mse"), Items{"he\033ad", {"it\033em"}},
             Listing{"text", "li\033sting\n"}}};
  const std::string text = text_page(page);
  EXPECT_TRUE(test::lacks(text, "\033"));
}

TEST(Grid, AlignsNamesLeftAndNumbersRight) {
  const Grid grid{{{"name", false}, {"step\ntime", true}},
                  {{{"a", "1"}, false}, {{"longer", "100.0"}, false}, {{"b", ""}, true}}};
  EXPECT_EQ(plain_grid(grid),
            "         step\n"
            "name     time\n"
            "-------------\n"
            "a           1\n"
            "longer  100.0\n"
            "-------------\n"
            "b\n");
}

TEST(Grid, Markdown) {
  const Grid grid{{{"name", false}, {"step\ntime", true}}, {{{"a|b", "1"}, true}}};
  EXPECT_EQ(markdown_grid(grid),
            "| name | step time |\n"
            "| :--- | --------: |\n"
            "| a\\|b |         1 |\n");
}

TEST(Grid, WideLettersKeepTheColumnsAligned) {
  const Grid grid{{{"n", false}, {"v", true}},
                  {{{"\u7b56\u7565", "1"}, false}, {{"abcd", "2"}, false}}};
  EXPECT_EQ(plain_grid(grid), "n     v\n-------\n\u7b56\u7565  1\nabcd  2\n");
}

TEST(Grid, LineBreaksInCellsDoNotBreakTheTable) {
  const Grid grid{{{"n", false}}, {{{"a\nb"}, false}}};
  EXPECT_EQ(plain_grid(grid), "n\n---\na b\n");
  EXPECT_EQ(markdown_grid(grid), "| n   |\n| :-- |\n| a b |\n");
}

TEST(Grid, MarkdownSignsAreLiteral) {
  EXPECT_EQ(markdown_text("bandwidth_gbps"), "bandwidth_gbps");
  EXPECT_EQ(markdown_text("_a_ *b* <c> `d` [e](f) #g"),
            "\\_a\\_ \\*b\\* \\<c\\> \\`d\\` \\[e\\](f) \\#g");
}

// A table that is written once: what of it people see, and what programs get.

using enum Kind;

Table steps() {
  Table table{columns(table_column("name", "name"),
                      table_column("step\ntime", "step_time_s", kSeconds),
                      table_column("80 %\ninterval", "step_time_*_s", kSeconds),
                      table_column("use", "published/use", kText, 0, Column::kAll, Column::kNoJson),
                      page_column("sure", kShare), data_column("bytes", Column::kJson))};
  table.add("a", 0.5, measure::Interval{0.25, 1}, Cell(), 12.5, 7);
  return table;
}

TEST(Columns, PeopleSeeWhatTheKindMakesOfAValue) {
  EXPECT_EQ(plain_grid(grid_of(steps())),
            "          step             80 %\n"
            "name      time         interval    sure\n"
            "---------------------------------------\n"
            "a     500.0 ms  0.250 to 1.00 s  12.5 %\n");
}

TEST(Columns, ProgramsGetTheValueItself) {
  EXPECT_EQ(csv_text(steps()),
            "name,step_time_s,step_time_low_s,step_time_high_s\r\na,0.5,0.25,1\r\n");
  EXPECT_EQ(json_of(steps()).dump(),
            R"([{"name":"a","step_time_s":0.5,"step_time_low_s":0.25,"step_time_high_s":1,)"
            R"("bytes":7}])");
}

TEST(Columns, ASparseColumnIsShownIfALineHasAValue) {
  Table table = steps();
  table.add("b,c", 1, Cell(), "predicted", Cell(), Cell());
  EXPECT_EQ(csv_text(table),
            "name,step_time_s,step_time_low_s,step_time_high_s,published_use\r\n"
            "a,0.5,0.25,1,\r\n\"b,c\",1,,,predicted\r\n");
  EXPECT_EQ(json_of(table)[1].dump(),
            R"({"name":"b,c","step_time_s":1,"published":{"use":"predicted"}})");
  EXPECT_TRUE(test::says(plain_grid(grid_of(table)), "use"));
}

TEST(Columns, UnknownValuesAreLeftOutOrNull) {
  Table table{columns(table_column("a", "a", kFlag), table_column("b", "b", kCount))};
  table.add(or_null(std::optional<bool>()), std::optional<double>());
  table.add(show_as(true, "equal"), 12345);
  EXPECT_EQ(json_of(table).dump(), R"([{"a":null},{"a":true,"b":12345}])");
  EXPECT_EQ(csv_text(table), "a,b\r\n,\r\ntrue,12345\r\n");
  EXPECT_EQ(plain_grid(grid_of(table)), "a           b\n-------------\n\nequal  12,345\n");
}

TEST(Columns, ALineIsAsWideAsItsTable) {
  Table table{columns(table_column("a", "a"), table_column("b", "b"))};
  EXPECT_THROW(table.add("one"), std::logic_error);
}

}  // namespace
}  // namespace syncline::reports
