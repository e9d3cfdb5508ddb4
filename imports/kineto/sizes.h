// Sizes of a step's gradients, by the shapes of their operators or the bytes of copies.
#pragma once

namespace syncline::job::kineto {

struct DerivedStep;
struct Trace;

// Sets each gradient's elements, format, shape and copy_out, and each exchange's gradients and
// completion. Sources: AccumulateGrad's Input Dims, else the bytes of the copies out of the
// buckets, which are in the order of arrival. Returns false if neither exists. Unknown figures stay
// 0 or empty.
bool find_sizes(const Trace& trace, DerivedStep& derived);

}  // namespace syncline::job::kineto
