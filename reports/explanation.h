// What a plan does on a cluster and what holds it up, a sentence each.
#pragma once

#include <string>

#include "core/measure/bottleneck.h"
#include "core/measure/metrics.h"
#include "core/plan/plan.h"

namespace syncline::reports {

// How many exchanges of which sizes, how many of them compressed.
std::string traffic_sentence(const plan::Plan& plan);

// How much communication is hidden; `exposed` is what is not, in each step.
std::string overlap_sentence(const plan::Plan& plan, const measure::Metrics& metrics,
                             Seconds exposed);

// What the step is bound by, and by how much.
std::string bottleneck_sentence(const measure::Bottleneck& bottleneck);

}  // namespace syncline::reports
