#include "core/plan/compression.h"

#include "core/compress/sparsity.h"

namespace syncline::plan {

const compress::Codec* codec_at(const Compression& compression, std::int64_t step) {
  if (compression.codec.empty()) return nullptr;
  const compress::Codec* codec = compress::find_codec(compression.codec);
  if (codec->sparse && compress::sparsity_index(compression, step) < 0) return nullptr;
  return codec;
}

bool compressed_alone(const compress::Codec* codec, const Compression& compression,
                      const Tensor& tensor) {
  return codec != nullptr && codec->sparse && codec->applies(tensor, compression.min_elements);
}

void compress(Bucket& bucket, const compress::Codec* codec, const Compression& compression,
              const Tensor& first_tensor, std::int64_t step) {
  if (codec == nullptr || bucket.sparse) return;
  if (codec->sparse) {
    if (bucket.tensors.size() != 1 || !codec->applies(first_tensor, compression.min_elements)) {
      return;
    }
    const auto index = static_cast<std::size_t>(compress::sparsity_index(compression, step));
    bucket.codec = codec;
    bucket.kept = compress::kept_elements(bucket.elements, compression.sparsity[index]);
    return;
  }
  if (!codec->applies(first_tensor, 0)) return;
  bucket.codec = codec;
  bucket.kept = bucket.elements;
}

}  // namespace syncline::plan
