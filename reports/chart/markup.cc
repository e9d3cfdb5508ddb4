#include "reports/chart/markup.h"

#include "formats/text/visible.h"

namespace syncline::reports::chart {
namespace {

// Replaces U+FFFE and U+FFFF, which are UTF-8 but no characters of XML.
std::string of_xml(std::string whole) {
  for (const char* none : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    for (std::size_t at = whole.find(none); at != std::string::npos; at = whole.find(none)) {
      whole.replace(at, 3, "\xef\xbf\xbd");
    }
  }
  return whole;
}

// Text in cells from this shade on has the colour of the page.
constexpr int kDeep = 4;

template <std::size_t size>
std::string rules(const char* name, const char* what, const std::array<const char*, size>& hues) {
  std::string css;
  for (std::size_t i = 0; i < size; ++i) {
    css += std::string(".") + name + std::to_string(i) + "{" + what + ":" + hues[i] + "}";
  }
  return css;
}

std::string theme(const char* paper, const char* ink, const char* thin,
                  const std::array<const char*, kColours>& hues,
                  const std::array<const char*, kShades>& shades) {
  std::string css = std::string("svg.chart{background:") + paper + "}.paper{fill:" + paper +
                    "}.chart text{fill:" + ink + "}.grid{stroke:" + thin +
                    "}.frame,.end{stroke:" + ink + "}.core{stroke:" + paper +
                    "}.cell{stroke:" + thin + "}";
  for (int shade = kDeep; shade < kShades; ++shade) {
    css += ".chart text.on" + std::to_string(shade) + "{fill:" + paper + "}";
  }
  return css + rules("c", "fill", hues) + rules("l", "stroke", hues) + rules("h", "fill", shades) +
         "\n";
}

constexpr double kSize = 12;  // pixels, as in palette_css()

bool goes_on(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Returns the letter that begins at `at`, with all its bytes.
std::string_view letter_at(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && goes_on(text[end])) ++end;
  return text.substr(at, end - at);
}

// Returns a letter's width / font size, of DejaVu Sans; Arial and Helvetica are narrower.
double breadth_of(std::string_view letter) {
  constexpr std::string_view kNarrow = "fijlrtIJ .,:;'`|!()[]/\\-";
  constexpr std::string_view kBroad = "mwMWQOG@%&#<>=+~^";
  if (letter.size() > 1) return letter.size() == 2 ? 0.75 : 1.05;
  if (kNarrow.find(letter) != std::string_view::npos) return 0.41;
  if (kBroad.find(letter) != std::string_view::npos) return 0.99;
  return letter[0] >= 'A' && letter[0] <= 'Z' ? 0.76 : 0.64;
}

}  // namespace

std::string escape(std::string_view text, std::string_view keep) {
  std::string safe;
  constexpr std::string_view kSigns = "&<>\"'";
  constexpr const char* kSpelt[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  for (const char letter : of_xml(visible(text, keep))) {
    const std::size_t sign = kSigns.find(letter);
    safe += sign == kSigns.npos ? std::string(1, letter) : kSpelt[sign];
  }
  return safe;
}

std::size_t letters_of(std::string_view text) {
  std::size_t count = 0;
  for (const char byte : text) count += goes_on(byte) ? 0 : 1;
  return count;
}

const std::array<const char*, kColours> kOnWhite{"#0072b2", "#d55e00", "#009e73", "#e69f00",
                                                 "#cc79a7", "#56b4e9", "#767676"};
const std::array<const char*, kColours> kOnBlack{"#3d9be0", "#f07a2e", "#1fc398", "#f5b83d",
                                                 "#e29ac4", "#8fd3f7", "#8c8c8c"};
const std::array<const char*, kShades> kShadesOnWhite{"#ffffff", "#e3eef9", "#c3dbf0", "#94c0e2",
                                                      "#5b9dcc", "#2a74ad", "#08437a"};
const std::array<const char*, kShades> kShadesOnBlack{"#16191d", "#17293b", "#1a3d5e", "#205683",
                                                      "#3277ae", "#5c9fd3", "#a6d2f5"};

std::string palette_css() {
  return ".chart text{font:12px sans-serif}.chart .head{font-size:15px}"
         ".grid,.frame,.l{fill:none}.grid{stroke-width:1}"
         ".l{stroke-width:2;stroke-linejoin:round}.l.faint{stroke-width:1;opacity:.35}"
         ".dot{fill:none;stroke-width:7;stroke-linecap:round}"
         ".core{fill:none;stroke-width:3.5;stroke-linecap:round}"
         ".whisker{fill:none;stroke-width:1.5;opacity:.7}.end{fill:none;stroke-width:1.5}"
         ".chart .best{font-weight:bold}"
         ".band{opacity:.18;stroke:none}.dash1{stroke-dasharray:6 3}.dash2{stroke-dasharray:2 3}"
         ".dash3{stroke-dasharray:9 3 2 3}\n" +
         theme("#ffffff", "#1a1a1a", "#dddddd", kOnWhite, kShadesOnWhite) +
         "@media screen and (prefers-color-scheme:dark){" +
         theme("#16191d", "#e6e6e6", "#3a4048", kOnBlack, kShadesOnBlack) + "}\n";
}

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
