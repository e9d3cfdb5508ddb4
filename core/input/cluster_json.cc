#include "core/input/cluster_json.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/digits.h"
#include "core/input/law_json.h"

namespace syncline::input {
namespace {

struct DeviceFigure {
  const char* key;
  double Device::*figure;
  double unit;
};

constexpr double kTera = 1e12;
constexpr std::array kDeviceFigures{
    DeviceFigure{"tflops", &Device::flops, kTera},
    DeviceFigure{"half_tflops", &Device::half_flops, kTera},
    DeviceFigure{"memory_gbytes_per_s", &Device::memory, kGigabytePerSecond},
    DeviceFigure{"memory_gbytes", &Device::memory_size, 1e9},
    DeviceFigure{"rounding_gbytes_per_s", &Device::rounding, kGigabytePerSecond},
    DeviceFigure{"sums_gbytes_per_s", &Device::sums, kGigabytePerSecond},
    DeviceFigure{"select_gelements_per_s", &Device::select, 1e9},
    DeviceFigure{"selection_us", &Device::selection, kMicrosecond},
    DeviceFigure{"launch_us", &Device::launch, kMicrosecond},
    DeviceFigure{"kernel_gap_us", &Device::kernel_gap, kMicrosecond},
    DeviceFigure{"host_sync_us", &Device::host_sync, kMicrosecond},
    DeviceFigure{"data_parallel_overhead_us", &Device::data_parallel_overhead, kMicrosecond},
    DeviceFigure{"data_parallel_slowdown", &Device::data_parallel_slowdown, 1}};

Json device_json(const Device& device, int digits) {
  Json json = Json::object();
  if (!device.name.empty()) json["name"] = device.name;
  for (const auto& row : kDeviceFigures) {
    if (device.*row.figure != 0) json[row.key] = significant(device.*row.figure / row.unit, digits);
  }
  if (const Overlap& overlap = device.overlap; overlap.given) {
    json["overlap_slowdown"] = significant(overlap.slowdown, digits);
    if (overlap.collective_slowdown != overlap.slowdown) {
      json["overlap_collective_slowdown"] = significant(overlap.collective_slowdown, digits);
    }
    if (overlap.delay > 0)
      json["overlap_delay_us"] = significant(overlap.delay / kMicrosecond, digits);
    if (overlap.spread != Overlap::kMeasuredSpread) {
      json["overlap_spread"] = significant(overlap.spread, digits);
    }
  }
  return json;
}

Json nccl_json(const NcclHints& hints, int digits) {
  Json json = Json::object();
  if (hints.cpu != NcclHints::Cpu::kIntel) {
    json["cpu"] = hints.cpu == NcclHints::Cpu::kAmd ? "amd" : "other";
  }
  if (hints.compute_capability != 0) json["compute_capability"] = hints.compute_capability;
  if (hints.nvlink) json["nvlink"] = *hints.nvlink;
  if (hints.nvswitch) json["nvswitch"] = *hints.nvswitch;
  if (hints.gpu_direct) json["gpu_direct"] = *hints.gpu_direct;
  if (hints.channels != 0) json["channels"] = hints.channels;
  const auto rate = [&](const char* key, BytesPerSecond value) {
    if (value != 0) json[key] = significant(value / kGigabytePerSecond, digits);
  };
  rate("channel_intra_gbytes_per_s", hints.channel_intra);
  rate("channel_inter_gbytes_per_s", hints.channel_inter);
  if (!hints.balanced_tree) json["tree"] = "plain";
  return json;
}

// The levels under the keys where the reader looks for them: inside a node, between nodes, above.
void add_tiers(const Cluster& cluster, const std::vector<cost::StepCurve>& curves, int digits,
               Json& json) {
  int below = 1;  // ranks in a unit of the level
  for (std::size_t t = 0; t < cluster.tiers.size(); ++t) {
    const Tier& tier = cluster.tiers[t];
    Json level = tier_json(tier, t < curves.size() ? curves[t] : cost::StepCurve{}, digits);
    if (tier.span <= cluster.gpus_per_node) {
      json["intra"] = std::move(level);
    } else if (!json.contains("inter") && tier.name == "inter") {
      json["inter"] = std::move(level);
    } else {
      // Where `inter` joins single nodes it carries nothing, but its keys must stand there.
      if (!json.contains("inter")) json["inter"] = level;
      level["name"] = tier.name;
      level["nodes_per_group"] = below <= cluster.gpus_per_node ? 1 : below / cluster.gpus_per_node;
      json["upper"].push_back(std::move(level));
    }
    below = tier.span;
  }
}

}  // namespace

Json tier_json(const Tier& tier, const cost::StepCurve& curve, int digits) {
  Json json = {
      {"latency_us", significant(tier.latency / kMicrosecond, digits)},
      {"bandwidth_gbps",
       significant(tier.bandwidth / tier.efficiency / kGigabitPerSecond / tier.nics, digits)}};
  if (tier.efficiency != 1) json["efficiency"] = tier.efficiency;
  if (tier.nics != 1) json["nics"] = tier.nics;
  if (std::isfinite(tier.flow_cap)) {
    json["flow_cap_gbps"] = significant(tier.flow_cap / kGigabitPerSecond, digits);
  }
  if (tier.oversubscription != 1) {
    json["oversubscription"] = significant(tier.oversubscription, digits);
  }
  for (const auto& point : curve) {
    json["measured_steps_us"].push_back(
        {std::round(point.bytes), significant(point.seconds / kMicrosecond, digits)});
  }
  return json;
}

void set_device_figure(Json& device, double Device::*figure, double value, int digits) {
  for (const auto& row : kDeviceFigures) {
    if (row.figure == figure) device[row.key] = significant(value / row.unit, digits);
  }
}

Json cluster_json(const Cluster& cluster, int digits, const ClusterNotes& notes) {
  Json json = {{"name", cluster.name}};
  if (!cluster.source.empty()) json["source"] = cluster.source;
  if (!notes.about.empty()) json["about"] = notes.about;
  json["nodes"] = cluster.nodes;
  json["gpus_per_node"] = cluster.gpus_per_node;
  add_tiers(cluster, notes.curves, digits, json);
  json["collective_overhead_us"] = significant(cluster.collective_overhead / kMicrosecond, digits);
  if (cluster.library_given) {
    json["library"] = cluster.library == Library::kNccl   ? "nccl"
                      : cluster.library == Library::kGloo ? "gloo"
                                                          : "links";
  }
  Json device = device_json(cluster.device, digits);
  if (!device.empty()) json["device"] = std::move(device);
  if (cluster.jitter.kind != Jitter::Kind::kNone) {
    const bool normal = cluster.jitter.kind == Jitter::Kind::kNormal;
    json["jitter"] = {{"distribution", normal ? "normal" : "exponential"},
                      {"relative", significant(cluster.jitter.relative, digits)}};
  }
  if (notes.calibration) json["calibration"] = law_json(*notes.calibration);
  Json nccl = nccl_json(cluster.nccl, digits);
  if (!nccl.empty()) json["nccl"] = std::move(nccl);
  return json;
}

}  // namespace syncline::input
