#include "reports/text_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

// The visible range of both axes.
struct Window {
  double left = std::numeric_limits<double>::infinity();
  double right = -std::numeric_limits<double>::infinity();
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void hold_across(double x) {
    left = std::min(left, x);
    right = std::max(right, x);
  }
  void hold_up(double y) {
    low = std::min(low, y);
    high = std::max(high, y);
  }
  double across(double x) const { return right > left ? (x - left) / (right - left) : 0; }
  double up(double y) const { return high > low ? (y - low) / (high - low) : 0; }
};

class Canvas {
 public:
  Canvas(int wide, int high)
      : lines_(static_cast<std::size_t>(high), std::string(static_cast<std::size_t>(wide), ' ')) {}

  int column(double across) const { return steps(across, lines_[0].size()); }
  int row(double down) const { return steps(down, lines_.size()); }
  void put(int column, int row, char mark) {
    lines_[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)] = mark;
  }

  // Returns the canvas with axes and the names of their ends. Sets `margin` for text below it.
  std::string framed(const std::string& top, const std::string& bottom, const std::string& first,
                     const std::string& last, std::size_t& margin) const {
    const std::size_t wide = lines_[0].size(), labels = std::max(top.size(), bottom.size());
    std::string text;
    for (const auto& drawn : lines_) {
      const std::string label = &drawn == &lines_.front()  ? top
                                : &drawn == &lines_.back() ? bottom
                                                           : "";
      std::string line = std::string(labels - label.size(), ' ') + label + " |" + drawn;
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    margin = labels + 2;
    const std::size_t named = std::min(wide, first.size() + last.size());
    return text + std::string(margin - 1, ' ') + "+" + std::string(wide, '-') + "\n" +
           std::string(margin, ' ') + first + std::string(wide - named, ' ') + last + "\n";
  }

 private:
  static int steps(double share, std::size_t all) {
    return static_cast<int>(std::lround(share * (static_cast<double>(all) - 1)));
  }

  std::vector<std::string> lines_;
};

bool window_of(const std::vector<PlotSeries>& series, Window& window) {
  for (const auto& one : series) {
    for (const auto* list : {&one.points, &one.curve}) {
      for (const auto& [bytes, seconds] : *list) {
        window.hold_across(std::log2(bytes));
        window.hold_up(std::log10(seconds));
      }
    }
  }
  if (window.left > window.right) return false;
  constexpr double kAlone = 0.5;  // half the range of a single size or time, in powers of 2 or 10
  if (window.right - window.left < 1e-9) {
    window.left -= kAlone;
    window.right += kAlone;
  }
  if (window.high - window.low < 1e-9) {
    window.low -= kAlone;
    window.high += kAlone;
  }
  return true;
}

}  // namespace

std::string curve_text(const std::vector<tune::CurvePoint>& curve) {
  if (curve.size() < 2) return {};
  constexpr int kWide = 60, kHigh = 10;
  const auto place = [](Bytes size) { return std::log(static_cast<double>(size)); };
  Window window;
  for (const auto& point : curve) {
    if (point.size > 0) window.hold_across(place(point.size));
    window.hold_up(point.step_time);
  }
  Canvas canvas(kWide, kHigh);
  const auto column = [&](const tune::CurvePoint& point) {
    return point.size > 0 ? canvas.column(window.across(place(point.size))) : 0;
  };
  // Columns between two points show the step time of the left one, up to the next size.
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const int until =
        i + 1 < curve.size() ? std::max(column(curve[i]), column(curve[i + 1]) - 1) : kWide - 1;
    const int row = kHigh - 1 - canvas.row(window.up(curve[i].step_time));
    for (int c = column(curve[i]); c <= until; ++c) canvas.put(c, row, '*');
  }
  const auto ends = [](double log) {
    return bytes_text(std::isfinite(log) ? std::round(std::exp(log)) : 0);
  };
  std::size_t margin = 0;
  return canvas.framed(seconds_text(window.high), seconds_text(window.low), ends(window.left),
                       ends(window.right), margin);
}

std::string curve_csv(const std::vector<tune::CurvePoint>& curve) {
  std::string text = "bytes,step_time_s\n";
  for (const auto& [size, step] : curve) {
    text += std::to_string(size) + "," + exact(step).dump() + "\n";
  }
  return text;
}

std::string text_plot(const std::vector<PlotSeries>& series) {
  Window window;
  if (!window_of(series, window)) return "";
  Canvas canvas(68, 20);  // within 80 columns with its labels
  const auto put = [&](const std::pair<double, double>& point, char mark) {
    canvas.put(canvas.column(window.across(std::log2(point.first))),
               canvas.row(1 - window.up(std::log10(point.second))), mark);
  };
  constexpr std::size_t kLetters = 26;
  const auto letter = [](std::size_t i) { return static_cast<char>('a' + i % kLetters); };
  for (const auto& one : series) {
    for (const auto& point : one.curve) put(point, '.');
  }
  for (std::size_t i = 0; i < series.size(); ++i) {
    for (const auto& point : series[i].points) put(point, letter(i));
  }
  std::size_t margin = 0;
  std::string text = canvas.framed(
      seconds_text(std::pow(10, window.high)), seconds_text(std::pow(10, window.low)),
      bytes_text(std::exp2(window.left)), bytes_text(std::exp2(window.right)), margin);
  const std::string indent(margin, ' ');
  for (std::size_t i = 0; i < series.size(); ++i) {
    text += indent + letter(i) + "  " + one_line(series[i].name) + "\n";
  }
  return text + indent + ".  fitted\n";
}

}  // namespace syncline::reports
