#include "formats/text/digits.h"

#include <array>
#include <charconv>
#include <cmath>
#include <sstream>

namespace syncline {

double significant(double value, int digits) {
  if (!std::isfinite(value)) return value;
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::scientific, digits - 1);
  double result = 0;
  std::from_chars(text.data(), end.ptr, result);
  return result;
}

std::string short_text(double value, int digits) {
  std::ostringstream text;
  text.precision(digits);
  text << value;
  return text.str();
}

}  // namespace syncline
