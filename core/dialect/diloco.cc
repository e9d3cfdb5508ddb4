#include <algorithm>
#include <cmath>
#include <utility>

#include "core/dialect/changes.h"
#include "core/dialect/dialects.h"
#include "core/error.h"
#include "core/json/reader.h"

namespace syncline::dialect {
namespace {

constexpr std::int64_t kMostPeriod = 1 << 20;
constexpr Bytes kCombined = 30 * kMiB;  // of XLA's pass that joins all-reduces on GPUs

// A streaming period has a whole number of steps for each fragment.
void read_streaming(Reader& config, const Workload& workload, LocalSgd& local, Reading& reading) {
  local.fragments = static_cast<int>(config.integer("num_diloco_fragments", 1, 1 << 16));
  if (local.fragments > static_cast<int>(workload.tensors.size())) {
    config.fail("num_diloco_fragments",
                "the workload has only " + std::to_string(workload.tensors.size()) + " parameters");
  }
  const auto each = std::max<std::int64_t>(
      1, std::lrint(static_cast<double>(local.period) / static_cast<double>(local.fragments)));
  if (each * local.fragments != local.period) {
    local.period = each * local.fragments;
    reading.notes.push_back("a period has " + std::to_string(local.period) +
                            " steps: as many for each fragment");
  }
  const std::int64_t delay =
      config.integer_or("num_communication_overlapping_steps", 0, 0, kMostPeriod);
  local.outer.mix = config.number_or("communication_overlapping_alpha", 0, {0, 1});
  config.boolean_or("use_sequential_layers", true);  // which layers are a fragment, not how many
  const bool threads = config.boolean_or("enable_threaded_diloco", false);
  const bool programs = config.boolean_or("enable_non_spmd_diloco", false);
  if (delay >= each) {
    config.fail("num_communication_overlapping_steps",
                "a fragment is applied before the next is sent: expected less than " +
                    std::to_string(each));
  }
  if (threads || programs) {
    local.delay = delay;
  } else if (delay > 0) {
    reading.notes.emplace_back(
        "in one program training waits for each fragment: num_communication_overlapping_steps "
        "delays values alone (enable_threaded_diloco, enable_non_spmd_diloco)");
  }
}

Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool) {
  Reading reading;
  LocalSgd& local = reading.strategy.local_sgd;
  local.enabled = config.boolean_or("enable_diloco", true);
  const std::int64_t groups =
      config.integer_or("dcn_diloco_parallelism", cluster.nodes, 1, cluster.ranks());
  if (cluster.ranks() % groups != 0) {
    config.fail("dcn_diloco_parallelism", "found " + std::to_string(groups) +
                                              ", expected a divisor of the " +
                                              std::to_string(cluster.ranks()) + " ranks");
  }
  local.subgroup = cluster.ranks() / static_cast<int>(groups);
  local.period = config.integer_or("diloco_sync_period", 36, 1, kMostPeriod);
  local.outer = {Outer::Optimizer::kNesterov, 0.7, 0.9, 0};
  local.outer.rate = config.number_or("diloco_outer_lr", 0.3, {0, 1e3, true});
  local.outer.momentum = config.number_or("diloco_outer_momentum", 0.9, {0, 1});
  if (config.boolean_or("enable_streaming_diloco", false)) {
    read_streaming(config, workload, local, reading);
  }
  config.finish();
  reading.strategy.fusion.rule = Fusion::Rule::kSize;
  reading.strategy.fusion.size = kCombined;
  if (local.enabled && groups == 1) {
    reading.notes.emplace_back("there is one replica: nothing is averaged");
  }
  if (!local.enabled || groups == 1) local = {};
  return reading;
}

std::vector<Json> suggest(const Strategy& strategy, const std::vector<plan::Bucket>&,
                          const Workload&, const Cluster& cluster) {
  const LocalSgd& local = strategy.local_sgd;
  if (!local.enabled || local.outer.optimizer != Outer::Optimizer::kNesterov) {
    throw InputError("MaxText's DiLoCo has a Nesterov step between its replicas: strategy '" +
                     strategy.name + "' has none");
  }
  Json config{{"enable_diloco", true},
              {"dcn_diloco_parallelism", cluster.ranks() / local.subgroup},
              {"diloco_sync_period", local.period},
              {"diloco_outer_lr", local.outer.rate},
              {"diloco_outer_momentum", local.outer.momentum}};
  if (local.fragments > 1) {
    config["enable_streaming_diloco"] = true;
    config["num_diloco_fragments"] = local.fragments;
    if (local.delay > 0) {
      config["enable_threaded_diloco"] = true;
      config["num_communication_overlapping_steps"] = local.delay;
    }
    if (local.outer.mix > 0) config["communication_overlapping_alpha"] = local.outer.mix;
  }
  return {std::move(config)};
}

std::vector<Json> candidates(const Strategy& winner, const Workload& workload,
                             const Cluster& cluster, const Partitions&) {
  return suggest(winner, {}, workload, cluster);
}

std::vector<ConfigChange> changes(const Json& config, const Cluster&) {
  std::vector<ConfigChange> list;
  const std::int64_t fragments = config.value("num_diloco_fragments", 1);
  for (const std::int64_t period : {20, 100, 500}) {
    if (period % fragments != 0) continue;
    list.push_back({ChangeKind::kAveraging, {{"diloco_sync_period", period}}});
  }
  return list;
}

Json defaults() {
  return {{"enable_diloco", true},
          {"diloco_sync_period", 36},
          {"diloco_outer_lr", 0.3},
          {"diloco_outer_momentum", 0.9},
          {"enable_streaming_diloco", false}};
}

Json least() { return {{"enable_diloco", true}}; }

}  // namespace

Dialect diloco_dialect() {
  return {.name = "diloco",
          .summary = "MaxText's DiLoCo: diloco_sync_period, num_diloco_fragments, ...",
          .read = read,
          .suggest = suggest,
          .changes = changes,
          .defaults = defaults,
          .least = least,
          .candidates = candidates};
}

}  // namespace syncline::dialect
