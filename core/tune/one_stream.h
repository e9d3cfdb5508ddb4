// A training step with one communication stream and affine costs, priced in a microsecond: what
// searches by the hundred thousand are made of. The planner and the executors price whole
// strategies; this prices how gradients are cut into buckets and nothing else.
//
// Gradients become ready in backward order; a bucket is released with its last one; the stream
// takes buckets in order and spends latency + bytes * seconds_per_byte on each.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/scenario/workload.h"
#include "core/units.h"

namespace syncline {

struct StepTrace {
  Seconds forward = 0;
  Seconds update = 0;
  std::vector<Seconds> ready;  // by gradient, since the backward pass began; not decreasing
  std::vector<Bytes> bytes;    // by gradient
};
StepTrace step_trace(const Workload& workload);

struct AffineCost {
  Seconds latency = 0;
  double seconds_per_byte = 0;
  Seconds of(Bytes bytes) const { return latency + seconds_per_byte * static_cast<double>(bytes); }
};

// Inclusive index of each bucket's last gradient, as Fusion::ends; the last one closes the step.
using Ends = std::vector<std::int64_t>;

// forward + max(last gradient ready, last bucket done) + update.
Seconds step_time(const StepTrace& trace, const Ends& ends, const AffineCost& cost);

// The buckets of the least step time: dynamic programme over prefixes, O(L^2). With C(i) the
// earliest finish of the first i gradients, C(i) = min over j < i of
// max(C(j), ready(i)) + cost(bytes j+1 .. i); exact because later buckets see a prefix only through
// its finish.
Ends optimal_ends(const StepTrace& trace, const AffineCost& cost);

// Every partition that a size limit can make, closing a bucket before the limit would be exceeded:
// the limit takes at most `count` values from the smallest gradient to all of them, evenly by
// logarithm. Ordered from many buckets to one, without repeats.
std::vector<Ends> threshold_ends(const StepTrace& trace, int count);

}  // namespace syncline
