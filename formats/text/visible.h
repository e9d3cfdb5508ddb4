// Text of others, fit to be shown: names and keys may hold anything, and be of any length.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace syncline {

// With a blank for each control character (C0, DEL, and C1 as UTF-8 has it) and for each sign that
// turns the direction of what follows (U+202A to U+202E, U+2066 to U+2069), which terminals obey
// instead of showing it, and U+FFFD for each byte that is not UTF-8. `keep`: those that stand.
std::string visible(std::string_view text, std::string_view keep = "");

// Where a text leaves UTF-8, if it does: no bytes but letters in their shortest form, no halves of
// a pair.
std::optional<std::size_t> not_utf8(std::string_view text);

// Its first `most` bytes and "...", cut between letters; the text itself where it is not longer. A
// NUL, where an exception's message would end, is a blank.
std::string shortened(std::string_view text, std::size_t most = 200);

// At most about so many bytes: its begin, "..." and its end, which says what is wrong.
std::string shortened_inside(std::string_view text, std::size_t most);

}  // namespace syncline
