// Files and texts that hold one JSON value, read strictly. Every message names the file.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files.h"
#include "core/json/json.h"

namespace syncline {

// Reads one JSON file strictly: at most kLargestFile bytes, no repeated keys, nothing after the
// end, at most 64 levels deep. Throws InputError.
Json read_json_file(const std::string& path);
// The same from text; `name` stands for the file in messages.
Json parse_json_text(const std::string& name, const std::string& text);
// The value that a text is, or nothing where it is no JSON or nested more than 64 levels deep.
std::optional<Json> json_in(const std::string& text);

// "100", "0.5", "ring": a value as a person writes it; an object with a name goes by that.
std::string plain_text(const Json& value);

// What is wrong with a text that is no JSON, in the words of whoever wrote it.

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
