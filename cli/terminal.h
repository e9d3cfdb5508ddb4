// What stdout is: a terminal of some width, with colours or without, or a file.
#pragma once

#include <cstddef>

#include "reports/screen.h"

namespace syncline::cli {

enum class Colour { kAuto, kAlways, kNever };

// The width is COLUMNS, where that is set, else what the terminal says, and 80 where it says
// nothing; what is no terminal has none. Colours by themselves only on a terminal that obeys codes
// (TERM is not "dumb") and where NO_COLOR is not set (https://no-color.org).
reports::Screen stdout_screen(Colour colour);

// Columns of the terminal that stderr is; 0 where it is none.
std::size_t stderr_width();

}  // namespace syncline::cli
