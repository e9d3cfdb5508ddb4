// Pieces of a drawing as SVG text.
#pragma once

#include <string>
#include <vector>

namespace syncline::reports::chart {

inline constexpr double kLine = 14;  // pixels of a line in a text of several lines

// Keeps the width of strokes when a reader zooms.
inline constexpr const char* kUnscaled = " vector-effect=\"non-scaling-stroke\"";

// Writes pixels to a tenth; a whole number without a point.
std::string px(double value);
// Writes one attribute with a blank before it.
std::string attribute(const char* name, const std::string& value);

// Writes text at a position; `more`: further attributes.
std::string draw_text(double x, double y, const char* anchor, const std::string& text,
                      const std::string& more = "");
// Writes lines below each other, the first at height `y`.
std::string draw_text(double x, double y, const char* anchor, const std::vector<std::string>& lines,
                      const std::string& more = "");
// Returns the height or width of these lines together, in pixels.
double height_of(const std::vector<std::string>& lines);
double width_of(const std::vector<std::string>& lines);

// Returns the class of a colour that fills ('c') or strokes ('l').
std::string colour_class(const char* letter, int colour);
// Returns the classes of a line. Series beyond the number of colours share them, with other dashes.
std::string line_class(int colour, bool dashed);

}  // namespace syncline::reports::chart
