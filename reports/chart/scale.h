// From values to pixels, and where the ticks stand: at round values, written with their unit.
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
  // Holds all of `values`; what is not finite, or not above 0 on a logarithmic axis, does not
  // count. A single value stands in a window of its own.
  Scale(const ChartAxis& axis, const std::vector<double>& values);

  // From 0 (the least) to 1.
  double share(double value) const;

  double least() const { return least_; }
  double most() const { return most_; }
  bool logarithmic() const { return logarithmic_; }

  // Round values within, at most about `wanted`.
  std::vector<Tick> ticks(int wanted) const;

  // Returns the axis' title with the unit that the ticks count, where they do not carry their own.
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

// Returns the number's characters as std::to_chars has them, which asks no locale.
template <typename... How>
std::string chars_of(double value, How... how) {
  std::array<char, 400> text{};  // the largest double has 309 digits
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, how...);
  return {text.data(), end.ptr};
}

// Returns a value with its unit, in four digits: "3.214 s".
std::string value_text(Unit unit, double value);

// 1, 2 or 5 times a power of ten, at least so much. Requires a value above 0.
double round_step(double least);

}  // namespace syncline::reports::chart
