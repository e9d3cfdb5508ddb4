// Fusion: groups of gradients that travel together. Rules and their effect are described at Fusion
// (strategy.h).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/base/units.h"
#include "core/job.h"
#include "core/plan.h"
#include "core/strategy.h"

namespace syncline::plan {

// Splits `candidates` (indices into `tensors`, ordered by readiness) into groups, and uses these in
// the order of their formation.
using GroupUse = std::function<void(std::span<const int>)>;
void for_each_group(const std::vector<const Tensor*>& tensors, const std::vector<int>& candidates,
                    const Fusion& fusion, const GroupUse& use);

// Returns the same groups.
std::vector<std::vector<int>> fuse(const std::vector<const Tensor*>& tensors,
                                   const std::vector<int>& candidates, const Fusion& fusion);

// Returns the layer of a tensor: its name up to a dot, or the whole name without one.
std::string layer_of(const std::string& name, Fusion::LayerKey key);

// Returns the number between two dots of a tensor's name, "model.layers.12.mlp.weight" or
// "encoder.layers.encoder_layer_12.mlp.0.weight"; -1: none.
int layer_number(const std::string& name);

// Returns true if the backward pass computes the tensor's layer again in full. If all layers are,
// so is everything in no layer.
bool recomputes_layer(const Workload& workload, const Tensor& tensor);

// Fate under Recompute::kProducts of an operator of the forward pass: outside the layers it is
// kept as without recomputation; in a layer attention is, and the first, third, ... product of
// weights.
enum class AgainOrKept { kOutside, kAgain, kKept };
// Returns it for each operator of the list.
std::vector<AgainOrKept> again_or_kept(const OperatorList& list);

// True for tensors of a numbered layer with two dimensions or more: FP8 multiplies these, but not
// embeddings and heads.
bool layer_matrix(const Tensor& tensor);

// Returns the bytes of a tensor on the wire in its own format, with padding.
Bytes padded_bytes(const Tensor& tensor, const Fusion& fusion, const BucketTraits& traits);

// Returns the format of a gradient's sum: fp32 only widens, a half format only narrows.
DType sum_format(DType own, const Fusion& fusion);

// Adds the buckets of a group: one per dtype, in first-seen order, with sizes and padding.
void add_buckets(const std::vector<const Tensor*>& tensors, std::span<const int> group,
                 const Fusion& fusion, const BucketTraits& traits, std::vector<Bucket>& buckets);

// Returns the same buckets by themselves.
std::vector<Bucket> buckets_of(const std::vector<const Tensor*>& tensors,
                               const std::vector<int>& group, const Fusion& fusion,
                               const BucketTraits& traits = {});

// MG-WFBP's merging of gradients by its published code (Shi, Chu and Li, INFOCOM 2019). Gradients
// are visited as they become ready. The open group takes the next one under two conditions. It is
// ready before the group's exchange would end. The exchange could not have begun by then, or
// waiting costs less than the saved start-up. Greedy: waits below the start-up add up, and the
// result is often not the best.

// Returns groups of indices into `ready` and `bytes`, which are in the order of readiness. `cost`
// returns the time of one exchange, `start_up` is its part that does not depend on the bytes. An
// open group of fewer than `least` bytes always takes the next gradient.
std::vector<std::vector<int>> mg_wfbp_groups(const std::vector<Seconds>& ready,
                                             const std::vector<Bytes>& bytes, Seconds start_up,
                                             const std::function<Seconds(Bytes)>& cost,
                                             Bytes least = 0);

// Release at ticks, as in Horovod: a background thread wakes once per cycle, also while the network
// is busy, and packs the gradients that became ready since its last tick.

// Gradients that are ready at one tick, packed.
struct Release {
  Seconds time = 0;  // of the tick, from the step's begin
  std::vector<std::vector<int>> groups;
};

// Format and size of one gradient on the wire.
struct OnWire {
  DType dtype = DType::kFp32;
  Bytes bytes = 0;
};

// Returns the releases of gradients at ticks phase + k * cycle. Requires ascending `ready`; a
// gradient that is ready at a tick is released by it. The first gradient opens a bucket; later ones
// join as long as the sum stays within `threshold`; a larger one travels by itself. A gradient of
// another dtype is skipped while bucket and skipped gradients together would fit. Skipped gradients
// are first in the next bucket (Controller::FuseResponses).
std::vector<Release> tick_releases(const std::vector<Seconds>& ready,
                                   const std::vector<OnWire>& wire, Bytes threshold, Seconds cycle,
                                   Seconds phase);

}  // namespace syncline::plan
