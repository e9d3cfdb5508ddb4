#include "reports/curve.h"

#include <algorithm>
#include <cmath>

#include "reports/fields.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

// Where a curve lies between its ends, from 0 to 1.
class Frame {
 public:
  explicit Frame(const std::vector<tune::CurvePoint>& curve) {
    for (const auto& point : curve) {
      if (point.size > 0 && (left_ == 0 || point.size < left_)) left_ = point.size;
      right_ = std::max(right_, point.size);
      low_ = &point == &curve.front() ? point.step_time : std::min(low_, point.step_time);
      high_ = std::max(high_, point.step_time);
    }
  }

  Bytes left() const { return left_; }
  Bytes right() const { return right_; }
  Seconds low() const { return low_; }
  Seconds high() const { return high_; }

  double across(Bytes size) const {
    if (size <= left_ || right_ <= left_) return 0;
    return std::log(static_cast<double>(size) / static_cast<double>(left_)) /
           std::log(static_cast<double>(right_) / static_cast<double>(left_));
  }
  double up(Seconds step) const { return high_ > low_ ? (step - low_) / (high_ - low_) : 0; }

 private:
  Bytes left_ = 0, right_ = 0;
  Seconds low_ = 0, high_ = 0;
};

}  // namespace

std::string curve_text(const std::vector<tune::CurvePoint>& curve) {
  if (curve.size() < 2) return {};
  constexpr int kWide = 60, kHigh = 10;
  const Frame frame(curve);
  std::vector<std::string> lines(kHigh, std::string(kWide, ' '));
  // Columns between two points hold the step time of the left one: it stays until the next size.
  const auto column = [&](const tune::CurvePoint& point) {
    return static_cast<int>(std::lround(frame.across(point.size) * (kWide - 1)));
  };
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const int until =
        i + 1 < curve.size() ? std::max(column(curve[i]), column(curve[i + 1]) - 1) : kWide - 1;
    const int row =
        kHigh - 1 - static_cast<int>(std::lround(frame.up(curve[i].step_time) * (kHigh - 1)));
    for (int c = column(curve[i]); c <= until; ++c) {
      lines[static_cast<std::size_t>(row)][static_cast<std::size_t>(c)] = '*';
    }
  }
  const std::string high = seconds_text(frame.high()), low = seconds_text(frame.low());
  const std::size_t margin = std::max(high.size(), low.size());
  std::string text;
  for (int row = 0; row < kHigh; ++row) {
    const std::string label = row == 0 ? high : row == kHigh - 1 ? low : "";
    std::string line = std::string(margin - label.size(), ' ') + label + " |" +
                       lines[static_cast<std::size_t>(row)];
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  text += std::string(margin + 1, ' ') + "+" + std::string(kWide, '-') + "\n";
  const std::string from = bytes_text(static_cast<double>(frame.left()));
  const std::string to = bytes_text(static_cast<double>(frame.right()));
  const std::size_t gap = from.size() + to.size() < kWide ? kWide - from.size() - to.size() : 1;
  return text + std::string(margin + 2, ' ') + from + std::string(gap, ' ') + to + "\n";
}

std::string curve_csv(const std::vector<tune::CurvePoint>& curve) {
  std::string text = "bytes,step_time_s\n";
  for (const auto& [size, step] : curve) {
    text += std::to_string(size) + "," + exact(step).dump() + "\n";
  }
  return text;
}

}  // namespace syncline::reports
