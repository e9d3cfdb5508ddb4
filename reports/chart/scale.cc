#include "reports/chart/scale.h"

#include <algorithm>
#include <cmath>

#include "core/base/units.h"

namespace syncline::reports::chart {
namespace {

struct Counted {
  double size = 1;
  const char* name = "";
};

// Units by kind of axis, the largest first.
const std::vector<Counted> kUnits[] = {
    {{1, ""}},
    {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}},
    {{1099511627776.0, "TiB"}, {1073741824.0, "GiB"}, {1048576.0, "MiB"}, {1024, "KiB"}, {1, "B"}},
    {{1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}},
    {{1, "%"}}};

// Returns the largest unit that is at most the value.
Counted counted_in(Unit unit, double value) {
  const auto& units = kUnits[static_cast<std::size_t>(unit)];
  for (const Counted& one : units) {
    if (value >= one.size * (1 - 1e-9)) return one;
  }
  return units.back();
}

std::string with_unit(Unit unit, double value, int digits = 6) {
  const Counted counted = counted_in(unit, value);
  const std::string number = chars_of(value / counted.size, std::chars_format::general, digits);
  return *counted.name == 0 ? number : number + " " + counted.name;
}

}  // namespace

std::string value_text(Unit unit, double value) {
  // All digits before the point are written.
  const double counted = std::abs(value) / counted_in(unit, value).size;
  const int whole = counted < 1 ? 1 : 1 + static_cast<int>(std::log10(counted));
  return with_unit(unit, value, std::max(4, whole));
}

double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least) + 1e-9));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (power * times >= least * (1 - 1e-9)) return power * times;
  }
  return power * 10;
}

Scale::Scale(const ChartAxis& axis, const std::vector<double>& values)
    : axis_(axis), logarithmic_(axis.logarithmic) {
  bool any = false;
  for (const double value : values) {
    if (!std::isfinite(value) || (logarithmic_ && value <= 0)) continue;
    least_ = any ? std::min(least_, value) : value;
    most_ = any ? std::max(most_, value) : value;
    any = true;
  }
  if (!any) {
    least_ = logarithmic_ ? 1 : 0;
    most_ = logarithmic_ ? 10 : 1;
  }
  widen();
}

// Adds some space above and below, so that no value lies on the frame.
void Scale::widen() {
  if (logarithmic_) {
    const double air = most_ / least_ < 1 + 1e-9 ? 2 : std::pow(most_ / least_, 0.02);
    least_ /= air;
    most_ *= air;
    return;
  }
  // An axis of counts (nodes, evaluations) need not begin at 0; one of measured values does.
  const bool near = least_ >= 0 && least_ < most_ / 2 && axis_.unit != Unit::kNumber;
  const bool zero = axis_.from_zero || near;
  if (zero) {
    least_ = std::min(least_, 0.0);
    most_ = std::max(most_, 0.0);
  }
  if (most_ <= least_) {
    const double alone = least_ == 0 ? 1 : std::abs(least_) / 2;
    least_ -= alone;
    most_ += alone;
  }
  const double air = 0.05 * (most_ - least_);
  if (least_ != 0) least_ -= air;
  if (most_ != 0) most_ += air;
}

double Scale::share(double value) const {
  if (!logarithmic_) return (value - least_) / (most_ - least_);
  if (value <= least_) return 0;
  return std::log(value / least_) / std::log(most_ / least_);
}

std::vector<Tick> Scale::ticks(int wanted) const {
  std::vector<Tick> ticks = logarithmic_ ? by_factors(wanted) : by_steps(wanted);
  // Within less than a decade or two, round factors are too far apart.
  constexpr std::size_t kEnough = 3;
  return ticks.size() < kEnough ? by_steps(wanted) : ticks;
}

// Returns ticks at powers of two for bytes, else of ten; between few of these, at 2 and 5 times.
std::vector<Tick> Scale::by_factors(int wanted) const {
  const bool bytes = axis_.unit == Unit::kBytes;
  const double base = bytes ? 2 : 10;
  const double powers = std::log(most_ / least_) / std::log(base);
  const double stride = std::max(1.0, std::ceil(powers / wanted));
  const bool between = !bytes && 3 * powers <= wanted + 1;
  std::vector<Tick> ticks;
  const double lowest = std::log(least_) / std::log(base);
  const double first = between ? std::floor(lowest) : std::ceil(lowest - 1e-9);
  for (double power = first; std::pow(base, power) <= most_ * (1 + 1e-9); power += stride) {
    for (const double times : {1.0, 2.0, 5.0}) {
      const double value = times * std::pow(base, power);
      const bool within = value >= least_ * (1 - 1e-9) && value <= most_ * (1 + 1e-9);
      if (within && (times == 1 || between)) ticks.push_back({value, with_unit(axis_.unit, value)});
    }
  }
  return ticks;
}

std::vector<Tick> Scale::by_steps(int wanted) const {
  const double unit = counted_in(axis_.unit, std::max(std::abs(least_), std::abs(most_))).size;
  const double step = round_step((most_ - least_) / unit / wanted);
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  std::vector<Tick> ticks;
  for (double n = std::ceil(least_ / unit / step - 1e-9);
       n * step * unit <= most_ + step * unit * 1e-9; ++n) {
    const double value = n * step * unit;
    ticks.push_back({value, logarithmic_
                                ? with_unit(axis_.unit, value)
                                : chars_of(n * step + 0.0, std::chars_format::fixed, decimals)});
  }
  return ticks;
}

std::string Scale::title() const {
  if (logarithmic_ || !axis_.names.empty()) return axis_.title;
  const Counted counted = counted_in(axis_.unit, std::max(std::abs(least_), std::abs(most_)));
  return *counted.name == 0 ? axis_.title : axis_.title + ", " + counted.name;
}

}  // namespace syncline::reports::chart
