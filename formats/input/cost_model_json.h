// A calibrated cost model as JSON.
#pragma once

#include "core/cost/cost_model.h"
#include "formats/json/json.h"
#include "formats/json/reader.h"

namespace syncline::input {

// Returns the object "calibration" of a cluster. The same cost model gives the same bytes, with its
// own number of digits.
Json cost_model_json(const cost::MeasuredCostModel& cost_model);
// Reads the object back. Throws InputError about unknown keys and values out of bounds.
cost::MeasuredCostModel read_cost_model(Reader reader);

}  // namespace syncline::input
