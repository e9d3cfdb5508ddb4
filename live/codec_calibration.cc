#include "live/link_calibration.h"

#include "core/base/statistics.h"
#include "core/compress/dgc.h"
#include "core/run/sample_gradients.h"

namespace syncline::live {
namespace {

Tensor flat_tensor(std::int64_t elements) {
  Tensor tensor;
  tensor.name = "probe";
  tensor.elements = elements;
  tensor.shape = {elements};
  return tensor;
}

Seconds median_span(const run::Timeline& timeline, plan::OpId op) {
  std::vector<Seconds> lengths;
  for (const auto& span : timeline.spans) {
    if (span.op == op && span.period > 0) lengths.push_back(span.end - span.begin);
  }
  return median(lengths);
}

// Returns sizes of tensors: mixed, and together larger than a processor's cache, as in a network,
// so that no tensor is found there.
std::vector<std::int64_t> codec_sizes() {
  std::vector<std::int64_t> sizes;
  for (int round = 0; round < 6; ++round) {
    for (const std::int64_t elements : {16384LL, 262144LL, 65536LL, 1048576LL, 2359296LL}) {
      sizes.push_back(elements);
    }
  }
  return sizes;
}

// Makes a plan with one encoding, exchange and decoding for each size.
plan::Plan codec_plan(const compress::Codec& codec, const std::vector<std::int64_t>& sizes,
                      int ranks) {
  plan::Plan plan;
  plan.ranks = ranks;
  plan.streams = 2;
  constexpr double kSparsity = 0.999;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t elements = sizes[i];
    const int index = static_cast<int>(i);
    plan::Bucket bucket;
    bucket.tensors = {index};
    bucket.elements = elements;
    bucket.bytes = bucket.padded_bytes = elements * 4;
    bucket.codec = &codec;
    bucket.kept = codec.sparse ? compress::kept_elements(elements, kSparsity) : elements;
    collective::Collective collective;
    collective.algorithm = collective::find_algorithm("ring");
    collective.groups = collective::world_group(ranks);
    collective.kind = codec.sparse ? collective::CollectiveKind::kAllGather
                                   : collective::CollectiveKind::kAllReduce;
    const std::int64_t blocks = (elements + codec.block - 1) / codec.block;
    collective.elements = codec.sparse ? bucket.kept * ranks : blocks;
    collective.unit = codec.sparse ? codec.encoded_bytes(elements, bucket.kept) / bucket.kept
                                   : codec.encoded_bytes(codec.block, codec.block);
    collective.bucket = index;
    plan.buckets.push_back(bucket);
    const auto at = static_cast<plan::OpId>(plan.ops.size());
    // Computation between encodings, as in a network: its data leaves the cache.
    constexpr Seconds kBetween = 2e-3;
    plan.ops.push_back({plan::kComputeStream,
                        {},
                        plan::Compute{plan::Phase::kBackward, kBetween, index, index},
                        0,
                        {}});
    plan.ops.push_back(
        {plan::kComputeStream, {}, plan::Busy{plan::Busy::Reason::kEncode, 0, index}, 0, {}});
    plan.ops.push_back({1, {at + 1}, collective, 0, {}});
    plan.ops.push_back({1, {}, plan::Busy{plan::Busy::Reason::kDecode, 0, index}, 0, {}});
  }
  plan.ops.push_back({plan::kComputeStream,
                      {static_cast<plan::OpId>(plan.ops.size() - 1)},
                      plan::Compute{plan::Phase::kUpdate, 0, 0, -1},
                      0,
                      {}});
  return plan;
}

}  // namespace

std::vector<CodecSample> codec_samples(ControlChannel& channel, const LiveExecutorFactory& backend,
                                       const compress::Codec& codec, int repeats) {
  const int ranks = channel.ranks();
  const auto sizes = codec_sizes();
  Workload workload;
  for (const std::int64_t elements : sizes) workload.tensors.push_back(flat_tensor(elements));
  const plan::Plan plan = codec_plan(codec, sizes, ranks);
  run::Gradients input(static_cast<std::size_t>(ranks));
  input[static_cast<std::size_t>(channel.rank())] =
      run::sample_gradients(workload, channel.rank(), ranks, 1, run::SampleValues::kReal);
  const auto executor = backend(workload, channel);
  const run::Timeline timeline = executor->run(plan, input, repeats + 1).timeline;

  std::vector<CodecSample> samples;
  const std::string name(codec.name);
  for (std::size_t kind = 0; kind < sizes.size() / 6; ++kind) {
    const std::int64_t elements = sizes[kind];
    std::vector<Seconds> encodes;
    std::vector<Seconds> decodes;
    for (std::size_t i = kind; i < sizes.size(); i += sizes.size() / 6) {
      encodes.push_back(median_span(timeline, static_cast<plan::OpId>(4 * i + 1)));
      decodes.push_back(median_span(timeline, static_cast<plan::OpId>(4 * i + 3)));
    }
    const std::int64_t kept = plan.buckets[kind].kept;
    samples.push_back({{name + " encode", elements * 4, median(encodes), 0},
                       codec.encode_traffic(elements, kept, 4),
                       true});
    samples.push_back({{name + " decode", elements * 4, median(decodes), 0},
                       codec.decode_traffic(elements, kept, ranks, 4),
                       false});
  }
  return samples;
}

void fit_device(std::vector<CodecSample>& samples, Device& device) {
  double aa = 0;
  double ab = 0;
  double bb = 0;
  double a = 0;
  double b = 0;
  for (const auto& s : samples) {
    if (!s.encode) continue;
    const double x = 1 / s.sample.measured;
    const double y = s.traffic / s.sample.measured;
    aa += x * x;
    ab += x * y;
    bb += y * y;
    a += x;
    b += y;
  }
  const double determinant = aa * bb - ab * ab;
  double launch = determinant > 0 ? (a * bb - b * ab) / determinant : 0;
  double per_byte = determinant > 0 ? (b * aa - a * ab) / determinant : b / bb;
  if (launch < 0 || per_byte <= 0) {
    launch = 0;
    per_byte = b / bb;
  }
  device.launch = launch;
  device.memory = 1 / per_byte;
  for (auto& s : samples) {
    s.sample.fitted = launch + s.traffic * per_byte;
  }
}

}  // namespace syncline::live
