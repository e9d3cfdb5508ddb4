// How long exchanges slow the computation beside them, which only their prices tell.
#pragma once

#include "core/collective/price.h"
#include "core/plan/plan.h"

namespace syncline::run {

// Whether a plan holds such work.
bool slows(const plan::Plan& plan);

// The plan with the seconds of plan::Slowed filled in: its share of what the bucket's collectives
// take alone on the network of the book.
plan::Plan with_slowed(plan::Plan plan, collective::PriceBook& book);

}  // namespace syncline::run
