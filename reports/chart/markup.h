// Markup shared by figures and pages: escaped names, and colours.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "reports/chart/figure.h"

namespace syncline::reports::chart {

// Returns text that is safe in text and attributes of HTML and XML: its special letters are
// escaped, control characters except those in `keep` become blanks, invalid UTF-8 becomes U+FFFD.
std::string escape(std::string_view text, std::string_view keep = "");

// The sign before the name of the best.
inline constexpr const char* kStar = "\xe2\x98\x85 ";

// Returns how many letters a UTF-8 text has.
std::size_t letters_of(std::string_view text);

// The colours of all figures, in light and in dark: "#0072b2". By Okabe and Ito (Color Universal
// Design, 2008), with a grey of our own; on dark, each is lighter for the same contrast.
extern const std::array<const char*, kColours> kOnWhite;
extern const std::array<const char*, kColours> kOnBlack;
// Shades of one blue, from none to full.
extern const std::array<const char*, kShades> kShadesOnWhite;
extern const std::array<const char*, kShades> kShadesOnBlack;

// Returns the style sheet of drawings by svg.cc: classes c0.. fill, l0.. stroke, h0.. shade. Prints
// are always light.
std::string palette_css();

// Widths and line breaks of text in a figure: names are never shortened.

// Returns a text's width in pixels, an upper limit: that of the wider of the usual fonts.
double width_of(std::string_view text);

// Returns a text in lines of at most `room` pixels, broken at blanks; inside a word only if the
// word is wider than a line. An empty text has one line.
std::vector<std::string> lines_of(std::string_view text, double room);

}  // namespace syncline::reports::chart
