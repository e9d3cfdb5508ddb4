// Fusion: which gradients travel together. Rules and their effect are described at Fusion
// (strategy.h).
#pragma once

#include <functional>
#include <vector>

#include "core/base/units.h"
#include "core/job.h"
#include "core/plan.h"
#include "core/strategy.h"

namespace syncline::plan {

// Splits `candidates` (indices into `tensors`, in the order in which they become ready) into
// groups. Groups come out in the order in which they are formed.
std::vector<std::vector<int>> fuse(const std::vector<const Tensor*>& tensors,
                                   const std::vector<int>& candidates, const Fusion& fusion);

// Layer of a tensor: its name up to a dot; the whole name where there is none.
std::string layer_of(const std::string& name, Fusion::LayerKey key);

// Returns the number between two dots of a tensor's name, "model.layers.12.mlp.weight"; -1: there
// is none.
int layer_number(const std::string& name);

// Of a numbered layer, with two dimensions or more: what FP8 multiplies, unlike embeddings and
// heads.
bool layer_matrix(const Tensor& tensor);

// Returns the bytes of a tensor on the wire in its own format, with the padding of its place.
Bytes padded_bytes(const Tensor& tensor, const Fusion& fusion, const BucketTraits& traits);

// Returns the format in which a gradient is summed: fp32 only widens, a half format only narrows.
DType sum_format(DType own, const Fusion& fusion);

// Makes buckets of a group: one for each dtype, in first-seen order, with sizes and padding.
std::vector<Bucket> buckets_of(const std::vector<const Tensor*>& tensors,
                               const std::vector<int>& group, const Fusion& fusion,
                               const BucketTraits& traits = {});

// MG-WFBP's merging of gradients (Shi, Chu and Li, INFOCOM 2019), by the rule of its published
// code: walking through the gradients as they become ready, the open group takes the next one if
// that is ready before the group's exchange would end and either the exchange could not have begun
// by then or waiting for it costs less than the start-up that it saves. Greedy: waits below the
// start-up add up, and the result is often not the best.

// Groups of indices into `ready` and `bytes`, which are in the order of readiness. `cost` returns
// the time of one exchange of that many bytes, `start_up` its part that does not depend on the
// bytes. An open group of fewer than `least` bytes takes the next gradient in any case.
std::vector<std::vector<int>> mg_wfbp_groups(const std::vector<Seconds>& ready,
                                             const std::vector<Bytes>& bytes, Seconds start_up,
                                             const std::function<Seconds(Bytes)>& cost,
                                             Bytes least = 0);

// Release at ticks, as Horovod does it: a background thread wakes once a cycle, also while the
// network is busy, and packs what has become ready since its last tick.

// What is ready at one tick, packed.
struct Release {
  Seconds time = 0;  // of the tick, from the step's begin
  std::vector<std::vector<int>> groups;
};

// What one gradient is on the wire.
struct OnWire {
  DType dtype = DType::kFp32;
  Bytes bytes = 0;
};

// `ready` rises; ticks come at phase + k * cycle. A gradient that is ready at a tick goes with it.
// At each, the first gradient opens a bucket, and those behind it are added as long as the sum
// stays within `threshold`; a larger one goes alone. A gradient of another dtype is looked past
// while the bucket and all that was looked past would stay within it; what was looked past comes
// first for the next bucket (Controller::FuseResponses).
std::vector<Release> tick_releases(const std::vector<Seconds>& ready,
                                   const std::vector<OnWire>& wire, Bytes threshold, Seconds cycle,
                                   Seconds phase);

}  // namespace syncline::plan
