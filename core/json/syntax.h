// What is wrong with a text that is no JSON, in the words of whoever wrote it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace syncline {

// "line 3, column 7" of a byte, counted from 1 as parsers do.
std::string position_text(const std::string& text, std::size_t byte);

// The line of a byte (counted from 1), cut around it, and a mark below it.
std::vector<std::string> shown_place(const std::string& text, std::size_t byte);

struct SyntaxMistake {
  std::string what;      // with its place
  std::size_t byte = 0;  // counted from 1; 0: the whole text is meant
};

// The mistake at the byte where a parser gave up: a comma too many or too few, a comment, NaN,
// another encoding. `behind_key`: the parser had read a key and wanted its colon. Nothing where it
// is none of these.
std::optional<SyntaxMistake> syntax_mistake(const std::string& text, std::size_t byte,
                                            bool behind_key);

}  // namespace syncline
