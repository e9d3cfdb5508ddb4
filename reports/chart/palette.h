// The colours of all figures, in light and in dark.
#pragma once

#include <array>
#include <string>

#include "reports/chart/figure.h"

namespace syncline::reports::chart {

// "#0072b2". By Okabe and Ito (Color Universal Design, 2008), the grey of our own; on dark, each
// lightened until it stands out as well.
extern const std::array<const char*, kColours> kOnWhite;
extern const std::array<const char*, kColours> kOnBlack;
// From nothing to much of one blue.
extern const std::array<const char*, kShades> kShadesOnWhite;
extern const std::array<const char*, kShades> kShadesOnBlack;

// The style sheet that what svg.h draws needs: classes c0.. fill, l0.. stroke, h0.. shade. Prints
// are always light.
std::string palette_css();

}  // namespace syncline::reports::chart
