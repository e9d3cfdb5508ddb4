// A calibrated cost model as JSON.
#pragma once

#include "core/cost/cost_model.h"
#include "formats/json/json.h"
#include "formats/json/reader.h"

namespace syncline::input {

// A calibrated cost model: the object "calibration" of a cluster. The same cost model is written as
// the same bytes, with digits of its own.
Json cost_model_json(const cost::MeasuredCostModel& cost_model);
// Throws InputError about unknown keys and values out of bounds.
cost::MeasuredCostModel read_cost_model(Reader reader);

}  // namespace syncline::input
