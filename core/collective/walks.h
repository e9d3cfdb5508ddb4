// How much work costs have been so far, for tests and benchmarks: what a search may not do for
// every size of bucket that it looks at.
#pragma once

#include <cstddef>

namespace syncline::collective {

// How often this process has gone through the stages of a collective, message by message.
std::size_t walks();

}  // namespace syncline::collective
