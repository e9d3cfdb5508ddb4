// Bfloat16 transport: wider gradients keep their exponent and lose mantissa for the wire, and are
// summed there.
#pragma once

#include "core/compress/codec.h"

namespace syncline::compress {

Codec bf16_codec();

}  // namespace syncline::compress
