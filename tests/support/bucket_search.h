// The search for the best buckets on one stream, which models lead.
#pragma once

#include "studies/machines/live_space.h"
#include "tests/support/one_stream.h"

namespace syncline::test {

// Buckets on one stream: the candidates are the optimal buckets under every model and those that
// `thresholds` size limits make; the axes the number of buckets and the bytes of the last one,
// which nothing hides.
tune::SearchProblem bucket_problem(const StepTrace& trace, const AffineCost& model,
                                   int thresholds = 24);

// What a candidate's step takes in truth.
Seconds step_time(const StepTrace& trace, const tune::Candidate& candidate, const AffineCost& cost);

}  // namespace syncline::test
