#include "reports/log_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/format.h"

namespace syncline::reports {
namespace {

// The window in logarithms.
struct Window {
  double left = std::numeric_limits<double>::infinity();
  double right = -std::numeric_limits<double>::infinity();
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void hold(const std::pair<double, double>& point) {
    left = std::min(left, std::log2(point.first));
    right = std::max(right, std::log2(point.first));
    low = std::min(low, std::log10(point.second));
    high = std::max(high, std::log10(point.second));
  }
  double across(double bytes) const { return (std::log2(bytes) - left) / (right - left); }
  double up(double seconds) const { return (std::log10(seconds) - low) / (high - low); }
};

bool window_of(const std::vector<PlotSeries>& series, Window& window) {
  for (const auto& one : series) {
    for (const auto& point : one.points) window.hold(point);
    for (const auto& point : one.curve) window.hold(point);
  }
  if (window.left > window.right) return false;
  constexpr double kAlone = 0.5;  // a single size or time still has a window
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

std::string text_plot(const std::vector<PlotSeries>& series) {
  constexpr int kWidth = 68;  // with its labels within 80 columns
  constexpr int kHeight = 20;
  Window window;
  if (!window_of(series, window)) return "";
  std::vector<std::string> canvas(kHeight, std::string(kWidth, ' '));
  const auto put = [&](const std::pair<double, double>& point, char mark) {
    const auto x = std::lround(window.across(point.first) * (kWidth - 1));
    const auto y = std::lround((1 - window.up(point.second)) * (kHeight - 1));
    canvas[static_cast<std::size_t>(y)][static_cast<std::size_t>(x)] = mark;
  };
  constexpr std::size_t kLetters = 26;
  const auto letter = [](std::size_t i) { return static_cast<char>('a' + i % kLetters); };
  for (const auto& one : series) {
    for (const auto& point : one.curve) put(point, '.');
  }
  for (std::size_t i = 0; i < series.size(); ++i) {
    for (const auto& point : series[i].points) put(point, letter(i));
  }
  const std::string top = seconds_text(std::pow(10, window.high));
  const std::string bottom = seconds_text(std::pow(10, window.low));
  const std::size_t margin = std::max(top.size(), bottom.size());
  std::string text;
  for (std::size_t y = 0; y < canvas.size(); ++y) {
    const std::string label = y == 0 ? top : y + 1 == canvas.size() ? bottom : "";
    std::string line = std::string(margin - label.size(), ' ') + label + " |" + canvas[y];
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const std::string first = bytes_text(std::exp2(window.left));
  const std::string last = bytes_text(std::exp2(window.right));
  text += std::string(margin + 1, ' ') + "+" + std::string(kWidth, '-') + "\n";
  text += std::string(margin + 2, ' ') + first +
          std::string(kWidth - std::min<std::size_t>(kWidth, first.size() + last.size()), ' ') +
          last + "\n";
  for (std::size_t i = 0; i < series.size(); ++i) {
    text += std::string(margin + 2, ' ') + letter(i) + "  " + one_line(series[i].name) + "\n";
  }
  return text + std::string(margin + 2, ' ') + ".  fitted\n";
}

}  // namespace syncline::reports
