#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "imports/models/families.h"

namespace syncline::job::models {

// Returns imports/models/named.json; the build makes it.
std::string_view named_file();

std::string plain_name(std::string_view name) {
  std::string letters;
  for (const unsigned char letter : name) {
    if (std::isalnum(letter) != 0) letters += static_cast<char>(std::tolower(letter));
  }
  return letters;
}

const std::map<std::string, Json>& named_configs() {
  static const std::map<std::string, Json> configs =
      Json::parse(named_file()).at("models").get<std::map<std::string, Json>>();
  return configs;
}

const std::string* find_named(std::string_view name) {
  const std::string plain = plain_name(name);
  const auto row = std::ranges::find_if(
      named_configs(), [&](const auto& known) { return plain_name(known.first) == plain; });
  return row == named_configs().end() ? nullptr : &row->first;
}

}  // namespace syncline::job::models
