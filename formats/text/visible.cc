#include "formats/text/visible.h"

#include <algorithm>

namespace syncline {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool goes_on(std::string_view text, std::size_t at) { return (byte_at(text, at) & 0xc0) == 0x80; }

// Returns the bytes of the sign at `at` if it has no width, ends a line or turns the direction of
// text, else 0: U+061C, U+200B, U+200E, U+200F, U+2028 to U+202E, U+2060 to U+2069, U+FEFF. Joiners
// (U+200C, U+200D) stay: scripts and emoji need them.
std::size_t unseen(std::string_view text, std::size_t at) {
  const auto is = [&](std::string_view sign) { return text.substr(at).starts_with(sign); };
  if (is("\xd8\x9c")) return 2;
  if (is("\xef\xbb\xbf")) return 3;
  const unsigned last = at + 2 < text.size() ? byte_at(text, at + 2) : 0;
  const bool marks = is("\xe2\x80") && (last == 0x8b || last == 0x8e || last == 0x8f ||
                                        (last >= 0xa8 && last <= 0xae));
  return marks || (is("\xe2\x81") && last >= 0xa0 && last <= 0xa9) ? 3 : 0;
}

std::string in_utf8(std::string_view text) {
  std::string whole;
  while (const auto wrong = not_utf8(text)) {
    whole += text.substr(0, *wrong);
    whole += "\xef\xbf\xbd";
    text.remove_prefix(*wrong + 1);
  }
  return whole += text;
}

}  // namespace

std::optional<std::size_t> not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const unsigned lead = byte_at(text, at);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    const std::size_t more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (lead < 0xc2 || lead > 0xf4 || at + more >= text.size()) return at;
    for (std::size_t next = at + 1; next <= at + more; ++next) {
      if (!goes_on(text, next)) return at;
    }
    // An overlong form, half of a surrogate pair, or a letter past the last.
    const unsigned second = byte_at(text, at + 1);
    const bool short_form = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
    const bool past = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
    if (short_form || past) return at;
    at += more + 1;
  }
  return std::nullopt;
}

std::string visible(std::string_view text, std::string_view keep) {
  std::string whole;
  if (not_utf8(text)) text = whole = in_utf8(text);
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const unsigned char byte = byte_at(text, at);
    const bool control = byte < 0x20 || byte == 0x7f;
    // U+0080 to U+009F: the same control characters in two bytes.
    const bool c1 = byte == 0xc2 && at + 1 < text.size() && goes_on(text, at + 1) &&
                    byte_at(text, at + 1) < 0xa0;
    const bool kept = control && keep.find(text[at]) != std::string_view::npos;
    const std::size_t hidden = byte < 0x80 ? 0 : unseen(text, at);
    shown += (control && !kept) || c1 || hidden > 0 ? ' ' : text[at];
    at += c1 ? 1 : hidden > 0 ? hidden - 1 : 0;
  }
  return shown;
}

std::string shorten_text(std::string_view text, std::size_t most) {
  const bool whole = text.size() <= most;
  while (!whole && most > 0 && goes_on(text, most)) --most;
  std::string first(text.substr(0, most));
  std::ranges::replace(first, '\0', ' ');
  return whole ? first : first + "...";
}

std::string shorten_middle(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = text.size() - most / 2;
  while (end < text.size() && goes_on(text, end)) ++end;
  return shorten_text(text, most / 2) + std::string(text.substr(end));
}

}  // namespace syncline
