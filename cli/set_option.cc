#include "cli/set_option.h"

#include "core/error.h"
#include "core/json/text.h"
#include "core/visible.h"

namespace syncline::cli {

void set_keys(input::Document& document, const std::vector<std::string>& changes) {
  for (const auto& change : changes) {
    const auto equals = change.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError("--set: found '" + shortened(change) + "', expected KEY=VALUE");
    }
    const std::string text = change.substr(equals + 1);
    const auto value = json_in(text);
    input::set_key(document, change.substr(0, equals), value ? *value : Json(text));
  }
}

}  // namespace syncline::cli
