#include "reports/screen.h"

#include <algorithm>
#include <cstdint>

namespace syncline::reports {
namespace {

struct CodeRange {
  std::uint32_t first, last;
};

// The blocks of Unicode's "East Asian Width" table that are wide, and emoji.
constexpr CodeRange kWide[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                               {0xf900, 0xfaff}, {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                               {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
// Combining marks, zero-width spaces and joiners, variation selectors.
constexpr CodeRange kNoWidth[] = {{0x300, 0x36f},   {0x1ab0, 0x1aff}, {0x20d0, 0x20ff},
                                  {0x200b, 0x200f}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};

template <std::size_t N>
bool within(std::uint32_t code, const CodeRange (&ranges)[N]) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](CodeRange r) { return r.first <= code && code <= r.last; });
}

// The code point that begins at `place`, which moves behind it. Wrong bytes count one each.
std::uint32_t next_code(std::string_view text, std::size_t& place) {
  const auto lead = static_cast<unsigned char>(text[place++]);
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
  std::uint32_t code = more == 0 ? lead : lead & (0x3fU >> more);
  for (int i = 0; i < more && place < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[place]);
    if ((byte & 0xc0) != 0x80) break;
    code = (code << 6) | (byte & 0x3fU);
    ++place;
  }
  return code;
}

std::size_t code_width(std::uint32_t code) {
  if (within(code, kNoWidth)) return 0;
  return within(code, kWide) ? 2 : 1;
}

// How many of a word's bytes fill at most `width` columns, of letters one at least; up to a sign
// that parts names where one is near the end.
std::size_t bytes_within(std::string_view word, std::size_t width) {
  std::size_t used = 0, end = 0, sign = 0;
  for (std::size_t place = 0; place < word.size();) {
    const std::size_t begin = place;
    const std::uint32_t code = next_code(word, place);
    used += code_width(code);
    if (used > width && end > 0) break;
    end = place;
    if (std::string_view("/_.,:;-=").find(word[begin]) != std::string_view::npos) sign = place;
  }
  return end < word.size() && 2 * sign > end ? sign : end;
}

// A figure and its per cent sign are one word.
std::size_t end_of_word(std::string_view text, std::size_t begin) {
  std::size_t end = std::min(text.find(' ', begin), text.size());
  while (end + 1 < text.size() && text[end + 1] == '%') {
    end = std::min(text.find(' ', end + 1), text.size());
  }
  return end;
}

// Where the lines below a line's first begin.
std::size_t hanging_indent(std::string_view line) {
  constexpr std::size_t kLabel = 30;  // a gap further on parts no label from its text
  constexpr std::size_t kMore = 2;
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  if (begin == 0) return kMore;
  const std::size_t gap = line.find("  ", begin);
  if (gap >= kLabel) return begin;
  return std::min(line.find_first_not_of(' ', gap), line.size());
}

}  // namespace

std::string painted(const std::string& text, Tone tone, const Screen& screen) {
  if (!screen.colour || tone == Tone::kPlain || text.empty()) return text;
  const std::string_view code = tone == Tone::kBest      ? "\033[1;32m"
                                : tone == Tone::kHeading ? "\033[1m"
                                                         : "\033[2m";
  return std::string(code) + text + "\033[0m";
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t place = 0; place < text.size();) width += code_width(next_code(text, place));
  return width;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  if (width <= indent || display_width(text) <= width) return {std::string(text)};
  std::vector<std::string> lines;
  // Blanks in front are the first line's own, where they leave room.
  const std::size_t begin = std::min({text.find_first_not_of(' '), text.size(), width / 2});
  std::string line(text.substr(0, begin));
  std::size_t used = begin, start = begin;
  const auto turn = [&] {
    lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
    line.assign(indent, ' ');
    used = start = indent;
  };
  for (std::size_t place = begin; place < text.size();) {
    const std::size_t word_begin = std::min(text.find_first_not_of(' ', place), text.size());
    std::size_t blanks = word_begin - place;
    place = end_of_word(text, word_begin);
    std::string_view word = text.substr(word_begin, place - word_begin);
    if (word.empty()) break;
    if (used > start && used + blanks + display_width(word) > width) turn();
    if (used == start) blanks = 0;
    while (used + blanks + display_width(word) > width) {
      const std::size_t part = bytes_within(word, width - used);
      if (part == word.size()) break;  // a wide letter in one column
      line += word.substr(0, part);
      word.remove_prefix(part);
      turn();
    }
    line += std::string(blanks, ' ');
    line += word;
    used += blanks + display_width(word);
  }
  if (used > start) turn();
  return lines;
}

std::string wrapped_lines(const std::string& text, std::size_t width) {
  if (width == 0) return text;
  std::string shown;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const std::size_t indent = hanging_indent(line);
    for (const auto& part : wrapped(line, width, indent < width / 2 ? indent : 2)) {
      shown += part + "\n";
    }
    begin = end + 1;
  }
  return shown;
}

}  // namespace syncline::reports
