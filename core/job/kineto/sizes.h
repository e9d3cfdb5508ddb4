// How many elements each gradient of a step has, and which gradients each all-reduce carries.
#pragma once

#include <string>

#include "core/job/kineto/step.h"

namespace syncline::job::kineto {

enum class SizesFrom {
  kShapes,  // AccumulateGrad's Input Dims
  kCopies,  // bytes of the copies out of the buckets, which lie in the order of arrival
  kNothing,
};

struct Sizes {
  SizesFrom from = SizesFrom::kNothing;
  bool assumed_fp32 = false;  // no event tells a gradient's number format
  bool carried = false;       // an exchange carries gradients that are told
};

// Fills elements, formats and shapes of the gradients, their copies out, the gradients of each
// exchange and when it was complete. What cannot be told stays 0 or empty.
Sizes find_sizes(const Trace& trace, DerivedStep& derived);

}  // namespace syncline::job::kineto
