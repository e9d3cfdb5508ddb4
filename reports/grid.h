// A table of text cells, drawn with aligned columns: plain for terminals, or as GitHub Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncline::reports {

struct Grid {
  struct Column {
    std::string heading;  // '\n' breaks it in two lines where there is room for them
    bool right = true;    // numbers to the right, names to the left
  };
  struct Line {
    std::vector<std::string> cells;  // one a column
    bool rule_before = false;        // a rule between this line and the one before
  };
  std::vector<Column> columns;
  std::vector<Line> lines;
};

// Columns that a terminal needs for UTF-8 text: combining marks take none, East Asian letters and
// emoji two.
std::size_t display_width(std::string_view text);

// Lines of text, each ended by '\n' and without trailing blanks.
std::string plain_grid(const Grid& grid);

// The same as a Markdown table, padded so that its source can be read too. It has no rules.
std::string markdown_grid(const Grid& grid);

// Text with Markdown's own signs taken literally.
std::string markdown_text(std::string_view text);

}  // namespace syncline::reports
