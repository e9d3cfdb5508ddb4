#include "core/tune/rules.h"

#include <algorithm>

namespace syncline {

Fusion by_size(Bytes size, Fusion::Close close, Bytes first_size) {
  Fusion fusion;
  fusion.rule = Fusion::Rule::kSize;
  fusion.size = size;
  fusion.first_size = first_size;
  fusion.close = close;
  return fusion;
}

Fusion by_ends(const std::vector<std::size_t>& ends) {
  Fusion fusion;
  fusion.rule = Fusion::Rule::kIndex;
  for (const std::size_t end : ends) fusion.ends.push_back(static_cast<std::int64_t>(end));
  return fusion;
}

const std::vector<NamedRule>& common_rules() {
  static const std::vector<NamedRule> rules = [] {
    using Close = Fusion::Close;
    Fusion one;
    one.rule = Fusion::Rule::kOne;
    Fusion paddle16 = by_size(16 * kMiB, Close::kAfter);
    paddle16.count = 51;  // more than 50 tensors
    return std::vector<NamedRule>{
        {"wfbp", "each gradient alone", Fusion{}},
        {"single", "all gradients in one bucket", one},
        {"ddp_1_25", "DDP: 1 MiB, then 25 MiB", by_size(25 * kMiB, Close::kAfter, kMiB)},
        {"hvd_64", "Horovod: at most 64 MiB", by_size(64 * kMiB, Close::kBefore)},
        {"paddle16_50", "Paddle: 16 MiB or more than 50 tensors", paddle16},
        {"paddle32", "Paddle: 32 MiB", by_size(32 * kMiB, Close::kAfter)}};
  }();
  return rules;
}

std::vector<std::size_t> mg_wfbp(const FusionProblem& problem, const AffineCost& cost) {
  std::vector<std::size_t> ends;
  Seconds stream = 0;  // when the buckets before the one at hand are done
  double bytes = 0;    // of the bucket at hand
  for (std::size_t i = 0; i < problem.ready.size(); ++i) {
    bytes += problem.bytes[i];
    const bool last = i + 1 == problem.ready.size();
    const Seconds begin = std::max(stream, problem.ready[i]);
    const Seconds end = begin + cost.latency + cost.seconds_per_byte * bytes;
    const Seconds next = last ? 0 : problem.ready[i + 1];
    if (!last && next < end && (begin > next || next - begin < cost.latency)) continue;
    ends.push_back(i);
    stream = end;
    bytes = 0;
  }
  return ends;
}

}  // namespace syncline
