// What is wrong with a text that is no JSON, in the words of whoever wrote it.
#pragma once

#include <optional>
#include <string>

namespace syncline {

// "line 3, column 7" of a byte, counted from 1 as parsers do.
std::string position_text(const std::string& text, std::size_t byte);

// The mistake at the byte where a parser gave up, with its place: a comma too many or too few, a
// comment, NaN, another encoding. `behind_key`: the parser had read a key and wanted its colon.
// Nothing where it is none of these.
std::optional<std::string> syntax_mistake(const std::string& text, std::size_t byte,
                                          bool behind_key);

}  // namespace syncline
