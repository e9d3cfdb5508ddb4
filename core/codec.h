// The table of gradient codecs: the bytes of a compressed gradient on the wire and the cost of
// encoding it. Each codec is a file of its own and a row here. A program adds rows of its own by
// hand_in (examples/codec.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"

namespace syncline::compress {

// A gradient in its compressed form. A sparse codec fills `indices` and `values` alike; a dense one
// leaves `indices` empty and keeps one value an element.
struct Encoded {
  std::vector<std::int32_t> indices;
  std::vector<float> values;
};

// A gradient as a codec of low rank sees it: a matrix that travels as two factors, `rows` x `rank`
// and `columns` x `rank`. rank 0: it travels whole.
struct LowRank {
  std::int64_t elements = 0;  // of the gradient; its matrix may end with zeros behind them
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t rank = 0;
};

struct Codec {
  std::string_view name;
  std::string_view summary;
  // A sparse codec keeps `kept` elements a rank and is exchanged by all-gather; a dense one keeps
  // all of them, smaller, and is summed by all-reduce.
  bool sparse = false;
  // Whether a tensor is compressed at all.
  bool (*applies)(const Tensor&, std::int64_t min_elements);
  // Bytes of one rank's encoding.
  Bytes (*encoded_bytes)(std::int64_t elements, std::int64_t kept);
  // Device memory traffic of encoding, and of adding `ranks` encodings into the gradient, in bytes.
  double (*encode_traffic)(std::int64_t elements, std::int64_t kept, Bytes element_size);
  double (*decode_traffic)(std::int64_t elements, std::int64_t kept, int ranks, Bytes element_size);
  // Encodes `gradient`; what is not sent stays behind in it (zero where it was sent).
  Encoded (*encode)(std::vector<float>& gradient, std::int64_t kept);
  // Adds an encoding into `sum`.
  void (*add)(const Encoded& encoded, std::vector<float>& sum);
  // The number format of a dense codec's values on the wire.
  DType wire = DType::kFp32;
  // Matrices travel as two factors, whose sums are taken one after the other (power_sgd.h); `kept`
  // counts what a rank sends, the elements that stay as they are among them. Such a codec does
  // nothing to a gradient by itself: its traffic, `encode` and `add` are nullptr.
  bool low_rank = false;
  // Likewise, the gradients of a bucket one behind the other as one square matrix.
  bool whole_bucket = false;
  // Elements that travel together, with a scale of their own, as one unit of encoded_bytes(block);
  // 1: each by itself. Units are summed by decoding both, adding and encoding the sum: `pack` and
  // `unpack` carry one unit of `block` floats.
  std::int64_t block = 1;
  void (*pack)(const float* values, std::byte* unit) = nullptr;
  void (*unpack)(const std::byte* unit, float* values) = nullptr;
};

std::span<const Codec> codecs();
// Adds a row. REQUIRES: nothing was asked of the table before; the name is new.
void hand_in(const Codec& row);
const Codec* find_codec(std::string_view name);  // or nullptr
std::vector<std::string> codec_names();

// The rows. Dgc and power_sgd have headers of their own (dgc.h, power_sgd.h).
Codec dgc_codec();
Codec power_sgd_codec();
Codec batched_power_sgd_codec();

// Half-precision transport: wider gradients are rounded for the wire, bfloat16 keeping their
// exponent, and summed there.

Codec fp16_codec();
Codec bf16_codec();

// Low precision with scales: blocks of 128 values, each with an fp32 scale that brings its largest
// magnitude to the format's largest number. A block is the unit that travels; its sum with another
// one is taken in fp32 and scaled again. Formats: int8, int4 (two a byte), and the 8-bit floats of
// Micikevicius et al. 2022 (E4M3, E5M2).

Codec int8_codec();
Codec int4_codec();
Codec fp8_codec();
Codec fp8_e5m2_codec();

}  // namespace syncline::compress
