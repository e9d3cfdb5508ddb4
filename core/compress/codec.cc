#include "core/compress/codec.h"

#include <array>

#include "core/compress/dgc.h"
#include "core/compress/half.h"
#include "core/compress/power_sgd.h"

namespace syncline::compress {

std::span<const Codec> codecs() {
  static const std::array table{
      dgc_codec(),  fp16_codec(), bf16_codec(), power_sgd_codec(), batched_power_sgd_codec(),
      int8_codec(), int4_codec(), fp8_codec(),  fp8_e5m2_codec()};
  return table;
}

const Codec* find_codec(std::string_view name) {
  for (const auto& codec : codecs()) {
    if (codec.name == name) return &codec;
  }
  return nullptr;
}

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const auto& codec : codecs()) names.emplace_back(codec.name);
  return names;
}

}  // namespace syncline::compress
