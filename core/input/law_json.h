// A calibrated law as JSON: the object "calibration" of a cluster. What is written is read back as
// the same law, and the same law is written as the same bytes.
#pragma once

#include "core/cost/law.h"
#include "core/json/reader.h"

namespace syncline::input {

Json law_json(const cost::MeasuredLaw& law);

// Throws InputError about unknown keys and values out of bounds.
cost::MeasuredLaw read_law(Reader reader);

}  // namespace syncline::input
