#include "core/run/bucket_use.h"

#include <variant>

#include "core/base/error.h"
#include "core/base/index.h"

namespace syncline::run {

std::vector<BucketUse> bucket_uses(const plan::Plan& plan) {
  std::vector<BucketUse> uses(plan.buckets.size());
  std::vector<char> gathered(plan.buckets.size(), 1);  // true: only gathered
  using Reason = plan::Busy::Reason;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const auto& work = plan.ops[i].work;
    const auto reason = plan::reason_of(work);
    if (reason == Reason::kEncode || reason == Reason::kCopyIn || reason == Reason::kCopyOut) {
      uses[index(std::get<plan::Busy>(work).bucket)].staged = true;
    }
    const auto* collective = std::get_if<collective::Collective>(&work);
    if (collective == nullptr || collective->bucket < 0) continue;
    if (!plan.ops[i].after_previous.empty()) {
      throw InputError(
          "fetches (ZeRO-3) are predicted, and carried out by the host alone: no backend gathers "
          "parameters at a step's begin. Measure with all parameters in gather_groups (a "
          "persistence "
          "threshold above every one): those are gathered after the update");
    }
    const std::size_t b = index(collective->bucket);
    const plan::Bucket& bucket = plan.buckets[b];
    const bool own =
        bucket.codec != nullptr || bucket.sparse || collective->unit == size_of(bucket.dtype);
    if (plan.ops[i].gathers && !own) {
      throw InputError(
          "gather_format is predicted, and carried out by the host alone: no backend gathers "
          "parameters in a format of their own");
    }
    uses[b].collectives.push_back(static_cast<plan::OpId>(i));
    if (collective->kind != collective::CollectiveKind::kAllGather) gathered[b] = 0;
    uses[b].last = static_cast<plan::OpId>(i);
    if (uses[b].first < 0) uses[b].first = uses[b].last;
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
