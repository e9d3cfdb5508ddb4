// Paddle's hierarchical all-reduce: what hierarchical_allreduce_inter_nranks means to the code
// (ranks a group) and to the documents (the number of leaders).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dialect/dialect.h"
#include "core/json/reader.h"

namespace syncline::dialect {

// Checks `inter_nranks` as Paddle does. Requires use_hierarchical_allreduce and more than one rank.
Hierarchy read_paddle_hierarchy(Reader& config, std::int64_t inter_nranks, const Cluster& cluster,
                                bool as_documents, std::vector<std::string>& notes);

}  // namespace syncline::dialect
