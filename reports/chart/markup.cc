#include "reports/chart/markup.h"

#include "core/visible.h"

namespace syncline::reports::chart {
namespace {

bool begins_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

// U+FFFE and U+FFFF are UTF-8 but no letters of XML.
std::string of_xml(std::string whole) {
  for (const char* none : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    for (std::size_t at = whole.find(none); at != std::string::npos; at = whole.find(none)) {
      whole.replace(at, 3, "\xef\xbf\xbd");
    }
  }
  return whole;
}

// Shades from this one on are written upon in the page's own colour.
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

}  // namespace

std::string escaped(std::string_view text, std::string_view keep) {
  std::string safe;
  for (const char letter : of_xml(visible(text, keep))) {
    switch (letter) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += letter;
    }
  }
  return safe;
}

std::size_t letters_of(std::string_view text) {
  std::size_t count = 0;
  for (const char byte : text) count += begins_letter(byte) ? 1 : 0;
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

}  // namespace syncline::reports::chart
