// Positions of a figure's parts.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "reports/chart/figure.h"
#include "reports/chart/scale.h"

namespace syncline::reports::chart {

inline constexpr double kWide = 860;  // pixels of the whole drawing
inline constexpr double kTop = 10;    // pixels above the plot
inline constexpr double kLane = 22;   // pixels of a lane whose name has one line
inline constexpr double kRow = 18;    // pixels of a row of text

// Owns the scales of a figure and the positions of its plot, lanes and names, in pixels.
struct PlotLayout {
  // Lays out a figure, `top` pixels below the upper edge.
  PlotLayout(const Figure& figure, double top);

  // Returns a position in the plot, from its upper left corner.
  double x_of(double value) const;
  double y_of(double value) const { return high * (1 - up.share(value)); }
  double top_of(int lane) const { return tops[static_cast<std::size_t>(lane)]; }
  double middle_of(int lane) const { return (top_of(lane) + top_of(lane + 1)) / 2; }
  // Returns the pixels per name of the horizontal axis.
  double column() const { return broad / static_cast<double>(columns); }
  double foot() const { return top + high; }

  Scale across;
  Scale up;
  std::size_t columns;                          // names across
  std::vector<std::vector<std::string>> lanes;  // names of the lanes, in lines of text
  std::vector<double> tops{0};                  // top of each lane, and the end of the last one
  std::vector<std::string> beside;              // title of the upward axis, in lines
  std::map<int, double> broken;                 // ends of bars beyond the axis, by lane
  double left = 0;
  double top = 0;
  double broad = 0;
  double high = 0;
};

// Returns true if the lane is one of the fastest.
bool is_best(const Figure& figure, std::size_t lane);

}  // namespace syncline::reports::chart
