#include "reports/grid.h"

#include <gtest/gtest.h>

namespace syncline::reports {
namespace {

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

}  // namespace
}  // namespace syncline::reports
