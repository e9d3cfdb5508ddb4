// The use of each bucket by a plan, for executors that move gradients: when the payload is filled
// and read back, and if the backward pass may write into it directly.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/plan.h"
#include "core/run/payload.h"

namespace syncline::run {

struct BucketUse {
  // Separate operations fill and read the payload: a copy, or encoding and decoding. Otherwise the
  // first collective fills it and the last one reads it. Parameters that are gathered several times
  // are filled and read by the last one, because they are new only then.
  bool staged = false;
  plan::OpId first = -1;  // collective; -1: it has none
  plan::OpId last = -1;
  std::vector<plan::OpId> collectives;  // in order

  // Returns the index of `op` in `collectives`. Requires one of them.
  std::size_t number(plan::OpId op) const {
    return static_cast<std::size_t>(std::ranges::find(collectives, op) - collectives.begin());
  }
};

// Returns the use of each bucket. Throws InputError if a step gathers parameters that the previous
// step updated, or in their own format: only the host executor supports these.
std::vector<BucketUse> bucket_uses(const plan::Plan& plan);

// True if the payload is a view: the backward pass writes each gradient into its place, and no
// operation fills or reads it.
bool is_view(const BucketUse& use, const Payload& layout);

}  // namespace syncline::run
