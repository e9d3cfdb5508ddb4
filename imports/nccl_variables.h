// NCCL's variables of a launch that a scenario has keys for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "catalogue/hardware/device.h"
#include "formats/json/json.h"

namespace syncline::job {

using Variables = std::map<std::string, std::string>;

// Moves the variables that `take_nccl_variables` knows, with a value that has an effect, out of an
// environment.
Variables known_nccl_variables(Variables& environment);

// Writes the variables into a scenario on nodes of that kind. Links of the node give way to those
// that the variables leave. Returns a sentence for each assumption; variables without effect here
// give none.
std::vector<std::string> take_nccl_variables(const Variables& variables,
                                             const hardware::KnownNode& node, Json& scenario);

}  // namespace syncline::job
