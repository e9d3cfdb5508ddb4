// The content of a report for people, in order, before it is drawn: the terminal's table and the
// Markdown page show the same blocks.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reports/chart/figure.h"
#include "reports/grid.h"

namespace syncline::reports {

struct Items {
  std::string heading;
  std::vector<std::string> items;
};

// Preformatted text: a plot, a configuration. Its lines end in '\n'.
struct Listing {
  std::string language;  // as in Markdown's fences: "text", "json"
  std::string text;
  bool plot = false;  // a plot that pages with figures leave out
};
using Block = std::variant<std::string, Items, Grid, Listing>;  // a string is a paragraph

struct Table;

struct Page {
  std::string title;
  std::string about;  // may be empty
  std::vector<Block> blocks;

  // Adds a block at the end; an empty paragraph or list is left out.
  void add(const std::string& paragraph);
  void add(Items items);
  void add(const Table& table);
  void add(Grid grid) { blocks.emplace_back(std::move(grid)); }
  void add(Listing listing) { blocks.emplace_back(std::move(listing)); }
};

// A figure of an answer, and a table with details of its parts, to which they link.
struct Illustration {
  chart::Figure figure;
  std::string heading = {};  // heading of the table; empty: no table
  Grid details = {};
  std::vector<std::string> ids = {};  // ids of the table's lines, for the figure's links
};

// Returns the page for a terminal: a title, aligned tables, and sentences. Control characters in
// the page become blanks: only the screen's own remain.
std::string text_page(const Page& page, const Screen& screen = {});

// Returns the page as GitHub Markdown, for a README or an issue.
std::string markdown_page(const Page& page);

}  // namespace syncline::reports
