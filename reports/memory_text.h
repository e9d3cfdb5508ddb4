// A rank's memory in answers.
#pragma once

#include <string>

#include "formats/json/json.h"
#include "studies/rows/memory.h"

namespace syncline::reports {

// Returns a rank's memory: "32.1 GB"; "129 of 16 GB" if the device has less; "15.4 of 16 GB?" if it
// may not fit; empty if it is unknown.
std::string memory_cell(const measure::Memory& memory);

// Returns a sentence on a choice that may not fit, by its name, after a blank; empty if it fits.
std::string room_sentence(const measure::Memory& memory, const std::string& name = "It");

// Returns the total and its parts, and whether activations are counted: "32.1 GB per GPU: ...".
std::string memory_sentence(const measure::Memory& memory);

// Returns total, weights, gradients, optimizer and buffers; activations if they are counted;
// available and fits if the device's memory is known; the stage of a pipeline.
Json memory_json(const measure::Memory& memory);

}  // namespace syncline::reports
