// What a plan does with each bucket around its exchange, for executors that move gradients: when
// the bucket's payload is filled and read back, and whether the backward pass may write into it
// directly.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/run/payload.h"

namespace syncline::run {

struct BucketUse {
  // An operation of its own fills and reads the payload: a copy, or encoding and decoding.
  // Otherwise the first collective finds it to be filled and the last one leaves it to be read. Of
  // parameters that are gathered several times the last one does both: before it none are new.
  bool staged = false;
  plan::OpId first = -1;  // collective; -1: it has none
  plan::OpId last = -1;
};

// By bucket. Throws InputError where a codec of low rank works between two collectives of a bucket,
// or a step gathers the parameters that the one before it updated: only the host executor has a
// place for those.
std::vector<BucketUse> bucket_uses(const plan::Plan& plan);

// A payload that is a view: the backward pass writes its gradients into it, one place a tensor, and
// nothing is filled or read.
bool is_view(const BucketUse& use, const Payload& layout);

}  // namespace syncline::run
