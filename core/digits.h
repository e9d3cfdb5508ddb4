// Rounding to significant digits.
#pragma once

namespace syncline {

// The number that its first so many significant digits stand for: 123456 in four is 123500.
double significant(double value, int digits);

}  // namespace syncline
