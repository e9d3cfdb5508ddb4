// How much room text takes in a figure, and where it breaks: names are never cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncline::reports::chart {

// Pixels that a text takes at most in the wider of the usual fonts, at the size of a figure's text.
double width_of(std::string_view text);

// A text on lines of at most so many pixels, broken at blanks, and inside a word only where it
// alone is wider. Nothing of it is left out; an empty text has one line.
std::vector<std::string> lines_of(std::string_view text, double room);

}  // namespace syncline::reports::chart
