// Foreign text made fit for display: names and keys may hold any bytes, at any length.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace syncline {

// Returns the text with blanks for characters that terminals obey. These are control characters
// (C0, DEL, and UTF-8's C1), signs that change text direction, end a line or have no width (such as
// U+202E, U+2028, U+200B, U+FEFF). Bytes that are not UTF-8 become U+FFFD. `keep`: characters that
// stay.
std::string visible(std::string_view text, std::string_view keep = "");

// Returns the first place that is not UTF-8, if any. Overlong forms and surrogates are not UTF-8.
std::optional<std::size_t> not_utf8(std::string_view text);

// Returns the first `most` bytes and "...", cut between letters, or the whole text if it is not
// longer. A NUL, which would end an exception's message, becomes a blank.
std::string shorten_text(std::string_view text, std::size_t most = 200);

// Returns about `most` bytes at most: the start, "..." and the end, which names the error.
std::string shorten_middle(std::string_view text, std::size_t most);

}  // namespace syncline
