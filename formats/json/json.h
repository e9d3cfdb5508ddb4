// JSON as the program holds it: keys keep the order of the file, so rows come out as they were
// written.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace syncline {

using Json = nlohmann::ordered_json;

}  // namespace syncline
