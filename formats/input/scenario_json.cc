#include "formats/input/scenario_json.h"
#include "formats/input/cost_model_json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/fabric/topology.h"
#include "formats/input/knobs.h"
#include "formats/input/read_parallel.h"
#include "formats/text/digits.h"

namespace syncline::input {
namespace {

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

// Adds the levels under the keys that the reader expects: inside a node, between nodes, above.
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
      // If `inter` joins single nodes it has no traffic, but its keys are required.
      if (!json.contains("inter")) json["inter"] = level;
      level["name"] = tier.name;
      level["nodes_per_group"] = below <= cluster.gpus_per_node ? 1 : below / cluster.gpus_per_node;
      json["upper"].push_back(std::move(level));
    }
    below = tier.span;
  }
}

double micro(Seconds value, int digits) { return significant(value / kMicrosecond, digits); }
double milli(Seconds value, int digits) { return significant(value / kMillisecond, digits); }

Json shape_json(const Tensor& tensor) {
  return {{"name", tensor.name},
          {"shape", tensor.shape.empty() ? Json::array({tensor.elements}) : Json(tensor.shape)},
          {"dtype", to_string(tensor.dtype)}};
}

Json tensors_json(const Workload& workload, int digits) {
  const bool parts = std::any_of(workload.tensors.begin(), workload.tensors.end(),
                                 [](const Tensor& tensor) { return tensor.forward > 0; });
  Json tensors = Json::array();
  for (const Tensor& tensor : workload.tensors) {
    Json json = shape_json(tensor);
    if (tensor.registered >= 0) json["registered"] = tensor.registered;
    if (workload.parallel.parts() > 1) json["part"] = tensor.part;
    if (tensor.expert) json["expert"] = true;
    if (tensor.frozen) json["frozen"] = true;
    if (tensor.sparse) json["sparse_rows"] = tensor.sparse_rows;
    json["backward_us"] = micro(tensor.backward, digits);
    if (parts) json["forward_us"] = micro(tensor.forward, digits);
    if (workload.copies_measured) {
      json["copy_in_us"] = micro(tensor.copy_in, digits);
      json["copy_out_us"] = micro(tensor.copy_out, digits);
    }
    tensors.push_back(std::move(json));
  }
  return tensors;
}

}  // namespace

const std::vector<DeviceFigure>& device_figures() {
  constexpr double kTera = 1e12;
  constexpr double kMax = 1e9;
  static const std::vector<DeviceFigure> kFigures{
      {"tflops", &Device::flops, kTera, kMax},
      {"half_tflops", &Device::half_flops, kTera, kMax},
      {"memory_gbytes_per_s", &Device::memory, kGigabytePerSecond, kMax},
      {"memory_gbytes", &Device::memory_size, 1e9, 1e6},
      {"rounding_gbytes_per_s", &Device::rounding, kGigabytePerSecond, kMax},
      {"sums_gbytes_per_s", &Device::sums, kGigabytePerSecond, kMax},
      {"select_gelements_per_s", &Device::select, 1e9, kMax},
      {"selection_us", &Device::selection, kMicrosecond, kMax},
      {"launch_us", &Device::launch, kMicrosecond, kMax},
      {"kernel_gap_us", &Device::kernel_gap, kMicrosecond, kMax},
      {"host_sync_us", &Device::host_sync, kMicrosecond, kMax},
      {"host_link_gbytes_per_s", &Device::host_link, kGigabytePerSecond, kMax},
      {"host_update_ns", &Device::host_update, 1e-9, kMax},
      {"data_parallel_overhead_us", &Device::data_parallel_overhead, kMicrosecond, kMax},
      {"data_parallel_slowdown", &Device::data_parallel_slowdown, 1, 100}};
  return kFigures;
}

Json tier_json(const Tier& tier, const cost::StepCurve& curve, int digits) {
  Json json = {
      {"latency_us", significant(tier.latency / kMicrosecond, digits)},
      {"bandwidth_gbps",
       significant(tier.bandwidth / tier.efficiency / kGigabitPerSecond / tier.nics, digits)}};
  if (tier.upload_ratio != 1) {
    json["upload_gbps"] =
        significant(json["bandwidth_gbps"].get<double>() * tier.upload_ratio, digits);
  }
  if (tier.efficiency != 1) json["efficiency"] = tier.efficiency;
  if (tier.measured) json["measured"] = true;
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

Json device_json(const Device& device, int digits) {
  Json json = Json::object();
  if (!device.name.empty()) json["name"] = device.name;
  for (const DeviceFigure& row : device_figures()) {
    if (device.*row.figure != 0) json[row.key] = significant(device.*row.figure / row.unit, digits);
  }
  if (const Overlap& overlap = device.overlap; overlap.given) {
    json["overlap_slowdown"] = significant(overlap.slowdown, digits);
    json["overlap_collective_slowdown"] = significant(overlap.collective_slowdown, digits);
    json["overlap_delay_us"] = significant(overlap.delay / kMicrosecond, digits);
    if (overlap.spread != Overlap::kMeasuredSpread) {
      json["overlap_spread"] = significant(overlap.spread, digits);
    }
  }
  return json;
}

void set_device_figure(Json& device, double Device::*figure, double value, int digits) {
  for (const DeviceFigure& row : device_figures()) {
    if (row.figure == figure) device[row.key] = significant(value / row.unit, digits);
  }
}

const std::vector<std::pair<std::string, Fabric>>& fabric_words() {
  static const std::vector<std::pair<std::string, Fabric>> words{
      {"tcp", Fabric::kTcp},   {"tcpx", Fabric::kTcpx},          {"efa", Fabric::kEfa},
      {"roce", Fabric::kRdma}, {"infiniband", Fabric::kRdma},    {"rdma", Fabric::kRdma},
      {"rccl", Fabric::kRccl}, {"slingshot", Fabric::kSlingshot}};  // the last of several words is
                                                                    // written
  return words;
}

Json cluster_json(const Cluster& cluster, int digits, const ClusterNotes& notes) {
  Json json = {{"name", cluster.name}};
  if (!cluster.source.empty()) json["source"] = cluster.source;
  if (!notes.about.empty()) json["about"] = notes.about;
  json["nodes"] = cluster.nodes;
  json["gpus_per_node"] = cluster.gpus_per_node;
  add_tiers(cluster, notes.curves, digits, json);
  json["collective_overhead_us"] = significant(cluster.collective_overhead / kMicrosecond, digits);
  for (const auto& [word, fabric] : fabric_words()) {
    if (fabric == cluster.fabric) json["fabric"] = word;
  }
  if (cluster.topology != nullptr) json["fabric"] = Json::parse(cluster.topology->given);
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
    if (cluster.jitter.guessed) json["jitter"]["guessed"] = true;
  }
  if (!cluster.speeds.empty()) json["speeds"] = cluster.speeds;
  if (notes.calibration) json["calibration"] = cost_model_json(*notes.calibration);
  Json nccl = nccl_json(cluster.nccl, digits);
  if (!nccl.empty()) json["nccl"] = std::move(nccl);
  return json;
}

Json workload_json(const Workload& workload, int digits) {
  Json json = {{"name", workload.name}};
  if (!workload.framework_version.empty()) json["torch"] = workload.framework_version;
  if (!workload.source.empty()) json["source"] = workload.source;
  if (workload.batch_given) json["batch"] = workload.batch;
  if (workload.micro_batches != 1) json["micro_batches"] = workload.micro_batches;
  if (workload.parallel.whole_job()) json["parallel"] = parallel_json(workload.parallel);
  if (workload.buffer_broadcast > 0) {
    json["buffer_broadcast_ms"] = milli(workload.buffer_broadcast, digits);
  }
  json["forward_ms"] = milli(workload.forward, digits);
  json["update_ms"] = milli(workload.update, digits);
  if (workload.host_gap > 0) json["host_gap_ms"] = milli(workload.host_gap, digits);
  if (workload.copy_kernels >= 0) json["copy_kernels_ms"] = milli(workload.copy_kernels, digits);
  json["tensors"] = tensors_json(workload, digits);
  for (const Tensor& buffer : workload.buffers) json["buffers"].push_back(shape_json(buffer));
  if (workload.optimizer_given) {
    constexpr const char* kByStates[] = {"sgd", "momentum", "adam"};
    json["optimizer"] = kByStates[workload.optimizer_states];
  }
  if (workload.recompute != Workload::Recompute::kNone) {
    using Recompute = Workload::Recompute;
    json["activation_checkpointing"] = workload.recompute == Recompute::kFull       ? "full"
                                       : workload.recompute == Recompute::kProducts ? "products"
                                                                                    : "selective";
    if (workload.recompute_every > 1) json["checkpointing_every"] = workload.recompute_every;
  }
  if (workload.delayed_scaling) json["delayed_scaling"] = true;
  if (workload.time_spread > 0) json["time_spread"] = significant(workload.time_spread, digits);
  return json;
}

Json strategy_json(const Strategy& strategy) {
  Json json{{"name", strategy.name}};
  if (!strategy.about.empty()) json["about"] = strategy.about;
  Strategy written = strategy;
  Fusion& fusion = written.fusion;
  // A limit of 0 bytes leaves each gradient alone, as does a limit of 1 byte, or a rule without a
  // group.
  if (fusion.rule == Fusion::Rule::kSize) fusion.size = std::max<Bytes>(1, fusion.size);
  if (fusion.rule == Fusion::Rule::kGroups && fusion.groups.empty()) {
    fusion.rule = Fusion::Rule::kNone;
  }
  json.update(written_knobs(strategy_knobs(), written));
  return json;
}

}  // namespace syncline::input
