// A table of text cells, drawn with aligned columns: plain for terminals, or as GitHub Markdown.
//
// On a screen that is too narrow names are broken first, down to 24 columns. Then columns leave:
// those of the highest rank first, from the right among equals; those of rank 0 last, and the first
// column never. A line below the table names what is left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncline::reports {

// What text is drawn on: a terminal of some width, which may show colours, or a file, which has
// neither. Everything that counts columns stands here and in grid.cc.

struct Screen {
  std::size_t width = 0;  // columns; 0: as many as the text takes
  bool colour = false;
  bool brief = false;  // the short page of an answer that has one
};

// How a piece of text stands out.
enum class Tone {
  kPlain,
  kHeading,
  kBest,  // the winner
  kFaint  // what is slower, what is left out
};

// Returns the text with the screen's codes (SGR) for the tone; itself without colours.
std::string painted(const std::string& text, Tone tone, const Screen& screen);

// Columns that a terminal needs for UTF-8 text: combining marks take none, East Asian letters and
// emoji two.
std::size_t display_width(std::string_view text);

// One line of text on lines of at most `width` columns, broken at blanks, and inside a word only
// where it alone is wider: behind a sign where there is one. `indent`: blanks in front of all lines
// but the first. Width 0, or one that leaves no room: the text as it is.
std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::size_t indent = 0);

// Lines of text, each ended by '\n': the same for every line, where it goes on below its own first
// word, or below what stands behind a gap ("  word    what it says").
std::string wrapped_lines(const std::string& text, std::size_t width);

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
