#include "reports/chart/scale.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/units.h"

namespace syncline::reports::chart {
namespace {

struct Counted {
  double size = 1;
  const char* name = "";
};

constexpr std::array<Counted, 4> kSeconds{{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
constexpr std::array<Counted, 5> kBytes{
    {{1099511627776.0, "TiB"}, {1073741824.0, "GiB"}, {1048576.0, "MiB"}, {1024, "KiB"}, {1, "B"}}};
constexpr std::array<Counted, 4> kRates{{{1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}}};

// The largest unit of which the value is at least one.
template <std::size_t size>
Counted counted_in(const std::array<Counted, size>& units, double value) {
  for (const auto& unit : units) {
    if (value >= unit.size * (1 - 1e-9)) return unit;
  }
  return units.back();
}

Counted counted_in(Unit unit, double value) {
  switch (unit) {
    case Unit::kSeconds:
      return counted_in(kSeconds, value);
    case Unit::kBytes:
      return counted_in(kBytes, value);
    case Unit::kBytesPerSecond:
      return counted_in(kRates, value);
    case Unit::kPercent:
      return {1, "%"};
    case Unit::kNumber:
      break;
  }
  return {};
}

std::string fixed(double value, int decimals) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::fixed, decimals);
  return {text.data(), end.ptr};
}

// Few digits, none of them superfluous.
std::string shortest(double value) {
  std::array<char, 64> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 6);
  return {text.data(), end.ptr};
}

std::string with_unit(Unit unit, double value) {
  const Counted counted = counted_in(unit, value);
  const std::string number = shortest(value / counted.size);
  return *counted.name == 0 ? number : number + " " + counted.name;
}

}  // namespace

double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least) + 1e-9));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (power * times >= least * (1 - 1e-9)) return power * times;
  }
  return power * 10;
}

Scale::Scale(const Axis& axis, const std::vector<double>& values)
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

// A little air above and below, so that nothing lies on the frame.
void Scale::widen() {
  if (logarithmic_) {
    if (most_ / least_ < 1 + 1e-9) {
      least_ /= 2;
      most_ *= 2;
    }
    return;
  }
  const bool zero = axis_.from_zero || (least_ >= 0 && least_ < most_ / 2);
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
  std::vector<Tick> ticks;
  if (logarithmic_ && axis_.unit == Unit::kBytes) {
    const double doublings = std::log2(most_ / least_);
    const double stride = std::max(1.0, std::ceil(doublings / wanted));
    for (double power = std::ceil(std::log2(least_) - 1e-9); std::exp2(power) <= most_ * (1 + 1e-9);
         power += stride) {
      ticks.push_back({std::exp2(power), with_unit(axis_.unit, std::exp2(power))});
    }
    return ticks;
  }
  if (logarithmic_) {
    const double decades = std::log10(most_ / least_);
    const double stride = std::max(1.0, std::ceil(decades / wanted));
    const bool between = decades < wanted / 3.0;
    for (double power = std::floor(std::log10(least_)); std::pow(10, power) <= most_;
         power += stride) {
      for (const double times : {1.0, 2.0, 5.0}) {
        const double value = times * std::pow(10, power);
        if (times > 1 && !between) continue;
        if (value >= least_ * (1 - 1e-9) && value <= most_ * (1 + 1e-9)) {
          ticks.push_back({value, with_unit(axis_.unit, value)});
        }
      }
    }
    return ticks;
  }
  const double unit = counted_in(axis_.unit, std::max(std::abs(least_), std::abs(most_))).size;
  const double step = round_step((most_ - least_) / unit / wanted);
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  for (double n = std::ceil(least_ / unit / step - 1e-9); n * step * unit <= most_ * (1 + 1e-12);
       ++n) {
    ticks.push_back({n * step * unit, fixed(n * step + 0.0, decimals)});
  }
  return ticks;
}

std::string Scale::title() const {
  if (logarithmic_ || !axis_.names.empty()) return axis_.title;
  const Counted counted = counted_in(axis_.unit, std::max(std::abs(least_), std::abs(most_)));
  return *counted.name == 0 ? axis_.title : axis_.title + ", " + counted.name;
}

}  // namespace syncline::reports::chart
