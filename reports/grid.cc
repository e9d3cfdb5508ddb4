#include "reports/grid.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>

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

// Which columns are drawn, and how wide.
struct Layout {
  std::vector<std::size_t> shown;
  std::vector<std::size_t> widths;  // of all columns
};

// Names are not broken below this while another column can leave, then not below the second.
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

// The column that leaves first, or none where only the first is left or, with `ranked`, where all
// that are left have rank 0.
std::optional<std::size_t> first_to_leave(const Grid& grid, const Layout& layout, bool ranked) {
  std::optional<std::size_t> found;
  for (std::size_t i = 1; i < layout.shown.size(); ++i) {
    const int rank = grid.columns[layout.shown[i]].rank;
    if (ranked && rank == 0) continue;
    if (!found || rank >= grid.columns[layout.shown[*found]].rank) found = i;
  }
  return found;
}

constexpr std::size_t kFurther = 2;  // blanks in front of a name's further lines

// Names that are broken may not fill what they were given.
void trim_names(const Grid& grid, const Drawing& drawing, Layout& layout) {
  for (const std::size_t c : layout.shown) {
    if (grid.columns[c].right) continue;
    std::size_t used = 0;
    for (const auto* lines : {&drawing.head, &drawing.body}) {
      for (const auto& cells : *lines) {
        for (const auto& part : wrapped(cells[c], layout.widths[c], kFurther)) {
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

// A line of cells as lines of text: what is too wide for its column goes on below it.
std::vector<std::string> plain_lines(const Grid& grid, const Layout& layout,
                                     const std::vector<std::string>& cells) {
  std::vector<std::vector<std::string>> parts;
  std::size_t height = 1;
  for (const std::size_t c : layout.shown) {
    parts.push_back(wrapped(cells[c], layout.widths[c], grid.columns[c].right ? 0 : kFurther));
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

// "Left out at 80 columns: lower bound, compute." Empty where nothing is.
std::string left_out(const Grid& grid, const Layout& layout, const Screen& screen) {
  std::string names;
  for (std::size_t c = 0; c < grid.columns.size(); ++c) {
    if (std::find(layout.shown.begin(), layout.shown.end(), c) != layout.shown.end()) continue;
    names += (names.empty() ? "" : "; ") + one_line(grid.columns[c].heading);
  }
  if (names.empty()) return {};
  std::string text;
  const std::string sentence =
      "Left out at " + std::to_string(screen.width) + " columns: " + names + ".";
  for (const auto& line : wrapped(sentence, screen.width)) {
    text += painted(line, Tone::kFaint, screen) + "\n";
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

// An underscore inside a word is a letter in GitHub's Markdown; elsewhere it slants.
bool inside_word(std::string_view text, std::size_t place) {
  const auto letter = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  return place > 0 && letter(place - 1) && letter(place + 1);
}

}  // namespace

std::string plain_grid(const Grid& grid, const Screen& screen) {
  const Drawing drawing = drawing_of(grid);
  const Layout layout = layout_of(grid, drawing, screen.width);
  const std::string rule = painted(std::string(total(layout), '-'), Tone::kFaint, screen) + "\n";
  std::string text;
  const auto add = [&](const std::vector<std::string>& cells, Tone tone) {
    for (const auto& line : plain_lines(grid, layout, cells)) {
      text += painted(line, tone, screen) + "\n";
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

}  // namespace syncline::reports
