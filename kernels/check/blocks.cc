// Checks blocks of low precision against core/compress, to the bit: every format, tails of all
// kinds, sums of several ranks, and values that are not finite.
#include <algorithm>
#include <array>
#include <limits>

#include "core/codec.h"
#include "kernels/check/check.h"
#include "kernels/kernels.h"

namespace syncline::kernels {
namespace {

struct Format {
  BlockFormat format;
  compress::Codec codec;
};

std::vector<Format> formats() {
  return {{BlockFormat::kInt8, compress::int8_codec()},
          {BlockFormat::kInt4, compress::int4_codec()},
          {BlockFormat::kFp8, compress::fp8_codec()},
          {BlockFormat::kFp8E5M2, compress::fp8_e5m2_codec()}};
}

std::size_t blocks_of(std::size_t elements) { return (elements + 127) / 128; }

// Returns numbers of very different sizes, ties among them, and one block of zeros.
std::vector<float> numbers(std::size_t elements, unsigned seed, float bad) {
  auto values = random_elements<float>(elements, seed);
  for (std::size_t i = 0; i < elements; ++i) {
    if (i % 7 == 0) values[i] = std::ldexp(values[i], -static_cast<int>(i % 23));
    if (i % 5 == 0) values[i] = static_cast<float>(static_cast<int>(i % 257) - 128) / 16;
    if (i / 128 == 1) values[i] = i % 2 == 0 ? 0.0f : -0.0f;
  }
  if (bad != 0 && elements > 0) values[elements / 2] = bad;
  return values;
}

std::vector<unsigned char> packed(const compress::Codec& codec, const std::vector<float>& values) {
  std::vector<float> row(128 * blocks_of(values.size()), 0.0f);
  std::copy(values.begin(), values.end(), row.begin());
  const auto unit = static_cast<std::size_t>(codec.encoded_bytes(128, 128));
  std::vector<unsigned char> bytes(unit * blocks_of(values.size()));
  for (std::size_t b = 0; b < blocks_of(values.size()); ++b) {
    codec.pack(row.data() + 128 * b, reinterpret_cast<std::byte*>(bytes.data() + unit * b));
  }
  return bytes;
}

std::vector<float> unpacked(const compress::Codec& codec, const std::vector<unsigned char>& bytes,
                            std::size_t elements) {
  const auto unit = static_cast<std::size_t>(codec.encoded_bytes(128, 128));
  std::vector<float> row(bytes.size() / unit * 128);
  for (std::size_t b = 0; b < bytes.size() / unit; ++b) {
    codec.unpack(reinterpret_cast<const std::byte*>(bytes.data() + unit * b), row.data() + 128 * b);
  }
  row.resize(elements);
  return row;
}

void check_case(Checks& checks, const Format& format, std::size_t elements, int ranks, float bad) {
  const std::size_t bytes =
      blocks_of(elements) * static_cast<std::size_t>(block_bytes(format.format));
  std::vector<unsigned char> others;
  std::vector<std::vector<float>> sent;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto part =
        packed(format.codec, numbers(elements, static_cast<unsigned>(rank), rank == 1 ? bad : 0));
    sent.push_back(unpacked(format.codec, part, elements));
    if (rank > 0) others.insert(others.end(), part.begin(), part.end());
  }
  const auto own = numbers(elements, 0, 0);
  DeviceArray<float> values(own);
  DeviceArray<unsigned char> units(bytes);
  DeviceArray<unsigned char> parts(others);
  DeviceArray<float> back(elements);
  require(blocks_encode(format.format, values.data(), static_cast<std::int64_t>(elements),
                        units.data(), nullptr));
  wait_for_gpu();
  const auto encoded = units.get();
  const bool same_codes = encoded == packed(format.codec, own);
  require(blocks_sum(format.format, units.data(),
                     {parts.data(), static_cast<std::int64_t>(bytes), ranks - 1},
                     static_cast<std::int64_t>(blocks_of(elements)), nullptr));
  require(blocks_decode(format.format, units.data(), back.data(),
                        static_cast<std::int64_t>(elements), nullptr));
  wait_for_gpu();
  std::vector<float> sum = sent.front();
  for (int rank = 1; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < elements; ++i) sum[i] += sent[static_cast<std::size_t>(rank)][i];
  }
  const auto expected = unpacked(format.codec, packed(format.codec, sum), elements);
  const std::size_t wrong = different(back.get(), expected);
  const bool intact = values.intact() && units.intact() && parts.intact() && back.intact();
  checks.line("blocks " + std::string(format.codec.name) + " " + std::to_string(elements) +
                  " elements, " + std::to_string(ranks) + " ranks" +
                  (bad != 0 ? ", no number" : ""),
              same_codes && wrong == 0 && intact,
              std::string(same_codes ? "" : "other codes, ") + std::to_string(wrong) +
                  " sums differ" + (intact ? "" : ", a canary died"));
}

// Checks every number of 8 bits and values close to it on both sides.
void check_rounding(Checks& checks, const Format& format) {
  std::vector<float> values;
  for (int code = 0; code < 256; ++code) {
    std::vector<unsigned char> unit(static_cast<std::size_t>(block_bytes(format.format)), 0);
    const float one = 1;
    std::memcpy(unit.data(), &one, 4);
    unit[4] = static_cast<unsigned char>(code);
    const float value = unpacked(format.codec, unit, 1).front();
    if (!std::isfinite(value)) continue;
    for (const float by : {-1e-6f, 0.0f, 1e-6f, 0.5f, -0.5f, 0.0625f, -0.0625f}) {
      values.push_back(value + by * std::max(1e-6f, std::fabs(value)));
    }
  }
  std::vector<float> row;  // each block has the same largest number, so the scale is 1
  const float largest = format.format == BlockFormat::kInt4   ? 7.0f
                        : format.format == BlockFormat::kInt8 ? 127.0f
                        : format.format == BlockFormat::kFp8  ? 448.0f
                                                              : 57344.0f;
  for (const float value : values) {
    if (row.size() % 128 == 0) row.push_back(largest);
    if (std::fabs(value) <= largest) row.push_back(value);
  }
  DeviceArray<float> from(row);
  DeviceArray<unsigned char> units(blocks_of(row.size()) *
                                   static_cast<std::size_t>(block_bytes(format.format)));
  require(blocks_encode(format.format, from.data(), static_cast<std::int64_t>(row.size()),
                        units.data(), nullptr));
  wait_for_gpu();
  checks.line("blocks " + std::string(format.codec.name) + " between its numbers",
              units.get() == packed(format.codec, row));
}

}  // namespace

void check_blocks(Checks& checks) {
  for (const Format& format : formats()) {
    check_rounding(checks, format);
    for (const std::size_t elements :
         {std::size_t{1}, std::size_t{127}, std::size_t{128}, std::size_t{129}, std::size_t{4100},
          checks.size(kBusy, 20011)}) {
      for (const int ranks : {1, 2, 5}) check_case(checks, format, elements, ranks, 0);
    }
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      check_case(checks, format, 4100, 3, bad);
    }
  }
}

}  // namespace syncline::kernels
