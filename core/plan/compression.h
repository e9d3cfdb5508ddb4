// Compression: which buckets are encoded at this point of the training, and how many elements of
// each are kept.
#pragma once

#include "core/plan/communication.h"
#include "core/plan/plan.h"
#include "core/scenario/strategy.h"

namespace syncline::plan {

// The codec in force at this step, or nullptr while (or where) gradients travel as they are.
const compress::Codec* codec_at(const Compression& compression, std::int64_t step);

// Whether a sparse codec takes this tensor out of fusion: each is selected and sent on its own.
bool compressed_alone(const compress::Codec* codec, const Compression& compression,
                      const Tensor& tensor);

// Marks the bucket with its codec and the elements it keeps.
void compress(Bucket& bucket, const compress::Codec* codec, const Compression& compression,
              const Workload& workload, std::int64_t step);

// The whole bucket as one matrix, with a codec that makes it one. Requires elements in it.
void factor_whole(Bucket& bucket, const compress::Codec* codec, const Compression& compression);

}  // namespace syncline::plan
