// A rank's memory as answers say it.
#pragma once

#include <string>

#include "formats/json/json.h"
#include "studies/rows/memory.h"

namespace syncline::reports {

// What a rank holds in memory: "32.1 GB"; "129 of 16 GB" where that is more than the device has;
// empty where nothing was worked out.
std::string memory_cell(const measure::Memory& memory);

// The parts of it, and whether activations are counted: "weights 32.1 GB, ...".
std::string memory_sentence(const measure::Memory& memory);

// total, weights, gradients, optimizer, buffers; activations where they are counted, available
// where the device says, and whether it fits; the stage of a job that is cut.
Json memory_json(const measure::Memory& memory);

}  // namespace syncline::reports
