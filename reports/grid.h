// A table of text cells, drawn with aligned columns: plain for terminals, or as GitHub Markdown.
//
// On a screen that is too narrow names are broken first, down to 24 columns. Then columns leave:
// those of the highest rank first, from the right among equals; those of rank 0 last, and the first
// column never. A line below the table names what is left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/screen.h"

namespace syncline::reports {

struct Grid {
  struct Column {
    std::string heading;  // '\n' breaks it in two lines where there is room for them
    bool right = true;    // numbers to the right, names to the left
    int rank = 0;         // how early it leaves where there is no room; 0: after all others
  };
  struct Line {
    std::vector<std::string> cells;  // one a column
    bool rule_before = false;        // a rule between this line and the one before
    Tone tone = Tone::kPlain;
  };
  std::vector<Column> columns;
  std::vector<Line> lines;
};

// Lines of text, each ended by '\n' and without trailing blanks, none wider than the screen.
std::string plain_grid(const Grid& grid, const Screen& screen = {});

// The same as a Markdown table, padded so that its source can be read too. It has no rules.
std::string markdown_grid(const Grid& grid);

// Text with Markdown's own signs taken literally.
std::string markdown_text(std::string_view text);

}  // namespace syncline::reports
