// Sizes of the gradients of a step, told by the shapes of their operators or the bytes of copies.
#pragma once

namespace syncline::job::kineto {

struct DerivedStep;
struct Trace;

// Fills elements, formats and shapes of the gradients, their copies out, the gradients of each
// exchange and when it was complete: by AccumulateGrad's Input Dims, else by the bytes of the
// copies out of the buckets, which lie in the order of arrival. False: neither tells. What cannot
// be told stays 0 or empty.
bool find_sizes(const Trace& trace, DerivedStep& derived);

}  // namespace syncline::job::kineto
