// Schemes of frameworks (dialect.h): each framework's row lists its own.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/dialect/dialect.h"

namespace syncline::dialect {

// Size of a mesh's axis that has all other ranks of the job.
inline constexpr std::int64_t kOthers = -1;

// Returns the schemes of a framework; empty: it has one. Without a framework, PyTorch's.
std::vector<Scheme> schemes_of_framework(std::string_view dialect, const Json& config,
                                         const Workload& workload, const Cluster& cluster);

// Sets the samples and the number of micro-batches in a configuration that has keys for them.
void set_batches(std::string_view dialect, std::int64_t batch, std::int64_t micro_batches,
                 Json& config);

// Returns the first framework that trains jobs with a partitioned model; empty: there is none.
std::string_view framework_of_cut_jobs();

// Returns a configuration with the patch (RFC 7396); null is one without keys.
Json patched_config(Json config, const Json& patch);

// Returns true for several nodes of several GPUs: a scheme may end at the node.
bool has_levels(const Cluster& cluster);

// Returns PyTorch's schemes: DDP and FSDP 2, or FSDP 1 if the job has that. `config`: FSDP's own;
// null: the job has none.
std::vector<Scheme> pytorch_schemes(const Json& config, const Workload& workload,
                                    const Cluster& cluster);

}  // namespace syncline::dialect
