// A figure before it is drawn: its values in the units of the program (seconds, bytes, bytes per
// second), and its drawing as SVG, for a file or inside a page.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace syncline::reports::chart {

// The unit of an axis: decides how its ticks are rounded and written.
enum class Unit { kNumber, kSeconds, kBytes, kBytesPerSecond, kPercent };

struct ChartAxis {
  std::string title;
  Unit unit = Unit::kNumber;
  bool logarithmic = false;  // values <= 0 lie at its left or lower end
  bool from_zero = false;    // shows zero even if no value is near it
  // Names instead of numbers: values then are indices, 0 the leftmost or topmost name.
  std::vector<std::string> names = {};
  std::vector<std::size_t> best = {};  // indices of names that get a star: the fastest
  // End of the axis if bars go on beyond it: they are broken there, and their end is written. 0: no
  // bar is broken.
  double cut = 0;
};

// Colours that can be told apart, also by the colour-blind, on white as on black. Series without a
// meaning of their own take them from 0; from the eighth on they are dashed.
enum Colour { kBlue, kVermilion, kGreen, kOrange, kPurple, kSky, kGrey, kColours };

struct Point {
  double x = 0;
  double y = 0;
};

// An interval of values at x.
struct Whisker {
  double x = 0;
  double low = 0;
  double high = 0;
};

// Points in order of x.
struct Series {
  std::string name;  // in the legend; empty: left out of it
  int colour = kBlue;
  std::vector<Point> points = {};
  bool line = true;                      // joins the points
  bool steps = false;                    // a value holds until the next point
  bool dots = false;                     // shows the points themselves
  std::vector<Point> hollow = {};        // dots of exceptions
  std::vector<Whisker> band = {};        // shaded
  std::vector<Whisker> whiskers = {};    // a stroke each
  std::vector<std::string> labels = {};  // names of the points
  bool faint = false;                    // one of many in the background
  bool dashed = false;
};

// Returns a series of points without a line.
inline Series point_series(std::string name, int colour) {
  return {.name = std::move(name), .colour = colour, .line = false, .dots = true};
}

// A line across the whole figure at one value.
struct Rule {
  std::string name;  // in the legend
  bool upright = true;
  double at = 0;
  int colour = kGrey;
};

// A range between two values, shaded over the whole height of the figure.
struct Stretch {
  std::string name;
  double from = 0;
  double to = 0;
  int colour = kGreen;
};

// A rectangle in a lane of a figure with names on its upward axis: part of a bar, an operation.
struct Box {
  int lane = 0;
  double from = 0;
  double to = 0;
  int colour = kBlue;
  std::string name = {};  // shown on a hover
  std::string link = {};  // id of the page's element that the box leads to
  bool low = false;       // only the lower third of the lane
};

// A cell of a heat map; both of its axes have names.
struct HeatCell {
  int column = 0;
  int lane = 0;
  int shade = 0;     // 0 (as good as the best) to kShades - 1
  std::string text;  // written into it, if there is room
  double value = 0;
};
inline constexpr int kShades = 7;

// The meaning of a colour or shade of boxes and cells, for the legend.
struct Key {
  std::string name;
  int colour = kBlue;
  bool shade = false;
};

struct Figure {
  std::string id;  // letters, digits and '-'; unique in a page
  std::string title;
  std::string note = {};  // how to read it, which parts were left out
  ChartAxis across = {};
  ChartAxis up = {};
  std::vector<Series> series = {};
  std::vector<Rule> rules = {};
  std::vector<Stretch> stretches = {};
  std::vector<Box> boxes = {};
  std::vector<Whisker> ends = {};  // intervals of the ends of bars; x: the lane
  std::vector<HeatCell> cells = {};
  std::vector<Key> keys = {};
};

// Returns a figure drawn as SVG, a document with its title and colours: a plot with round ticks and
// units, its legend below it.
// The file holds data for programs and for the page's script, in SI units with all digits:
// data-points="x,y x,y ..." and data-name of each series, data-from, data-to and data-name of each
// box, data-value of each cell. The plot has data-x and data-y: "lin" or "log", the ends of the
// axis and its unit. All of the figure is drawn: its maker keeps it small.
std::string svg_file(const Figure& figure);

// Returns the drawing for a page that has palette_css() in its style sheet and the title outside.
std::string svg_inline(const Figure& figure);

}  // namespace syncline::reports::chart
