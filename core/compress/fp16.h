// Half-precision transport: wider gradients are rounded to fp16 for the wire and summed there.
#pragma once

#include "core/compress/codec.h"

namespace syncline::compress {

Codec fp16_codec();

}  // namespace syncline::compress
