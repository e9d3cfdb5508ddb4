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

// A gradient in its compressed form. A sparse codec fills `indices` and `values` with equal counts;
// a dense one leaves `indices` empty and keeps one value per element.
struct Encoded {
  std::vector<std::int32_t> indices;
  std::vector<float> values;
};

// A gradient as a low-rank codec sees it: a matrix that travels as two factors, `rows` x `rank` and
// `columns` x `rank`. rank 0: it travels whole.
struct LowRank {
  std::int64_t elements = 0;  // of the gradient; its matrix may end with padding zeros
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t rank = 0;
};

struct Codec {
  std::string_view name;
  std::string_view summary;
  // A sparse codec keeps `kept` elements per rank and is exchanged by all-gather. A dense one keeps
  // all elements in a narrower format and is summed by all-reduce.
  bool sparse = false;
  // True if the tensor is compressed.
  bool (*applies)(const Tensor&, std::int64_t min_elements);
  // Returns the bytes of one rank's encoding.
  Bytes (*encoded_bytes)(std::int64_t elements, std::int64_t kept);
  // Returns bytes of memory traffic of encoding, and of adding `ranks` encodings into a gradient.
  double (*encode_traffic)(std::int64_t elements, std::int64_t kept, Bytes element_size);
  double (*decode_traffic)(std::int64_t elements, std::int64_t kept, int ranks, Bytes element_size);
  // Encodes `gradient`; elements that are not sent remain in it, sent ones become zero.
  Encoded (*encode)(std::vector<float>& gradient, std::int64_t kept);
  // Adds an encoding into `sum`.
  void (*add)(const Encoded& encoded, std::vector<float>& sum);
  // The number format of a dense codec's values on the wire.
  DType wire = DType::kFp32;
  // Matrices travel as two factors; their sums are taken one after the other (power_sgd.h). `kept`
  // counts the elements that a rank sends, uncompressed ones included. Such a codec does not change
  // a single gradient: its traffic, `encode` and `add` are nullptr.
  bool low_rank = false;
  // A low-rank codec that treats the concatenated gradients of a bucket as one square matrix.
  bool whole_bucket = false;
  // Elements that travel together as one unit of encoded_bytes(block), with their own scale; 1:
  // each by itself. Units are summed by decoding both, adding and encoding the sum. `pack` encodes
  // one unit of `block` floats, `unpack` decodes it.
  std::int64_t block = 1;
  void (*pack)(const float* values, std::byte* unit) = nullptr;
  void (*unpack)(const std::byte* unit, float* values) = nullptr;
};

std::span<const Codec> codecs();
// Adds a row. Requires a new name, and that the table was not read before.
void hand_in(const Codec& row);
const Codec* find_codec(std::string_view name);  // or nullptr
std::vector<std::string> codec_names();

// Returns the rows. Dgc and power_sgd have their own headers (dgc.h, power_sgd.h).
Codec dgc_codec();
Codec power_sgd_codec();
Codec batched_power_sgd_codec();

// Returns half-precision transport: wider gradients are rounded for the wire and summed there.
// bfloat16 keeps their exponent.
Codec fp16_codec();
Codec bf16_codec();

// Returns low precision with scales: blocks of 128 values, each with an fp32 scale that maps its
// largest magnitude to the format's largest number. A block is the unit that travels; two blocks
// are summed in fp32 and scaled again. Formats: int8, int4 (two per byte), and the 8-bit floats of
// Micikevicius et al. 2022 (E4M3, E5M2).
Codec int8_codec();
Codec int4_codec();
Codec fp8_codec();
Codec fp8_e5m2_codec();

}  // namespace syncline::compress
