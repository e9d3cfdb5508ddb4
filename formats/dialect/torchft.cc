#include "formats/dialect/dialects.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "formats/dialect/changes.h"
#include "formats/json/reader.h"

namespace syncline::dialect {
namespace {

constexpr std::int64_t kMaxPeriod = 1 << 20;
constexpr double kBucketCap = 1024;
constexpr Bytes kCombined = 30 * kMiB;  // of XLA's pass that combines all-reduces on GPUs

// Throws if fragments are more than parameters, as both frameworks do.
void check_fragments(const Reader& config, const char* key, int fragments,
                     const Workload& workload) {
  const auto trained = std::ranges::count(workload.tensors, false, &Tensor::frozen);
  if (fragments <= trained) return;
  config.fail(key, "the workload has only " + std::to_string(trained) + " parameters to average");
}

void check_divides(const Reader& config, const char* key, std::int64_t count,
                   const Cluster& cluster) {
  if (cluster.ranks() % count == 0) return;
  config.fail(key, "found " + std::to_string(count) + ", expected a divisor of the " +
                       std::to_string(cluster.ranks()) + " ranks");
}

Changes period_changes(const Json& config, const char* fragments_key, const char* period_key) {
  Changes changes;
  const std::int64_t fragments = config.value(fragments_key, 1);
  for (const std::int64_t period : {20, 100, 500}) {
    if (period % fragments == 0) {
      changes.push_back({ChangeKind::kAveraging, {{period_key, period}}});
    }
  }
  return changes;
}

namespace torchft {

Outer read_outer(Reader outer) {
  Outer step;
  step.rate = outer.number_or("lr", 0.7, {0, 1e3, true});
  const double momentum = outer.number_or("momentum", 0.9, {0, 1});
  const bool nesterov = outer.boolean_or("nesterov", true);
  if (nesterov && momentum == 0) {
    outer.fail("nesterov", "torch.optim.SGD asks for a momentum too");
  }
  if (!nesterov && momentum > 0) {
    outer.fail("momentum", "momentum without nesterov is not modelled yet");
  }
  if (nesterov) step.momentum = momentum;
  step.optimizer = nesterov ? Outer::Optimizer::kNesterov : Outer::Optimizer::kSgd;
  outer.finish();
  return step;
}

// Reads one number, or one per equal block of replica groups, less for slower ones.
void read_sync_every(Reader& config, LocalSgd& local) {
  const Json* given = config.find("sync_every");
  if (given == nullptr || !given->is_array()) {
    local.period = config.integer("sync_every", 1, kMaxPeriod);
    return;
  }
  std::int64_t all = 0;
  for (const Json& each : config.array("sync_every")) {
    const std::string place =
        config.place_of("sync_every") + "." + std::to_string(local.periods.size());
    local.periods.push_back(checked_integer(each, 1, kMaxPeriod, config.file(), place));
    all += local.periods.back();
  }
  const auto blocks = static_cast<std::int64_t>(local.periods.size());
  if (blocks == 0 || all % blocks != 0) {
    config.fail("sync_every", "expected one number, or several whose mean is a whole one");
  }
  local.period = all / blocks;
}

// Reads DiLoCo's own arguments, and refuses those that its constructor refuses.
void read_diloco(Reader& config, const Workload& workload, LocalSgd& local) {
  local.outer = config.has("outer_optimizer") ? read_outer(config.object("outer_optimizer"))
                                              : Outer{Outer::Optimizer::kNesterov};
  local.fragments = static_cast<int>(config.integer_or("num_fragments", 1, 1, 1 << 16));
  check_fragments(config, "num_fragments", local.fragments, workload);
  local.delay = config.integer_or("fragment_sync_delay", 0, 0, kMaxPeriod);
  local.outer.mix = config.number_or("fragment_update_alpha", 0, {0, 1});
  const std::int64_t least = local.periods.empty() ? local.period : std::ranges::min(local.periods);
  if (least < local.fragments) {
    config.fail("sync_every",
                "only one fragment can be synchronised at a time: expected at least "
                "num_fragments, " +
                    std::to_string(local.fragments));
  }
  const auto left = [&](std::int64_t period) { return period % local.fragments != 0; };
  if (left(local.period) || std::ranges::any_of(local.periods, left)) {
    config.fail("sync_every",
                "must be a multiple of num_fragments, " + std::to_string(local.fragments));
  }
  if (local.delay >= least / local.fragments) {
    config.fail("fragment_sync_delay",
                "a fragment must be synchronised before it is reduced "
                "again: expected less than sync_every / num_fragments, " +
                    std::to_string(least / local.fragments));
  }
}

// Returns buckets. Inside a replica group gradients use DistributedDataParallel's; among groups
// each parameter is sent by itself, unless use_bucketization is set.
Fusion fusion_of(Reader& config, bool groups) {
  Fusion fusion;
  const bool buckets = config.boolean_or("use_bucketization", false);
  const double cap = config.number_or("bucket_cap_mb", kBucketCap, {0, 1e6, true});
  constexpr double kDdpCap = 25;
  if (!groups && !buckets) return fusion;
  fusion.rule = Fusion::Rule::kSize;
  fusion.size = static_cast<Bytes>((groups ? kDdpCap : cap) * static_cast<double>(kMiB));
  return fusion;
}

Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool) {
  Reading reading;
  Strategy& strategy = reading.strategy;
  LocalSgd& local = strategy.local_sgd;
  local.enabled = true;
  local.begin_step = 1;
  const bool diloco =
      config.word_or("semi_sync_method", "diloco", {"diloco", "local_sgd"}) == "diloco";
  read_sync_every(config, local);
  const int node = cluster.nodes > 1 ? cluster.gpus_per_node : 1;
  local.subgroup = static_cast<int>(config.integer_or("group_world_size", node, 1, 1 << 20));
  check_divides(config, "group_world_size", local.subgroup, cluster);
  const std::size_t blocks = std::max<std::size_t>(1, local.periods.size());
  const int groups = cluster.ranks() / local.subgroup;
  if (groups % static_cast<int>(blocks) != 0) {
    config.fail("sync_every", "found " + std::to_string(blocks) +
                                  " numbers, expected a divisor of the " + std::to_string(groups) +
                                  " replica groups");
  }
  // LocalSGD averages over the replica groups.
  local.outer = {Outer::Optimizer::kSgd, 1};
  if (diloco) read_diloco(config, workload, local);
  if (config.boolean_or("should_quantize", false)) strategy.compression.codec = "fp8";
  strategy.fusion = fusion_of(config, local.subgroup > 1);
  if (local.subgroup > 1) {
    reading.notes.push_back(
        "parameters are averaged in one bucket; torchft sends each by itself "
        "or in buckets of bucket_cap_mb");
  }
  if (cluster.ranks() == local.subgroup) {
    local = {};
    strategy.compression = {};
    reading.notes.emplace_back("there is one replica group: nothing is averaged");
  }
  config.finish();
  return reading;
}

Json config_of(const Strategy& strategy) {
  const LocalSgd& local = strategy.local_sgd;
  Json config{{"sync_every", local.period}, {"group_world_size", local.subgroup}};
  if (!local.periods.empty()) config["sync_every"] = local.periods;
  if (strategy.compression.codec == "fp8") config["should_quantize"] = true;
  if (strategy.fusion.rule == Fusion::Rule::kSize && local.subgroup == 1) {
    config["use_bucketization"] = true;
    config["bucket_cap_mb"] = static_cast<double>(strategy.fusion.size) / static_cast<double>(kMiB);
  }
  const bool mean = local.outer.optimizer == Outer::Optimizer::kSgd && local.outer.rate == 1 &&
                    local.outer.mix == 0 && local.fragments == 1 && local.delay == 0;
  if (mean) {
    config["semi_sync_method"] = "local_sgd";
    return config;
  }
  const bool nesterov = local.outer.optimizer == Outer::Optimizer::kNesterov;
  config["outer_optimizer"] = {{"lr", local.outer.rate},
                               {"momentum", nesterov ? local.outer.momentum : 0.0},
                               {"nesterov", nesterov}};
  if (local.fragments > 1) config["num_fragments"] = local.fragments;
  if (local.delay > 0) config["fragment_sync_delay"] = local.delay;
  if (local.outer.mix > 0) config["fragment_update_alpha"] = local.outer.mix;
  return config;
}

std::vector<Json> suggest(const Strategy& strategy, const std::vector<plan::Bucket>&,
                          const Workload&, const Cluster&) {
  const LocalSgd& local = strategy.local_sgd;
  if (!local.enabled || local.adaptive || !local.outer.any()) {
    throw InputError("torchft says how replica groups average their parameters: strategy '" +
                     strategy.name + "' has no local_sgd with a fixed period and an outer step");
  }
  return {config_of(strategy)};
}

Changes changes(const Json& config, const Cluster&) {
  Changes changes = period_changes(config, "num_fragments", "sync_every");
  changes.insert(changes.begin(), {ChangeKind::kRounding, {{"should_quantize", true}}});
  return changes;
}

}  // namespace torchft

namespace maxtext {

// Reads streaming. Its period has a whole number of steps for each fragment.
void read_streaming(Reader& config, const Workload& workload, LocalSgd& local, Reading& reading) {
  local.fragments = static_cast<int>(config.integer("num_diloco_fragments", 1, 1 << 16));
  check_fragments(config, "num_diloco_fragments", local.fragments, workload);
  const auto each = std::max<std::int64_t>(
      1, std::lrint(static_cast<double>(local.period) / static_cast<double>(local.fragments)));
  if (each * local.fragments != local.period) {
    local.period = each * local.fragments;
    reading.notes.push_back("a period has " + std::to_string(local.period) +
                            " steps: as many for each fragment");
  }
  const std::int64_t delay =
      config.integer_or("num_communication_overlapping_steps", 0, 0, kMaxPeriod);
  local.outer.mix = config.number_or("communication_overlapping_alpha", 0, {0, 1});
  config.boolean_or("use_sequential_layers", true);  // which layers a fragment has, not how many
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
  check_divides(config, "dcn_diloco_parallelism", groups, cluster);
  local.subgroup = cluster.ranks() / static_cast<int>(groups);
  local.period = config.integer_or("diloco_sync_period", 36, 1, kMaxPeriod);
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

Changes changes(const Json& config, const Cluster&) {
  return period_changes(config, "num_diloco_fragments", "diloco_sync_period");
}

}  // namespace maxtext

// Returns configurations; they only express averaging.
template <auto suggest>
std::vector<Json> candidates(const Strategy& winner, const Workload& workload,
                             const Cluster& cluster, const Partitions&) {
  return suggest(winner, {}, workload, cluster);
}

}  // namespace

Dialect torchft_dialect() {
  return {.name = "torchft",
          .summary = "torchft: DiLoCo's sync_every, num_fragments, fragment_sync_delay, ...",
          .read = torchft::read,
          .suggest = torchft::suggest,
          .changes = torchft::changes,
          .defaults = {{"num_fragments", 1},
                       {"fragment_sync_delay", 0},
                       {"fragment_update_alpha", 0.0},
                       {"should_quantize", false}},
          .least = {{"sync_every", 100}},
          .candidates = candidates<torchft::suggest>};
}

Dialect diloco_dialect() {
  return {.name = "diloco",
          .summary = "MaxText's DiLoCo: diloco_sync_period, num_diloco_fragments, ...",
          .read = maxtext::read,
          .suggest = maxtext::suggest,
          .changes = maxtext::changes,
          .defaults = {{"enable_diloco", true},
                       {"diloco_sync_period", 36},
                       {"diloco_outer_lr", 0.3},
                       {"diloco_outer_momentum", 0.9},
                       {"enable_streaming_diloco", false}},
          .least = {{"enable_diloco", true}},
          .candidates = candidates<maxtext::suggest>};
}

}  // namespace syncline::dialect
