#include "reports/grid.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <numeric>
#include <optional>
#include <sstream>

#include "reports/format.h"

namespace syncline::reports {
namespace {

constexpr std::string_view kGap = "  ";

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

// The grid's headings and cells as lines of cells; short headings are at the bottom of the head.
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

// The columns that are drawn, and their widths.
struct Layout {
  std::vector<std::size_t> shown;
  std::vector<std::size_t> widths;  // of all columns
};

// Names are not broken below the first while another column can leave, then not below the second.
constexpr std::size_t kNarrow = 24;
constexpr std::size_t kNarrowest = 12;

std::size_t total(const Layout& layout) {
  std::size_t sum = 0;
  for (const std::size_t c : layout.shown) sum += layout.widths[c] + kGap.size();
  return sum > kGap.size() ? sum - kGap.size() : 0;
}

// Gives names, narrowest first, an equal share of the room that the others leave them.
void share_room(const Grid& grid, const std::vector<std::size_t>& natural, std::size_t width,
                Layout& layout) {
  std::vector<std::size_t> names;
  for (const std::size_t c : layout.shown) {
    if (!grid.columns[c].right) names.push_back(c);
  }
  std::stable_sort(names.begin(), names.end(),
                   [&](std::size_t a, std::size_t b) { return natural[a] < natural[b]; });
  std::size_t room = width - total(layout);
  for (const std::size_t c : names) room += layout.widths[c];
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t share = room / (names.size() - i);
    layout.widths[names[i]] = std::max(std::min(natural[names[i]], share), layout.widths[names[i]]);
    room -= std::min(room, layout.widths[names[i]]);
  }
}

// Returns the column that leaves first; none if only the first column is left or, with `ranked`, if
// all others have rank 0.
std::optional<std::size_t> first_to_leave(const Grid& grid, const Layout& layout, bool ranked) {
  std::optional<std::size_t> found;
  for (std::size_t i = 1; i < layout.shown.size(); ++i) {
    const int rank = grid.columns[layout.shown[i]].rank;
    if (ranked && rank == 0) continue;
    if (!found || rank >= grid.columns[layout.shown[*found]].rank) found = i;
  }
  return found;
}

constexpr std::size_t kFurther = 2;  // blanks before a name's further lines

// Narrows columns of broken names to the width that their lines use.
void trim_names(const Grid& grid, const Drawing& drawing, Layout& layout) {
  for (const std::size_t c : layout.shown) {
    if (grid.columns[c].right) continue;
    std::size_t used = 0;
    for (const auto* lines : {&drawing.head, &drawing.body}) {
      for (const auto& cells : *lines) {
        for (const auto& part : wrap(cells[c], layout.widths[c], kFurther)) {
          used = std::max(used, display_width(part));
        }
      }
    }
    layout.widths[c] = std::min(used, layout.widths[c]);
  }
}

Layout layout_of(const Grid& grid, const Drawing& drawing, std::size_t width) {
  const auto& natural = drawing.widths;
  Layout layout{std::vector<std::size_t>(natural.size()), natural};
  std::iota(layout.shown.begin(), layout.shown.end(), std::size_t{0});
  std::erase_if(layout.shown, [&](std::size_t c) { return grid.columns[c].below; });
  if (width == 0 || total(layout) <= width) return layout;
  const auto narrow_to = [&](std::size_t least) {
    for (const std::size_t c : layout.shown) {
      if (!grid.columns[c].right) layout.widths[c] = std::min(natural[c], least);
    }
  };
  for (const bool ranked : {true, false}) {
    narrow_to(ranked ? kNarrow : kNarrowest);
    while (total(layout) > width) {
      const auto leaving = first_to_leave(grid, layout, ranked);
      if (!leaving) break;
      layout.shown.erase(layout.shown.begin() + static_cast<std::ptrdiff_t>(*leaving));
    }
  }
  if (total(layout) <= width) {
    share_room(grid, natural, width, layout);
    trim_names(grid, drawing, layout);
  } else {
    layout.widths[layout.shown.front()] = width;
  }
  return layout;
}

// Returns a line of cells as lines of text: text that is too wide for its column goes on below.
std::vector<std::string> plain_lines(const Grid& grid, const Layout& layout,
                                     const std::vector<std::string>& cells) {
  std::vector<std::vector<std::string>> parts;
  std::size_t height = 1;
  for (const std::size_t c : layout.shown) {
    parts.push_back(wrap(cells[c], layout.widths[c], grid.columns[c].right ? 0 : kFurther));
    height = std::max(height, parts.back().size());
  }
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < height; ++i) {
    std::string text;
    for (std::size_t s = 0; s < parts.size(); ++s) {
      const std::size_t c = layout.shown[s];
      if (s > 0) text += kGap;
      text +=
          padded(i < parts[s].size() ? parts[s][i] : "", layout.widths[c], grid.columns[c].right);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    lines.push_back(std::move(text));
  }
  return lines;
}

// Returns a line's texts of columns below it.
std::vector<std::string> lines_below(const Grid& grid, const std::vector<std::string>& cells,
                                     std::size_t width) {
  constexpr std::size_t kIndent = 4;
  std::vector<std::string> lines;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (!grid.columns[c].below || cells[c].empty()) continue;
    for (auto& line : wrap(std::string(kIndent, ' ') + cells[c], width, kIndent)) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

// Returns "Left out at 80 columns: lower bound; compute."; empty if all columns are drawn.
std::string left_out(const Grid& grid, const Layout& layout, const Screen& screen) {
  std::string names;
  for (std::size_t c = 0; c < grid.columns.size(); ++c) {
    const bool shown = std::ranges::find(layout.shown, c) != layout.shown.end();
    if (shown || grid.columns[c].below) continue;
    names += (names.empty() ? "" : "; ") + one_line(grid.columns[c].heading);
  }
  if (names.empty()) return {};
  std::string text;
  const std::string sentence =
      "Left out at " + std::to_string(screen.width) + " columns: " + names + ".";
  for (const auto& line : wrap(sentence, screen.width)) {
    text += paint(line, Tone::kFaint, screen) + "\n";
  }
  return text;
}

std::string markdown_line(const Grid& grid, const std::vector<std::size_t>& widths,
                          const std::vector<std::string>& cells) {
  std::string text = "|";
  for (std::size_t c = 0; c < cells.size(); ++c) {
    text += " " + padded(cells[c], widths[c], grid.columns[c].right) + " |";
  }
  return text + "\n";
}

// Returns true inside a word: there, an underscore is a letter in GitHub's Markdown.
bool inside_word(std::string_view text, std::size_t place) {
  const auto letter = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  return place > 0 && letter(place - 1) && letter(place + 1);
}

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

// Returns the code point at `place` and moves `place` after it. Each wrong byte counts as one.
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

// Returns how many of a word's bytes fill at most `width` columns, at least one letter; up to a
// sign such as '/' if one is in the second half.
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

// Returns the end of a word; a figure and its per cent sign are one word.
std::size_t end_of_word(std::string_view text, std::size_t begin) {
  std::size_t end = std::min(text.find(' ', begin), text.size());
  while (end + 1 < text.size() && text[end + 1] == '%') {
    end = std::min(text.find(' ', end + 1), text.size());
  }
  return end;
}

// Returns the column at which the lines after a line's first begin.
std::size_t hanging_indent(std::string_view line) {
  constexpr std::size_t kLabel = 30;  // a gap further right does not separate a label from its text
  constexpr std::size_t kMore = 2;
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  if (begin == 0) return kMore;
  const std::size_t gap = line.find("  ", begin);
  if (gap >= kLabel) return begin;
  return std::min(line.find_first_not_of(' ', gap), line.size());
}

}  // namespace

std::string plain_grid(const Grid& grid, const Screen& screen) {
  const Drawing drawing = drawing_of(grid);
  const Layout layout = layout_of(grid, drawing, screen.width);
  const std::string rule = paint(std::string(total(layout), '-'), Tone::kFaint, screen) + "\n";
  std::string text;
  const auto add = [&](const std::vector<std::string>& cells, Tone tone) {
    for (const auto& line : plain_lines(grid, layout, cells)) {
      text += paint(line, tone, screen) + "\n";
    }
    for (const auto& line : lines_below(grid, cells, screen.width)) {
      text += paint(line, tone == Tone::kHeading ? tone : Tone::kFaint, screen) + "\n";
    }
  };
  for (const auto& cells : drawing.head) add(cells, Tone::kHeading);
  text += rule;
  for (std::size_t i = 0; i < grid.lines.size(); ++i) {
    if (grid.lines[i].rule_before) text += rule;
    add(drawing.body[i], grid.lines[i].tone);
  }
  return text + left_out(grid, layout, screen);
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

std::string paint(const std::string& text, Tone tone, const Screen& screen) {
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

std::vector<std::string> wrap(std::string_view text, std::size_t width, std::size_t indent) {
  if (width <= indent || display_width(text) <= width) return {std::string(text)};
  std::vector<std::string> lines;
  // Blanks before the text belong to the first line, if they leave room.
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
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t indent = hanging_indent(line);
    for (const auto& part : wrap(line, width, indent < width / 2 ? indent : 2)) {
      shown += part + "\n";
    }
  }
  return shown;
}

}  // namespace syncline::reports
