// Changes of a framework's configuration that are worth trying, said in the framework's own keys.
// Each dialect lists its own; studies/explain/advice.h costs them.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/dialect/dialect.h"

namespace syncline::dialect {

// What a change is about: only the best change of a kind is told.
enum class ChangeKind {
  kCompute,
  kFusion,
  kCopies,
  kStreams,
  kHierarchy,
  kAlgorithm,
  kRounding,     // gradients to 16 bits
  kCompression,  // fewer of them, or factors
  kAveraging
};

struct ConfigChange {
  ChangeKind kind = ChangeKind::kFusion;
  Json patch;  // keys and their new values; merged into the configuration (RFC 7396)
};
using Changes = std::vector<ConfigChange>;

// Sizes of a bucket that are worth trying, in MiB.
inline constexpr std::array kTriedMebibytes{1, 2, 4, 8, 16, 25, 32, 64, 128};

// "fuse_grad_size_in_MB: 16 -> 8, ...": what the patch changes, a key that was not given with its
// default.
std::string change_text(const Dialect& dialect, const Json& config, const Json& patch);

// Whether the device is known to compute in bf16. A V100 does not.
bool has_bf16(const Cluster& cluster);

// Ranks of a group smaller than the job that are worth trying: a node's, and twice as many again
// and again; empty on one node, or where a node has one rank.
std::vector<std::int64_t> groups_below(const Cluster& cluster);

// Configurations for each size in bytes that makes other buckets, where they close like this:
// `configs` of the least such size and of the next one that makes others again.
std::vector<Json> for_each_size(const Partitions& partitions, Fusion::Close close,
                                const std::function<std::vector<Json>(Bytes, Bytes)>& configs);

}  // namespace syncline::dialect
