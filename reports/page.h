// What a report says to people, and in which order, before it is drawn: the terminal's table and
// the Markdown page show the same blocks.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/measure/report.h"
#include "reports/grid.h"

namespace syncline {

struct Items {
  std::string heading;
  std::vector<std::string> items;
};

using Block = std::variant<std::string, Items, Grid>;  // a string is a paragraph

struct Page {
  std::string title;
  std::string about;  // may be empty
  std::vector<Block> blocks;
};

// The rows; beside them, where somebody published figures, those and the error of the prediction
// (of the step time, else the throughput, else the speedup, else the collectives: the first that
// was published). Then what was fitted, what the table shows, and where the figures come from.
Page page_of(const Report& report);

}  // namespace syncline
