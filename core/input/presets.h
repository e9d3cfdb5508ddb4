// Named rules: what the keys of a strategy fall back on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/strategy.h"

namespace syncline::input {

std::vector<std::string> preset_names();
// The strategy that a preset of that name starts from.
Strategy preset_of(std::string_view name);

}  // namespace syncline::input
