// Low precision with scales: blocks of 128 values, each with an fp32 scale that brings its largest
// magnitude to the format's largest number. A block is the unit that travels; its sum with another
// one is taken in fp32 and scaled again. Formats: int8, int4 (two a byte), and the 8-bit floats of
// Micikevicius et al. 2022 (E4M3, E5M2).
#pragma once

#include "core/compress/codec.h"

namespace syncline::compress {

Codec int8_codec();
Codec int4_codec();
Codec fp8_codec();
Codec fp8_e5m2_codec();

}  // namespace syncline::compress
