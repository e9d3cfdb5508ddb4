// The use of each bucket by a plan, for executors that move gradients: when the payload is filled
// and read back, and whether the backward pass may write into it directly.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/plan.h"
#include "core/run/payload.h"

namespace syncline::run {

struct BucketUse {
  // An operation of its own fills and reads the payload: a copy, or encoding and decoding.
  // Otherwise the first collective finds it to be filled and the last one leaves it to be read. Of
  // parameters that are gathered several times the last one does both: before it none are new.
  bool staged = false;
  plan::OpId first = -1;  // collective; -1: it has none
  plan::OpId last = -1;
  std::vector<plan::OpId> collectives;  // in order

  // Returns the place of `op` among `collectives`. REQUIRES: it is one of them.
  std::size_t number(plan::OpId op) const {
    return static_cast<std::size_t>(std::ranges::find(collectives, op) - collectives.begin());
  }
};

// Returns the use of each bucket. Throws InputError if a step gathers parameters that the step
// before updated, or in a format of their own: only the host executor has a place for those.
std::vector<BucketUse> bucket_uses(const plan::Plan& plan);

// True if the payload is a view: the backward pass writes each gradient into its place, and nothing
// is filled or read.
bool is_view(const BucketUse& use, const Payload& layout);

}  // namespace syncline::run
