#include "reports/chart/lettering.h"

namespace syncline::reports::chart {
namespace {

constexpr double kSize = 12;  // pixels, as palette_css() has it

bool goes_on(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// The letter that begins at a place, all its bytes.
std::string_view letter_at(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && goes_on(text[end])) ++end;
  return text.substr(at, end - at);
}

// In parts of the size, as DejaVu Sans has them; Arial and Helvetica are narrower.
double breadth_of(std::string_view letter) {
  constexpr std::string_view kNarrow = "fijlrtIJ .,:;'`|!()[]/\\-";
  constexpr std::string_view kBroad = "mwMWQOG@%&#<>=+~^";
  if (letter.size() > 1) return letter.size() == 2 ? 0.75 : 1.05;
  if (kNarrow.find(letter) != std::string_view::npos) return 0.41;
  if (kBroad.find(letter) != std::string_view::npos) return 0.99;
  return letter[0] >= 'A' && letter[0] <= 'Z' ? 0.76 : 0.64;
}

}  // namespace

double width_of(std::string_view text) {
  double width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view letter = letter_at(text, at);
    width += kSize * breadth_of(letter);
    at += letter.size();
  }
  return width;
}

std::vector<std::string> lines_of(std::string_view text, double room) {
  std::vector<std::string> lines{""};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t blank = text.find(' ', at);
    const std::string_view word = text.substr(at, blank - at);
    at = blank == std::string_view::npos ? text.size() : blank + 1;
    const bool begins = lines.back().empty();
    if (!begins && width_of(lines.back()) + width_of(" ") + width_of(word) > room) {
      lines.emplace_back();
    } else if (!begins) {
      lines.back() += ' ';
    }
    for (std::size_t i = 0; i < word.size();) {
      const std::string_view letter = letter_at(word, i);
      const bool full = width_of(lines.back()) + width_of(letter) > room;
      if (full && !lines.back().empty()) lines.emplace_back();
      lines.back() += letter;
      i += letter.size();
    }
  }
  return lines;
}

}  // namespace syncline::reports::chart
