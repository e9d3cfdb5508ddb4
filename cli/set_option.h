// --set KEY=VALUE: keys of a scenario changed on the command line.
#pragma once

#include <string>
#include <vector>

#include "core/input/document.h"

namespace syncline::cli {

// "cluster.inter.bandwidth_gbps=10": the value as JSON, or as plain text where it is none. Throws
// InputError.
void set_keys(input::Document& document, const std::vector<std::string>& changes);

}  // namespace syncline::cli
