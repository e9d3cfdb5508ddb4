// A table of text cells, drawn with aligned columns: plain for terminals, or as GitHub Markdown.
// On a narrow screen, names are broken first, down to 24 columns. Then columns leave: those of the
// highest rank first, from the right among equals; those of rank 0 last, the first column never. A
// line below the table names the columns that are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncline::reports {

// The medium of a text: a terminal with a width and perhaps colours, or a file with neither. All
// code that counts columns is here and in grid.cc.

struct Screen {
  std::size_t width = 0;  // columns; 0: unlimited
  bool colour = false;
  bool brief = false;  // the short page of an answer, if it has one
};

// Emphasis of a piece of text.
enum class Tone {
  kPlain,
  kHeading,
  kBest,  // the winner
  kFaint  // slower rows, left out parts
};

// Returns the text with the tone's terminal codes (SGR), unchanged without colours.
std::string paint(const std::string& text, Tone tone, const Screen& screen);

// Returns the columns that a terminal needs for UTF-8 text: combining marks take none, East Asian
// letters and emoji two.
std::size_t display_width(std::string_view text);

// Breaks one line of text into lines of at most `width` columns, at blanks. A word is broken only
// if it is wider than a line, after a sign if there is one. `indent`: blanks before all lines but
// the first. A width of 0, or one that leaves no room: the text unchanged.
std::vector<std::string> wrap(std::string_view text, std::size_t width, std::size_t indent = 0);

// Breaks lines of text, each ended by '\n'. Each line continues below its own first word, or below
// the text after a gap ("  word    its explanation").
std::string wrapped_lines(const std::string& text, std::size_t width);

struct Grid {
  struct Column {
    std::string heading;  // '\n' breaks it into two lines if there is room
    bool right = true;    // numbers to the right, names to the left
    int rank = 0;         // the highest leaves first if there is no room; 0: after all others
    bool below = false;   // on a terminal, its text goes on lines below the rest of its line
  };
  struct Line {
    std::vector<std::string> cells;  // one per column
    bool rule_before = false;        // a rule above this line
    Tone tone = Tone::kPlain;
  };
  std::vector<Column> columns;
  std::vector<Line> lines;
};

// Returns lines ended by '\n', without trailing blanks, none wider than the screen.
std::string plain_grid(const Grid& grid, const Screen& screen = {});

// Returns a Markdown table, padded so that its source can be read too. It has no rules.
std::string markdown_grid(const Grid& grid);

// Returns the text with Markdown's signs escaped.
std::string markdown_text(std::string_view text);

}  // namespace syncline::reports
