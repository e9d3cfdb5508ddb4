#include "reports/log_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "reports/format.h"

namespace syncline {
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
  constexpr double kWidth = 900;
  constexpr double kHeight = 560;
  constexpr double kLeft = 80;
  constexpr double kBottom = 500;
  constexpr double kTop = 50;
  constexpr double kRight = 880;
  constexpr std::array<const char*, 8> kColours = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                                   "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f"};
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + fixed(kWidth) +
                    " " + fixed(kHeight) + "\" font-family=\"sans-serif\" font-size=\"12\">\n" +
                    "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" +
                    "<text x=\"80\" y=\"25\" font-size=\"16\">" + escaped(title) + "</text>\n";
  Window window;
  if (!window_of(series, window)) return svg + "</svg>\n";
  const auto x = [&](double bytes) { return kLeft + window.across(bytes) * (kRight - kLeft); };
  const auto y = [&](double seconds) { return kBottom - window.up(seconds) * (kBottom - kTop); };
  const auto line = [&](double x1, double y1, double x2, double y2) {
    svg += "<line x1=\"" + fixed(x1) + "\" y1=\"" + fixed(y1) + "\" x2=\"" + fixed(x2) +
           "\" y2=\"" + fixed(y2) + "\" stroke=\"#dddddd\"/>\n";
  };
  const auto label = [&](double at_x, double at_y, const char* anchor, const std::string& text) {
    svg += "<text x=\"" + fixed(at_x) + "\" y=\"" + fixed(at_y) + "\" text-anchor=\"" + anchor +
           "\">" + escaped(text) + "</text>\n";
  };
  const int stride = std::max(1, static_cast<int>((window.right - window.left) / 10));
  for (int power = static_cast<int>(std::ceil(window.left)); power <= window.right;
       power += stride) {
    const double bytes = std::exp2(power);
    line(x(bytes), kTop, x(bytes), kBottom);
    label(x(bytes), kBottom + 18, "middle", bytes_text(bytes));
  }
  for (int power = static_cast<int>(std::ceil(window.low)); power <= window.high; ++power) {
    const double seconds = std::pow(10, power);
    line(kLeft, y(seconds), kRight, y(seconds));
    label(kLeft - 6, y(seconds) + 4, "end", seconds_text(seconds));
  }
  for (std::size_t i = 0; i < series.size(); ++i) {
    const char* colour = kColours[i % kColours.size()];
    std::string path;
    for (const auto& [bytes, seconds] : series[i].curve) {
      path += (path.empty() ? "M" : " L") + fixed(x(bytes)) + "," + fixed(y(seconds));
    }
    if (!path.empty()) {
      svg += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour + "\"/>\n";
    }
    for (const auto& [bytes, seconds] : series[i].points) {
      svg += "<circle cx=\"" + fixed(x(bytes)) + "\" cy=\"" + fixed(y(seconds)) +
             "\" r=\"3\" fill=\"" + colour + "\"/>\n";
    }
    const double at = kTop + 16 + 16 * static_cast<double>(i);
    svg += "<circle cx=\"" + fixed(kLeft + 12) + "\" cy=\"" + fixed(at - 4) + "\" r=\"3\" fill=\"" +
           colour + "\"/>\n";
    label(kLeft + 22, at, "start", series[i].name);
  }
  label(kLeft, kHeight - 16, "start", "payload; dots are measured, lines fitted or predicted");
  return svg + "</svg>\n";
}

}  // namespace syncline
