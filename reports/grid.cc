#include "reports/grid.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "reports/format.h"

namespace syncline::reports {
namespace {

constexpr std::string_view kGap = "  ";

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

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::size_t used = display_width(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return right ? blanks + text : text + blanks;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  lines.push_back(text.substr(begin));
  return lines;
}

// The grid's headings and cells as lines of cells, headings resting on the first rule.
struct Drawing {
  std::vector<std::vector<std::string>> head;
  std::vector<std::vector<std::string>> body;
  std::vector<std::size_t> widths;
};

void widen(std::vector<std::size_t>& widths, const std::vector<std::string>& cells) {
  for (std::size_t c = 0; c < cells.size(); ++c) {
    widths[c] = std::max(widths[c], display_width(cells[c]));
  }
}

Drawing drawing_of(const Grid& grid) {
  const std::size_t columns = grid.columns.size();
  std::vector<std::vector<std::string>> headings;
  std::size_t height = 1;
  for (const auto& column : grid.columns) {
    headings.push_back(lines_of(column.heading));
    height = std::max(height, headings.back().size());
  }
  Drawing drawing;
  drawing.head.assign(height, std::vector<std::string>(columns));
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t top = height - headings[c].size();
    for (std::size_t i = 0; i < headings[c].size(); ++i) {
      drawing.head[top + i][c] = one_line(headings[c][i]);
    }
  }
  for (const auto& line : grid.lines) {
    auto& cells = drawing.body.emplace_back();
    for (const auto& cell : line.cells) cells.push_back(one_line(cell));
  }
  drawing.widths.assign(columns, 0);
  for (const auto& cells : drawing.head) widen(drawing.widths, cells);
  for (const auto& cells : drawing.body) widen(drawing.widths, cells);
  return drawing;
}

std::string plain_line(const Grid& grid, const Drawing& drawing,
                       const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (c > 0) text += kGap;
    text += padded(cells[c], drawing.widths[c], grid.columns[c].right);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string markdown_line(const Grid& grid, const std::vector<std::size_t>& widths,
                          const std::vector<std::string>& cells) {
  std::string text = "|";
  for (std::size_t c = 0; c < cells.size(); ++c) {
    text += " " + padded(cells[c], widths[c], grid.columns[c].right) + " |";
  }
  return text + "\n";
}

// An underscore inside a word is a letter in GitHub's Markdown; elsewhere it slants.
bool inside_word(std::string_view text, std::size_t place) {
  const auto letter = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  return place > 0 && letter(place - 1) && letter(place + 1);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t place = 0; place < text.size();) {
    const std::uint32_t code = next_code(text, place);
    if (within(code, kNoWidth)) continue;
    width += within(code, kWide) ? 2 : 1;
  }
  return width;
}

std::string plain_grid(const Grid& grid) {
  const Drawing drawing = drawing_of(grid);
  std::size_t full = 0;
  for (const std::size_t width : drawing.widths) full += width + kGap.size();
  const std::string rule = std::string(full > kGap.size() ? full - kGap.size() : 0, '-') + "\n";

  std::string text;
  for (const auto& cells : drawing.head) text += plain_line(grid, drawing, cells);
  text += rule;
  for (std::size_t i = 0; i < grid.lines.size(); ++i) {
    if (grid.lines[i].rule_before) text += rule;
    text += plain_line(grid, drawing, drawing.body[i]);
  }
  return text;
}

std::string markdown_grid(const Grid& grid) {
  std::vector<std::vector<std::string>> table(1 + grid.lines.size());
  for (const auto& column : grid.columns) {
    table[0].push_back(markdown_text(one_line(column.heading)));
  }
  for (std::size_t i = 0; i < grid.lines.size(); ++i) {
    for (const auto& cell : grid.lines[i].cells) table[i + 1].push_back(markdown_text(cell));
  }
  std::vector<std::size_t> widths(grid.columns.size(), 3);  // "---" is the shortest rule
  for (const auto& cells : table) widen(widths, cells);

  std::string text = markdown_line(grid, widths, table[0]) + "|";
  for (std::size_t c = 0; c < widths.size(); ++c) {
    const std::string dashes(widths[c] - 1, '-');
    text += " " + (grid.columns[c].right ? dashes + ":" : ":" + dashes) + " |";
  }
  text += "\n";
  for (std::size_t i = 1; i < table.size(); ++i) text += markdown_line(grid, widths, table[i]);
  return text;
}

std::string markdown_text(std::string_view text) {
  constexpr std::string_view kSigns = "\\|`*<>[]~#&";
  const std::string line = one_line(text);
  std::string escaped;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool sign = kSigns.find(line[i]) != std::string_view::npos;
    if (sign || (line[i] == '_' && !inside_word(line, i))) escaped += '\\';
    escaped += line[i];
  }
  return escaped;
}

}  // namespace syncline::reports
