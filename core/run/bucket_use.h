// What a plan does with each bucket around its exchange, for executors that move gradients: when
// the bucket's payload is filled and read back, and whether the backward pass may write into it
// directly.
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

  // Of its collectives, which one `op` is. Requires one of them.
  std::size_t number(plan::OpId op) const {
    return static_cast<std::size_t>(std::ranges::find(collectives, op) - collectives.begin());
  }
};

// By bucket. Throws InputError where a step gathers the parameters that the one before it updated,
// or parameters in a format of their own: only the host executor has a place for those.
std::vector<BucketUse> bucket_uses(const plan::Plan& plan);

// A payload that is a view: the backward pass writes its gradients into it, one place a tensor, and
// nothing is filled or read.
bool is_view(const BucketUse& use, const Payload& layout);

}  // namespace syncline::run
