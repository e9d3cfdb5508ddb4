// Changes of a framework's configuration that are worth trying, said in the framework's own keys.
// core/measure/advice prices them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.h"

namespace syncline {

// What a change is about: only the best change of a kind is told.
enum class ChangeKind {
  kCompute,
  kFusion,
  kStreams,
  kHierarchy,
  kAlgorithm,
  kCompression,
  kAveraging
};

struct ConfigChange {
  ChangeKind kind = ChangeKind::kFusion;
  Json patch;  // keys and their new values; merged into the configuration (RFC 7396)
};

// The changes for that dialect's configuration on this cluster; some may be no change, or refused
// by the framework beside other keys. Empty for a dialect without any.
std::vector<ConfigChange> config_changes(std::string_view dialect, const Json& config,
                                         const Cluster& cluster);

// "fuse_grad_size_in_MB: 16 -> 8, ...": what the patch changes, a key that was not given with its
// default.
std::string change_text(std::string_view dialect, const Json& config, const Json& patch);

}  // namespace syncline
