#include "core/plan/buckets.h"

#include "core/compress/dgc.h"
#include "core/compress/power_sgd.h"

namespace syncline::plan {

const compress::Codec* codec_at(const Compression& compression, std::int64_t step) {
  if (compression.codec.empty()) return nullptr;
  const compress::Codec* codec = compress::find_codec(compression.codec);
  const bool begins = codec->sparse || codec->low_rank;
  if (begins && compress::sparsity_index(compression, step) < 0) return nullptr;
  return codec;
}

bool compressed_alone(const compress::Codec* codec, const Compression& compression,
                      const Tensor& tensor) {
  return codec != nullptr && codec->sparse && codec->applies(tensor, compression.min_elements);
}

void factor_whole(Bucket& bucket, const compress::Codec* codec, const Compression& compression) {
  bucket.codec = codec;
  bucket.factors = {compress::square_of(bucket.elements, compression.rank)};
  bucket.kept = compress::low_rank_sizes(bucket.factors).sent();
}

void compress(Bucket& bucket, const compress::Codec* codec, const Compression& compression,
              const Workload& workload, std::int64_t step) {
  if (codec == nullptr || bucket.sparse) return;
  if (codec->whole_bucket) {
    if (bucket.elements == 0) return;
    factor_whole(bucket, codec, compression);
    return;
  }
  if (codec->low_rank) {
    const bool known = compress::shapes_known(workload);
    for (const int index : bucket.tensors) {
      const Tensor& tensor = workload.tensors[static_cast<std::size_t>(index)];
      bucket.factors.push_back(compress::low_rank_of(tensor, compression, known));
    }
    const auto sizes = compress::low_rank_sizes(bucket.factors);
    if (sizes.matrices == 0) return;
    bucket.codec = codec;
    bucket.kept = sizes.sent();
    return;
  }
  const Tensor& first_tensor = workload.tensors[static_cast<std::size_t>(bucket.tensors.front())];
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
