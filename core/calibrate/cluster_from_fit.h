// A whole cluster description from measured tables: counts, tiers whose latency and bandwidth
// follow from the laws, the law itself with its ranges, errors and sources. `syncline run` takes
// it as it is.
#pragma once

#include <string>

#include "core/cost/law.h"
#include "core/scenario/scenario.h"

namespace syncline::calibrate {

// The counts are the largest that were measured. What no table showed (the inside of a node when
// only several nodes were measured) is assumed, and "about" says so.
// `device`: the GPUs' name, empty where it is not known; where it is one of core/hardware, its
// rates come from there.
Json cluster_from_fit(const cost::MeasuredLaw& law, const std::string& name,
                      const std::string& device);

}  // namespace syncline::calibrate
