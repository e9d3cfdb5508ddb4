// Rounding to significant digits.
#pragma once

#include <string>

namespace syncline {

// Returns a number rounded to `digits` significant digits: 123456 in four is 123500.
double significant(double value, int digits);

// Returns a number as text with `digits` significant digits, without trailing zeros: "1.2e+06".
std::string short_text(double value, int digits);

}  // namespace syncline
