#include "core/run/payload.h"

#include "core/error.h"

namespace syncline::run {

std::vector<BucketUse> bucket_uses(const plan::Plan& plan) {
  std::vector<BucketUse> uses(plan.buckets.size());
  std::vector<char> gathered(plan.buckets.size(), 1);  // and nothing else
  const auto of = [&](int bucket) -> BucketUse& { return uses[static_cast<std::size_t>(bucket)]; };
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const auto& work = plan.ops[i].work;
    const auto* busy = std::get_if<plan::Busy>(&work);
    const bool stages = busy != nullptr && (busy->reason == plan::Busy::Reason::kEncode ||
                                            busy->reason == plan::Busy::Reason::kCopyIn ||
                                            busy->reason == plan::Busy::Reason::kCopyOut);
    if (stages) of(busy->bucket).staged = true;
    const auto* collective = std::get_if<collective::Collective>(&work);
    if (collective != nullptr && collective->bucket >= 0) {
      if (!plan.ops[i].after_previous.empty()) {
        throw InputError(
            "live_elements is predicted, and carried out by the host alone: no backend gathers "
            "parameters at a step's begin");
      }
      const plan::Bucket& bucket = plan.buckets[static_cast<std::size_t>(collective->bucket)];
      const bool own =
          bucket.codec != nullptr || bucket.sparse || collective->unit == size_of(bucket.dtype);
      if (plan.ops[i].gathers && !own) {
        throw InputError(
            "gather_format is predicted, and carried out by the host alone: no backend gathers "
            "parameters in a format of their own");
      }
      BucketUse& use = of(collective->bucket);
      use.collectives.push_back(static_cast<plan::OpId>(i));
      if (collective->kind != collective::CollectiveKind::kAllGather) {
        gathered[static_cast<std::size_t>(collective->bucket)] = 0;
      }
      use.last = static_cast<plan::OpId>(i);
      if (use.first < 0) use.first = use.last;
    }
  }
  for (std::size_t b = 0; b < uses.size(); ++b) {
    const bool pairs_or_rows = plan.buckets[b].sparse || plan.buckets[b].codec != nullptr;
    if (gathered[b] != 0 && !pairs_or_rows) uses[b].first = uses[b].last;
  }
  return uses;
}

bool is_view(const BucketUse& use, const Payload& layout) {
  return layout.by_tensor() && !use.staged;
}

}  // namespace syncline::run
