// A figure before it is drawn: what is told, in the units of the program (seconds, bytes, bytes per
// second), and how it is drawn, for a file of its own or inside a page.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace syncline::reports::chart {

// What an axis counts; says how its ticks are rounded and written.
enum class Unit { kNumber, kSeconds, kBytes, kBytesPerSecond, kPercent };

struct ChartAxis {
  std::string title;
  Unit unit = Unit::kNumber;
  bool logarithmic = false;  // values of nothing or below stand at its left or lower end
  bool from_zero = false;    // shows the zero though no value comes near it
  // Names instead of numbers: then values count them from 0, the first one leftmost or topmost.
  std::vector<std::string> names = {};
  std::vector<std::size_t> best = {};  // of the names: those of the fastest, which get a star
  // Where the axis ends though bars go on: those are broken there, their end is written. 0: none
  // is.
  double cut = 0;
};

// Colours that can be told apart, also by the colour-blind, on white as on black. Series that need
// no meaning count from 0; from the eighth on they are dashed.
enum Colour { kBlue, kVermilion, kGreen, kOrange, kPurple, kSky, kGrey, kColours };

struct Point {
  double x = 0;
  double y = 0;
};

// Where a value lies with some certainty.
struct Whisker {
  double x = 0;
  double low = 0;
  double high = 0;
};

// Points in order of x.
struct Series {
  std::string name;  // in the legend; empty: not there
  int colour = kBlue;
  std::vector<Point> points = {};
  bool line = true;                      // joins the points
  bool steps = false;                    // by steps: a value stands until the next
  bool dots = false;                     // shows the points themselves
  std::vector<Point> hollow = {};        // dots that are not like the others
  std::vector<Whisker> band = {};        // shaded
  std::vector<Whisker> whiskers = {};    // a stroke each
  std::vector<std::string> labels = {};  // of the points, where they have names
  bool faint = false;                    // of many others, which only give the background
  bool dashed = false;
};

// Points that nothing joins.
inline Series dotted(std::string name, int colour) {
  return {.name = std::move(name), .colour = colour, .line = false, .dots = true};
}

// A line across the whole figure at one value.
struct Rule {
  std::string name;  // in the legend
  bool upright = true;
  double at = 0;
  int colour = kGrey;
};

// A stretch between two values: shaded across the whole figure.
struct Stretch {
  std::string name;
  double from = 0;
  double to = 0;
  int colour = kGreen;
};

// What fills a lane of a figure whose upward axis has names: a part of a bar, an operation.
struct Box {
  int lane = 0;
  double from = 0;
  double to = 0;
  int colour = kBlue;
  std::string name = {};  // shown on a hover
  std::string link = {};  // an id of the page that the box leads to
  bool low = false;       // only the lower third of the lane
};

// A cell of a heat map, both of whose axes have names.
struct HeatCell {
  int column = 0;
  int lane = 0;
  int shade = 0;     // 0 (as good as the best) to kShades - 1
  std::string text;  // written into it, if there is room
  double value = 0;
};
inline constexpr int kShades = 7;

// What a colour, or a shade, stands for where boxes and cells are drawn.
struct Key {
  std::string name;
  int colour = kBlue;
  bool shade = false;
};

struct Figure {
  std::string id;  // letters, digits and '-', of its own in a page
  std::string title;
  std::string note = {};  // how to read it, what was left out
  ChartAxis across = {};
  ChartAxis up = {};
  std::vector<Series> series = {};
  std::vector<Rule> rules = {};
  std::vector<Stretch> stretches = {};
  std::vector<Box> boxes = {};
  std::vector<Whisker> ends = {};  // of lanes, which x counts: where the end of each lies
  std::vector<HeatCell> cells = {};
  std::vector<Key> keys = {};
};

// Returns a figure drawn as SVG: a plot with round ticks and units, its legend below it.
//
// What stands in the file for programs and for the page's script: each series has its points as
// data-points="x,y x,y ..." and its name as data-name, each box data-from, data-to and data-name,
// each cell data-value: figures in SI units with all digits. The plot has data-x and data-y, "lin"
// or "log", the ends of the axis and what it counts. Everything is drawn: whoever fills a figure
// sees to it that it is not too much.
//
// A whole document with its title and its colours.
std::string svg_file(const Figure& figure);

// For a page that has palette_css() in its style sheet and the title outside.
std::string svg_inline(const Figure& figure);

}  // namespace syncline::reports::chart
