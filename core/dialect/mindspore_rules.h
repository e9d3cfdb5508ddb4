// MindSpore's rules for which gradients (and which sharded parameters) travel together. Parameters
// come first layer first; groups hold their places in that order.
#pragma once

#include "core/dialect/mindspore_context.h"

namespace syncline::dialect::mindspore {

using Parts = std::vector<std::vector<int>>;

// Semi-automatic and automatic parallel: ids by size in the front end, then the backend pass.
Parts front_end_groups(const Context& context, const std::vector<const Tensor*>& parameters,
                       Ids ids, std::vector<std::string>& notes);

// Data and hybrid parallel: nn.DistributedGradReducer puts the ids onto the AllReduces. Ids that
// are all the same count as none.
Parts reducer_groups(const Context& context, const std::vector<const Tensor*>& parameters, Ids ids,
                     std::vector<std::string>& notes);

// The documents' words: a fusion buffer of so many MB, the entries of an index list as counts of
// gradients, ids of set_comm_fusion in every mode, openstate False for no fusion.
Parts documented_groups(const Context& context, const std::vector<const Tensor*>& parameters,
                        const Ids& ids);

// A parallel optimizer: large parameters whose first dimension the ranks divide are sharded.
struct Sharded {
  Parts all_reduced;  // gradients of the others
  Parts scattered;    // gradients of the sharded parameters
  Parts gathered;     // those parameters, before their forward pass
};
Sharded sharded_groups(const Context& context, const std::vector<const Tensor*>& parameters,
                       const Ids& ids, int ranks, std::vector<std::string>& notes);

}  // namespace syncline::dialect::mindspore
