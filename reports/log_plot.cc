#include "reports/log_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
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

std::string fixed(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : one_line(text)) {
    if (c == '&') {
      safe += "&amp;";
    } else if (c == '<') {
      safe += "&lt;";
    } else if (c == '>') {
      safe += "&gt;";
    } else {
      safe += c;
    }
  }
  return safe;
}

// The SVG's page, and the field inside it that the window fills.
constexpr double kPageWidth = 900;
constexpr double kPageHeight = 560;
constexpr double kLeft = 80;
constexpr double kBottom = 500;
constexpr double kTop = 50;
constexpr double kRight = 880;

double x_of(const Window& window, double bytes) {
  return kLeft + window.across(bytes) * (kRight - kLeft);
}

double y_of(const Window& window, double seconds) {
  return kBottom - window.up(seconds) * (kBottom - kTop);
}

std::string svg_line(double x1, double y1, double x2, double y2) {
  return "<line x1=\"" + fixed(x1) + "\" y1=\"" + fixed(y1) + "\" x2=\"" + fixed(x2) + "\" y2=\"" +
         fixed(y2) + "\" stroke=\"#dddddd\"/>\n";
}

std::string svg_label(double x, double y, const char* anchor, const std::string& text) {
  return "<text x=\"" + fixed(x) + "\" y=\"" + fixed(y) + "\" text-anchor=\"" + anchor + "\">" +
         escaped(text) + "</text>\n";
}

std::string svg_dot(double x, double y, const char* colour) {
  return "<circle cx=\"" + fixed(x) + "\" cy=\"" + fixed(y) + "\" r=\"3\" fill=\"" + colour +
         "\"/>\n";
}

// Lines at powers of two of the payload, at most ten or so, and at powers of ten of the time.
std::string svg_grid(const Window& window) {
  std::string svg;
  const int stride = std::max(1, static_cast<int>((window.right - window.left) / 10));
  for (int power = static_cast<int>(std::ceil(window.left)); power <= window.right;
       power += stride) {
    const double bytes = std::exp2(power);
    const double x = x_of(window, bytes);
    svg += svg_line(x, kTop, x, kBottom);
    svg += svg_label(x, kBottom + 18, "middle", bytes_text(bytes));
  }
  for (int power = static_cast<int>(std::ceil(window.low)); power <= window.high; ++power) {
    const double seconds = std::pow(10, power);
    const double y = y_of(window, seconds);
    svg += svg_line(kLeft, y, kRight, y);
    svg += svg_label(kLeft - 6, y + 4, "end", seconds_text(seconds));
  }
  return svg;
}

// Curve, dots, and a line of the legend.
std::string svg_series(const Window& window, const PlotSeries& series, std::size_t index) {
  constexpr std::array<const char*, 8> kColours = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                                   "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f"};
  const char* colour = kColours[index % kColours.size()];
  std::string path;
  for (const auto& [bytes, seconds] : series.curve) {
    path += (path.empty() ? "M" : " L") + fixed(x_of(window, bytes)) + "," +
            fixed(y_of(window, seconds));
  }
  std::string svg;
  if (!path.empty()) {
    svg += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour + "\"/>\n";
  }
  for (const auto& [bytes, seconds] : series.points) {
    svg += svg_dot(x_of(window, bytes), y_of(window, seconds), colour);
  }
  const double at = kTop + 16 + 16 * static_cast<double>(index);
  return svg + svg_dot(kLeft + 12, at - 4, colour) +
         svg_label(kLeft + 22, at, "start", series.name);
}

}  // namespace

std::string text_plot(const std::vector<PlotSeries>& series) {
  constexpr int kWidth = 72;
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

std::string svg_plot(const std::string& title, const std::vector<PlotSeries>& series) {
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + fixed(kPageWidth) +
                    " " + fixed(kPageHeight) + "\" font-family=\"sans-serif\" font-size=\"12\">\n" +
                    "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" +
                    "<text x=\"80\" y=\"25\" font-size=\"16\">" + escaped(title) + "</text>\n";
  Window window;
  if (!window_of(series, window)) return svg + "</svg>\n";
  svg += svg_grid(window);
  for (std::size_t i = 0; i < series.size(); ++i) svg += svg_series(window, series[i], i);
  svg += svg_label(kLeft, kPageHeight - 16, "start",
                   "payload; dots are measured, lines fitted or predicted");
  return svg + "</svg>\n";
}

}  // namespace syncline::reports
