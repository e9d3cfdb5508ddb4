#include "core/visible.h"

namespace syncline {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool goes_on(std::string_view text, std::size_t at) { return (byte_at(text, at) & 0xc0) == 0x80; }

}  // namespace

std::string visible(std::string_view text, std::string_view keep) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const unsigned char byte = byte_at(text, at);
    const bool control = byte < 0x20 || byte == 0x7f;
    // U+0080 to U+009F: the same commands in two bytes.
    const bool c1 = byte == 0xc2 && at + 1 < text.size() && goes_on(text, at + 1) &&
                    byte_at(text, at + 1) < 0xa0;
    const bool kept = control && keep.find(text[at]) != std::string_view::npos;
    shown += (control && !kept) || c1 ? ' ' : text[at];
    if (c1) ++at;
  }
  return shown;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && goes_on(text, most)) --most;
  return std::string(text.substr(0, most)) + "...";
}

}  // namespace syncline
