#include "reports/format.h"

#include <charconv>
#include <cmath>
#include <span>

#include "formats/text/digits.h"
#include "formats/text/visible.h"
#include "reports/chart/scale.h"

namespace syncline::reports {
namespace {

// A dash for a figure that does not exist, such as a speedup over 0.
constexpr std::string_view kNoFigure = "-";

std::string fixed(double value, int decimals) {
  return chart::chars_of(value, std::chars_format::fixed, decimals);
}

std::string digits_text(double value, int digits) {
  const double near = significant(value, digits);
  if (near == 0) return "0";
  const int whole = static_cast<int>(std::floor(std::log10(std::fabs(near)) + 1e-12)) + 1;
  return fixed(near, std::max(0, digits - whole));
}

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string with_thousands(std::string text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::size_t begin = text.starts_with('-') ? 1 : 0;
  for (std::size_t i = point; i > begin + 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

struct SizedUnit {
  double size;
  std::string_view name;
};

// Returns the largest unit that is at most the value, after rounding to four digits: 0.99996 s is
// "1.000 s", not "1000 ms". The ratio of two decimal units is not exact, hence the tolerance.
const SizedUnit& fitting_unit(double value, std::span<const SizedUnit> units) {
  std::size_t i = 0;
  for (; i + 1 < units.size(); ++i) {
    const double next = units[i + 1].size / units[i].size * (1 - 1e-9);
    if (significant(std::fabs(value) / units[i].size, 4) < next) break;
  }
  return units[i];
}

constexpr SizedUnit kTimes[] = {{1e-9, " ns"}, {1e-6, " us"}, {1e-3, " ms"}, {1, " s"}};
constexpr SizedUnit kSizes[] = {{1, " B"},
                                {static_cast<double>(kKiB), " KiB"},
                                {static_cast<double>(kMiB), " MiB"},
                                {static_cast<double>(kGiB), " GiB"}};

}  // namespace

std::string seconds_text(Seconds seconds, int digits) {
  if (!std::isfinite(seconds)) return std::string(kNoFigure);
  if (seconds == 0) return "0 s";
  const SizedUnit& unit = fitting_unit(seconds, kTimes);
  return digits_text(seconds / unit.size, digits) + std::string(unit.name);
}

std::string seconds_range(Seconds low, Seconds high) {
  if (!(high > 0) || !std::isfinite(high)) return "";
  const SizedUnit& unit = fitting_unit(high, kTimes);
  return digits_text(low / unit.size, 3) + " to " + digits_text(high / unit.size, 3) +
         std::string(unit.name);
}

std::string speedup_range(double low, double high) {
  if (!(high > 0) || !std::isfinite(high) || (low == 1 && high == 1)) return "";
  return digits_text(low, 3) + " to " + digits_text(high, 3) + "x";
}

std::string bytes_text(double bytes, int digits) {
  if (!std::isfinite(bytes)) return std::string(kNoFigure);
  const SizedUnit& unit = fitting_unit(bytes, kSizes);
  if (unit.size == 1) return fixed(bytes, 0) + " B";
  const std::string number = digits_text(bytes / unit.size, digits);
  return (digits == kTableDigits ? number : without_trailing_zeros(number)) +
         std::string(unit.name);
}

std::string count_text(double count) {
  if (!std::isfinite(count)) return std::string(kNoFigure);
  const bool whole = count == std::floor(count);
  return with_thousands(whole ? fixed(count, 0) : digits_text(count, 4));
}

std::string collectives_text(double per_step) {
  return count_text(per_step) + (per_step == 1 ? " collective" : " collectives") + " per step";
}

std::string throughput_text(double samples_per_second) {
  if (!std::isfinite(samples_per_second)) return std::string(kNoFigure);
  if (samples_per_second < 10) return digits_text(samples_per_second, 4);
  return with_thousands(fixed(samples_per_second, 1));
}

std::string speedup_text(double speedup) {
  return std::isfinite(speedup) ? fixed(speedup, 3) + "x" : std::string(kNoFigure);
}

std::string short_speedup_text(double speedup) {
  return std::isfinite(speedup) ? digits_text(speedup, 3) + "x" : std::string(kNoFigure);
}

std::string percent_text(double percent) {
  if (!std::isfinite(percent)) return std::string(kNoFigure);
  const std::string digits = fixed(std::fabs(percent), 1);
  const bool zero = digits == "0.0";
  return (zero ? "" : percent < 0 ? "-" : "+") + digits + " %";
}

std::string share_text(double percent) {
  return std::isfinite(percent) ? fixed(percent, 1) + " %" : std::string(kNoFigure);
}

std::string plain_number(double value) {
  return std::isfinite(value) ? without_trailing_zeros(digits_text(value, 3))
                              : std::string(kNoFigure);
}

std::string copied_number(double value) {
  return std::isfinite(value) ? chart::chars_of(value, std::chars_format::general, 6)
                              : std::string(kNoFigure);
}

std::string join_and(const std::vector<std::string>& words, const char* last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last : ", ";
    text += words[i];
  }
  return text;
}

std::string join(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const auto& word : words) {
    if (&word != words.data()) text += between;
    text += word;
  }
  return text;
}

std::string plural(std::int64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string one_line(std::string_view text) { return visible(text); }

std::string quoted_name(std::string_view name) { return "'" + one_line(name) + "'"; }

}  // namespace syncline::reports
