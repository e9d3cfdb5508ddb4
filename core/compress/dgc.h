// Deep Gradient Compression (Lin et al., ICLR 2018): the largest `kept` elements travel as
// (index, value) pairs, the rest waits in the gradient for a later step.
#pragma once

#include "core/compress/codec.h"

namespace syncline::compress {

Codec dgc_codec();

}  // namespace syncline::compress
