// What all markup of figures and pages shares: names of others inside it, and colours.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "reports/chart/figure.h"

namespace syncline::reports::chart {

// Fit for the text and the attributes of HTML and XML alike: markup's own letters are spelt out,
// control characters are blanks but those in `keep`, what is not UTF-8 is replaced by U+FFFD.
std::string escaped(std::string_view text, std::string_view keep = "");

// Before the name of what is best.
inline constexpr const char* kStar = "\xe2\x98\x85 ";

// Returns how many letters a UTF-8 text has.
std::size_t letters_of(std::string_view text);

// The colours of all figures, in light and in dark: "#0072b2". By Okabe and Ito (Color Universal
// Design, 2008), the grey of our own; on dark, each lightened until it stands out as well.
extern const std::array<const char*, kColours> kOnWhite;
extern const std::array<const char*, kColours> kOnBlack;
// From nothing to much of one blue.
extern const std::array<const char*, kShades> kShadesOnWhite;
extern const std::array<const char*, kShades> kShadesOnBlack;

// Returns the style sheet that what svg.cc draws needs: classes c0.. fill, l0.. stroke, h0.. shade.
// Prints are always light.
std::string palette_css();

// How much room text takes in a figure, and where it breaks: names are never cut.

// Pixels that a text takes at most in the wider of the usual fonts, at the size of a figure's text.
double width_of(std::string_view text);

// Returns a text on lines of at most so many pixels, broken at blanks, and inside a word only where
// it alone is wider. Nothing of it is left out; an empty text has one line.
std::vector<std::string> lines_of(std::string_view text, double room);

}  // namespace syncline::reports::chart
