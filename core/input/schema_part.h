// The schema of a file that is a part of a scenario.
#pragma once

#include <string>
#include <vector>

#include "core/json/json.h"

namespace syncline::input {

// What `schema`, that of scenarios, calls #/definitions/NAME, as a schema of its own: with those of
// the definitions that it refers to. Throws std::out_of_range (nlohmann) where there is none.
Json schema_part(const Json& schema, const std::string& name);

// The parts that are files, or are pasted, on their own; "scenario" is the whole.
const std::vector<std::string>& schema_parts();

}  // namespace syncline::input
