// What a report says to people, and in which order, before it is drawn: the terminal's table and
// the Markdown page show the same blocks.
#pragma once

#include <string>
#include <variant>
#include <vector>

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

struct Page {
  std::string title;
  std::string about;  // may be empty
  std::vector<Block> blocks;
};

}  // namespace syncline::reports
