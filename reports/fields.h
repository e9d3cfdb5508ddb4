// What several answers say of a strategy in the same way.
#pragma once

#include <string>

#include "core/json/json.h"
#include "core/measure/memory.h"
#include "core/measure/metrics.h"
#include "reports/table.h"

namespace syncline::reports {

// step_time_s to lower_bound_s of a strategy by itself: all that a row of `run` predicts but its
// speedup.
void put_predicted(Json& object, const measure::Metrics& metrics);

// What a rank holds in memory: "32.1 GB"; "129 of 16 GB" where that is more than the device has;
// empty where nothing was worked out.
std::string memory_cell(const measure::Memory& memory);

// The parts of it, and whether activations are counted: "weights 32.1 GB, ...".
std::string memory_sentence(const measure::Memory& memory);

// total, weights, gradients, optimizer, buffers; activations where they are counted, available
// where the device says, and whether it fits; the stage of a job that is cut.
Json memory_json(const measure::Memory& memory);

}  // namespace syncline::reports
