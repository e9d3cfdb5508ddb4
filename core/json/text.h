// Files and texts that hold one JSON value, read strictly. Every message names the file.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

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

}  // namespace syncline
