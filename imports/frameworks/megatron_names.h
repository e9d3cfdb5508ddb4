// Megatron's flags by name: known, renamed, not modelled or refused.
#pragma once

#include <string>
#include <string_view>

#include "formats/json/json.h"

namespace syncline::job::frameworks {

// Returns true if Megatron or one of its launchers has this flag, by the package's own list
// (formats/dialect/framework_keys.h) and older names here.
bool megatron_known(std::string_view name);

// Returns true if a flag with this value changes a step's time and is not modelled.
bool megatron_left_out(std::string_view name, const Json& value);

// Returns why a flag with this value is refused: it makes another job. Empty: it is not refused.
std::string megatron_refusal(std::string_view name, const Json& value);

// Returns today's name of a renamed flag, else the name itself.
std::string megatron_name_today(const std::string& name);

}  // namespace syncline::job::frameworks
