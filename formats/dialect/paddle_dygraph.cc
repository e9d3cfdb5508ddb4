#include <algorithm>
#include <numeric>

#include "formats/dialect/changes.h"
#include "formats/dialect/ddp_buckets.h"
#include "formats/dialect/dialects.h"
#include "formats/dialect/framework_keys.h"
#include "formats/dialect/paddle.h"
#include "formats/json/reader.h"

namespace syncline::dialect {
namespace {

// paddle.DataParallel's defaults; Fleet passes its fuse_grad_size_in_MB instead of the first.
constexpr double kDefaultBufferMb = 25;
constexpr std::int64_t kFleetBufferMb = 32;
constexpr double kDefaultLastMb = 1;

Bytes mebibytes(double value) { return static_cast<Bytes>(value * static_cast<double>(kMiB)); }

// Returns the groups of AssignGroupBySize (paddle/fluid/imperative/reducer.cc): parameters are
// walked first layer first; a dtype's first group has the limit `last`, later ones `limit`. The
// list is then reversed: the first layers, grouped first, are communicated last.
//
// On the first step, and always with find_unused_parameters, groups are ordered by their first
// parameter before that. Rebuilt groups, in reversed order of arrival, keep the order of closing.
std::vector<std::vector<int>> groups_of(const std::vector<Tensor>& tensors, Bytes last, Bytes limit,
                                        bool rebuilt) {
  // Gradients arrive last layer first; the reverse of that list is both orders of the walk.
  std::vector<int> walked(tensors.size());
  std::iota(walked.rbegin(), walked.rend(), 0);
  auto groups = assign_by_size(tensors, walked, {last, limit}, true);
  if (!rebuilt) std::ranges::sort(groups, {}, [](const auto& group) { return group.front(); });
  for (auto& group : groups) {
    for (int& place : group) place = walked[static_cast<std::size_t>(place)];
  }
  std::ranges::reverse(groups);
  return groups;
}

// Returns the given one of two spellings of the same setting, or nullptr.
const char* spelling(Reader& config, const char* one, const char* other) {
  const bool has_one = config.has(one);
  const bool has_other = config.has(other);
  if (has_one && has_other) config.fail(other, "given twice, also as '" + std::string(one) + "'");
  return has_one ? one : has_other ? other : nullptr;
}

Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool) {
  Reading reading;
  double limit_mb = kDefaultBufferMb;
  double last_mb = kDefaultLastMb;
  const char* key = spelling(config, "comm_buffer_size", "fuse_grad_size_in_MB");
  if (key != nullptr && std::string_view(key) == "comm_buffer_size") {
    limit_mb = config.number(key, {0, 1e9, true});
  } else if (key != nullptr) {
    limit_mb = static_cast<double>(paddle_integer(config, key, kFleetBufferMb, reading.notes));
  }
  key = spelling(config, "last_comm_buffer_size", "last_comm_group_size_MB");
  if (key != nullptr) {
    const Json& value = config.require(key);
    if (value.is_number() && value.get<double>() <= 0) {
      config.fail(key, "found " + describe(value) + ": " + key + " should be greater than 0");
    }
    last_mb = config.number(key, {0, 1e9, true});
  }
  const bool find_unused = config.boolean_or("find_unused_parameters", false);
  finish_keys(config, key_list("paddle_dygraph"), reading.notes);

  Fusion& fusion = reading.strategy.fusion;
  fusion.rule = Fusion::Rule::kGroups;
  fusion.groups =
      groups_of(workload.tensors, mebibytes(last_mb), mebibytes(limit_mb), !find_unused);
  if (cluster.ranks() == 1) return reading;
  note(reading.notes,
       {{find_unused,
         "find_unused_parameters is true: the groups of the first step stay, they are never "
         "rebuilt in the order in which gradients arrive"},
        {limit_mb <= 0, "fuse_grad_size_in_MB = " + Json(limit_mb).dump() +
                            " closes a group at each gradient: nothing is fused"}});
  return reading;
}

Changes changes(const Json& config, const Cluster&) {
  const char* key = config.contains("fuse_grad_size_in_MB") ? "fuse_grad_size_in_MB"  //
                                                            : "comm_buffer_size";
  Changes changes;
  for (const int mebibytes : kTriedMebibytes) {
    changes.push_back({ChangeKind::kFusion, {{key, mebibytes}}});
  }
  return changes;
}

}  // namespace

Dialect paddle_dygraph_dialect() {
  return {.name = "paddle_dygraph",
          .summary = "Paddle DataParallel: comm_buffer_size, last_comm_buffer_size",
          .read = read,
          .changes = changes,
          .defaults = {{"comm_buffer_size", 25}}};
}

}  // namespace syncline::dialect
