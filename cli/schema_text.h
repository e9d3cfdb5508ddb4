// scenarios/schema.json, as the build put it into the program.
#pragma once

#include <string_view>

namespace syncline::cli {

std::string_view schema_text();

}  // namespace syncline::cli
