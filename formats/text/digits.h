// Rounding to significant digits.
#pragma once

#include <string>

namespace syncline {

// The number that its first so many significant digits stand for: 123456 in four is 123500.
double significant(double value, int digits);

// "0.25", "1.2e+06": so many significant digits, without zeros behind.
std::string short_text(double value, int digits);

}  // namespace syncline
