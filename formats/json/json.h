// JSON as the program holds it: the order of keys in a file is kept, so rows come out in the order
// in which they were written.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace syncline {

using Json = nlohmann::ordered_json;

}  // namespace syncline
