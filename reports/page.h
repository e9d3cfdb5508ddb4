// What a report says to people, and in which order, before it is drawn: the terminal's table and
// the Markdown page show the same blocks.
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

// Text to be taken as it stands: a plot, a configuration. Its lines end in '\n'.
struct Listing {
  std::string language;  // as Markdown's fences name it: "text", "json"
  std::string text;
  bool plot = false;  // of a figure that a page with figures draws better
};
using Block = std::variant<std::string, Items, Grid, Listing>;  // a string is a paragraph

struct Table;

struct Page {
  std::string title;
  std::string about;  // may be empty
  std::vector<Block> blocks;

  // At the end, where there is something in it.
  void add(const std::string& paragraph);
  void add(Items items);
  void add(const Table& table);
  void add(Grid grid) { blocks.emplace_back(std::move(grid)); }
  void add(Listing listing) { blocks.emplace_back(std::move(listing)); }
};

// A figure of an answer, and the table of what its parts stand for, to which they link.
struct Illustration {
  chart::Figure figure;
  std::string heading = {};  // of the table; empty: there is none
  Grid details = {};
  std::vector<std::string> ids = {};  // of its lines, for the figure's links
};

// For a terminal: a title, aligned tables, and sentences. Control characters in the page are
// blanks; the screen's own are all that it has.
std::string text_page(const Page& page, const Screen& screen = {});

// As GitHub Markdown, for a README or an issue: the content of the terminal's table.
std::string markdown_page(const Page& page);

}  // namespace syncline::reports
