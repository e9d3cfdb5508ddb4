// Figures and lists as people read them. All other code keeps SI units: only these functions scale.
// The text depends on the value alone, never on the machine's locale.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.h"

namespace syncline::reports {

// Significant digits of figures in tables, and in sentences.
inline constexpr int kTableDigits = 4;
inline constexpr int kSaidDigits = 3;

// Returns digits and the fitting unit: "2.450 s", "372.5 ms", "16.30 us"; "0 s".
std::string seconds_text(Seconds seconds, int digits = kTableDigits);

// Returns "97.49 MiB", "1.500 KiB", "512 B"; in sentences "1.5 KiB". A mean need not be whole.
std::string bytes_text(double bytes, int digits = kTableDigits);
template <std::integral Number>
std::string bytes_text(Number bytes, int digits = kTableDigits) {
  return bytes_text(static_cast<double>(bytes), digits);
}

// Returns "54", "12,345"; a mean that is not whole has four significant digits: "13.50".
std::string count_text(double count);
template <std::integral Number>
std::string count_text(Number count) {
  return count_text(static_cast<double>(count));
}

// Returns "35 collectives per step", "0.2500 collectives per step".
std::string collectives_text(double per_step);

// Returns "1,234.5"; below ten four significant digits: "3.214".
std::string throughput_text(double samples_per_second);

// Returns an interval in the unit of its upper end, three significant digits: "231 to 284 ms";
// empty if it is unknown (its upper end is 0).
std::string seconds_range(Seconds low, Seconds high);
// Returns "1.21 to 1.40x"; empty also if both ends are 1.
std::string speedup_range(double low, double high);

// Returns three decimals: "1.467x".
std::string speedup_text(double speedup);

// Returns three significant digits, for sentences: "1.47x", "0.985x", "12.3x".
std::string short_speedup_text(double speedup);

// Returns one decimal and a sign: "+1.3 %", "-0.4 %", "0.0 %".
std::string percent_text(double percent);

// Returns one decimal without a sign: "1.3 %".
std::string share_text(double percent);

// Returns three significant digits, or the longer whole part; no trailing zeros: "0.25", "97.5".
std::string plain_number(double value);

// Returns six significant digits, for a fitted value that a person may copy: "35.2341", "1.5e-12".
std::string copied_number(double value);

// Returns "a", "a and b", "a, b and c".
std::string join_and(const std::vector<std::string>& words, const char* last = " and ");

// Joins words: "a, b, c".
std::string join(const std::vector<std::string>& words, std::string_view between = ", ");

// Returns "1 row", "2 rows".
std::string plural(std::int64_t count, std::string_view noun);

// Replaces line breaks, tabs and other control characters by spaces: names come from files.
std::string one_line(std::string_view text);

// Returns a name for a sentence: "'cap 25'", on one line.
std::string quoted_name(std::string_view name);

}  // namespace syncline::reports
