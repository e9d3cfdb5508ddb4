// Names of Megatron's flags that this project's model has nothing for, each by its whole name.
#pragma once

#include <string>
#include <string_view>

#include "formats/json/json.h"

namespace syncline::job::frameworks {

// Whether Megatron has such a flag, or whoever launches it: by the package's own list
// (formats/dialect/framework_keys.h) and older ones here.
bool megatron_known(std::string_view name);

// Whether a flag with this value changes a step's time, and has no model here.
bool megatron_left_out(std::string_view name, const Json& value);

// Why a flag with this value is refused: with it the job is another one. Empty: it is not.
std::string megatron_refusal(std::string_view name, const Json& value);

// Today's name of a flag that was renamed; the name itself where it was not.
std::string megatron_name_today(const std::string& name);

}  // namespace syncline::job::frameworks
