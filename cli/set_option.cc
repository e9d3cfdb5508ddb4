#include "cli/set_option.h"

#include "core/error.h"

namespace syncline::cli {

void set_keys(input::Document& document, const std::vector<std::string>& changes) {
  for (const auto& change : changes) {
    const auto equals = change.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError("--set: found '" + change + "', expected KEY=VALUE");
    }
    const std::string text = change.substr(equals + 1);
    Json value = Json::parse(text, nullptr, false);
    if (value.is_discarded()) value = text;
    input::set_key(document, change.substr(0, equals), value);
  }
}

}  // namespace syncline::cli
