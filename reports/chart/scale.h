// Converts values to pixels, and places ticks at round values, written with their unit.
#pragma once

#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "reports/chart/figure.h"

namespace syncline::reports::chart {

struct Tick {
  double value = 0;
  std::string text;
};

class Scale {
 public:
  // Makes a scale that holds all of `values`. Values that are not finite, or not above 0 on a
  // logarithmic axis, are ignored. A single value lies in the middle of a range around it.
  Scale(const ChartAxis& axis, const std::vector<double>& values);

  // Returns the position of a value: 0 (the least) to 1.
  double share(double value) const;

  double least() const { return least_; }
  double most() const { return most_; }
  bool logarithmic() const { return logarithmic_; }

  // Returns round values in the range, about `wanted` of them at most.
  std::vector<Tick> ticks(int wanted) const;

  // Returns the axis' title, with the unit of its ticks unless they carry their own.
  std::string title() const;

 private:
  void widen();
  std::vector<Tick> by_factors(int wanted) const;
  std::vector<Tick> by_steps(int wanted) const;

  ChartAxis axis_;
  bool logarithmic_ = false;
  double least_ = 0;
  double most_ = 1;
};

// Returns the number as std::to_chars writes it, independent of the locale.
template <typename... How>
std::string chars_of(double value, How... how) {
  std::array<char, 400> text{};  // the largest double has 309 digits
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, how...);
  return {text.data(), end.ptr};
}

// Returns a value with its unit, in four digits: "3.214 s".
std::string value_text(Unit unit, double value);

// Returns the least of 1, 2 or 5 times a power of ten from `least` on. Requires least > 0.
double round_step(double least);

}  // namespace syncline::reports::chart
