// Names of others inside markup.
#pragma once

#include <string>
#include <string_view>

namespace syncline::reports::chart {

// Fit for the text and the attributes of HTML and XML alike: markup's own letters are spelt out,
// control characters are blanks but those in `keep`, what is not UTF-8 is replaced by U+FFFD.
std::string escaped(std::string_view text, std::string_view keep = "");

// At most so many letters, the last of them an ellipsis where some were left out. Not escaped.
std::string clipped(std::string_view text, std::size_t letters);

// How many letters a UTF-8 text has.
std::size_t letters_of(std::string_view text);

}  // namespace syncline::reports::chart
