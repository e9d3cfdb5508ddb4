// A mean after a sum: every number of a buffer divided by the same one, rounded as IEEE 754
// divides, so that it is what a CPU would have got. 8 bytes an element, read and written.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace syncline::kernels {

Status divide(float* values, std::int64_t count, float divisor, cudaStream_t stream);

}  // namespace syncline::kernels
