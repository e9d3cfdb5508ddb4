#include "reports/chart/escape.h"

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

std::string clipped(std::string_view text, std::size_t letters) {
  if (letters_of(text) <= letters) return std::string(text);
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at) {
    if (begins_letter(text[at]) && seen++ == letters - 1) break;
  }
  return std::string(text.substr(0, at)) + "\xe2\x80\xa6";
}

}  // namespace syncline::reports::chart
