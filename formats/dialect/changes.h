// Changes of a framework's configuration that are worth trying, in the framework's own keys. Each
// dialect lists its own; studies/explain/advice.h costs them.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/dialect/dialect.h"

namespace syncline::dialect {

// Kinds of change; a report shows only the best change of each kind.
enum class ChangeKind {
  kCompute,
  kFusion,
  kCopies,
  kStreams,
  kAccumulation,  // gradients summed once per step instead of in each micro-batch
  kHierarchy,
  kAlgorithm,
  kRounding,     // gradients rounded to 16 bits
  kCompression,  // fewer gradients, or low-rank factors
  kAveraging
};

// Returns a change of this kind in words: "round gradients to 16 bits".
std::string_view words_of(ChangeKind kind);

struct ConfigChange {
  ChangeKind kind = ChangeKind::kFusion;
  Json patch;  // keys and their new values; merged into the configuration (RFC 7396)
};
using Changes = std::vector<ConfigChange>;

// Bucket sizes that are worth trying, in MiB.
inline constexpr std::array kTriedMebibytes{1, 2, 4, 8, 16, 25, 32, 64, 128};

// Returns the changes of the patch as text: "fuse_grad_size_in_MB: 16 -> 8, ...". A key that was
// not given is shown with its default.
std::string change_text(const Dialect& dialect, const Json& config, const Json& patch);

// Returns true if the device is known to compute in bf16. A V100 does not.
bool has_bf16(const Cluster& cluster);

// Returns the changes of torch's accumulation: with no_sync around all micro-batches but the last.
Changes accumulation_changes();

// Returns sizes of rank groups to try, smaller than the job: a node's ranks, doubled repeatedly.
// Empty on one node, or if a node has one rank.
std::vector<std::int64_t> groups_below(const Cluster& cluster);

// Returns configurations for each size in bytes that changes the buckets under this closing rule:
// `configs` of that size and of the next one that changes them.
std::vector<Json> for_each_size(const Partitions& partitions, Fusion::Close close,
                                const std::function<std::vector<Json>(Bytes, Bytes)>& configs);

}  // namespace syncline::dialect
