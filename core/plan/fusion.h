// Fusion: which gradients travel together. Rules and their effect are described at Fusion
// (strategy.h).
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/strategy.h"

namespace syncline::plan {

// Splits `candidates` (indices into `tensors`, in the order in which they become ready) into
// groups. Groups come out in the order in which they are formed.
std::vector<std::vector<int>> fuse(const std::vector<const Tensor*>& tensors,
                                   const std::vector<int>& candidates, const Fusion& fusion);

// Layer of a tensor: its name up to a dot; the whole name where there is none.
std::string layer_of(const std::string& name, Fusion::LayerKey key);

// The number between two dots of a tensor's name, "model.layers.12.mlp.weight"; -1: there is none.
int layer_number(const std::string& name);

// Of a numbered layer, with two dimensions or more: what FP8 multiplies, unlike embeddings and
// heads.
bool layer_matrix(const Tensor& tensor);

// What a tensor takes on the wire in its own format, with the padding of its place.
Bytes padded_bytes(const Tensor& tensor, const Fusion& fusion);

// A group as buckets: one a dtype, in first-seen order, with sizes and padding filled in.
std::vector<Bucket> buckets_of(const std::vector<const Tensor*>& tensors,
                               const std::vector<int>& group, const Fusion& fusion);

}  // namespace syncline::plan
