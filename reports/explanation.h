// What a plan does on a cluster and what holds it up, a sentence each.
#pragma once

#include <string>

#include "core/measure/bottleneck.h"
#include "core/measure/metrics.h"
#include "core/plan/plan.h"

namespace syncline::reports {

// How many collectives per step, for how many buckets of which sizes.
std::string traffic_sentence(const plan::Plan& plan, const measure::Metrics& metrics);

// How much of the communication is hidden, how much exposed.
std::string overlap_sentence(const plan::Plan& plan, const measure::Metrics& metrics);

// What the step is bound by, and by how much.
std::string bottleneck_sentence(const measure::Bottleneck& bottleneck);

}  // namespace syncline::reports
