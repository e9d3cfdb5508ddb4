#include "formats/input/hardware_json.h"

#include <algorithm>
#include <string>
#include <vector>

#include "catalogue/hardware/device.h"
#include "formats/input/scenario_json.h"
#include "formats/json/text.h"

namespace syncline::input {
namespace {

constexpr int kDigits = 6;

template <typename Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

// Throws about an unknown name, on one line for any number of known names.
[[noreturn]] void fail_unknown(const Reader& reader, std::string_view key, const std::string& name,
                               std::size_t known, const std::string& hint) {
  reader.fail(key, "'" + name + "' is not among the " + std::to_string(known) + " known" + hint +
                       "; `syncline list` names them");
}

const hardware::KnownDevice& known_device(const Reader& reader, std::string_view key,
                                          const std::string& name) {
  const hardware::KnownDevice* device = hardware::find_device(name);
  if (device == nullptr) {
    const auto names = names_of(hardware::devices());
    fail_unknown(reader, key, name, names.size(), did_you_mean(name, names));
  }
  return *device;
}

// Replaces keys of `base` by those of `given`; objects in both key by key, one level deep.
void replace_keys(Json& base, const Json& given) {
  Keyed members(base);
  for (const auto& [key, value] : given.items()) {
    Json* old = members.find(key);
    if (old == nullptr || !old->is_object() || !value.is_object()) {
      members.set(key, value);
      continue;
    }
    Keyed inside(*old);
    for (const auto& [inner, part] : value.items()) inside.set(inner, part);
  }
}

// Replaces "h100-sxm", or {"base": "h100-sxm", ...}, by the device's object.
void fill_in_device(const Reader& cluster, Json& json) {
  Json& device = json["device"];
  if (device.is_string()) {
    device = known_device_json(known_device(cluster, "device", device.get<std::string>()));
    return;
  }
  if (!device.is_object() || !device.contains("base")) return;
  Reader reader(device, cluster.file(), cluster.place_of("device"));
  const std::string base = reader.text("base");
  const hardware::KnownDevice& known = known_device(reader, "base", base);
  const Json given = device;
  device = known_device_json(known, given.contains("efficiency"));
  replace_keys(device, given);
}

Tier tier_of(const hardware::KnownPort& port, const char* name, int span) {
  Tier tier;
  tier.name = name;
  tier.span = span;
  tier.latency = port.latency;
  tier.nics = std::max(1, port.count);
  tier.efficiency = port.reached;
  tier.bandwidth = port.bandwidth * tier.nics * tier.efficiency;
  return tier;
}

}  // namespace

Json known_node_json(const hardware::KnownNode& node) {
  constexpr int kTwo = 2;  // nodes, which have links between them
  Cluster cluster;
  cluster.name = node.name;
  cluster.source = std::string(node.source) + "; " + std::string(hardware::kLatencySource);
  cluster.nodes = kTwo;
  cluster.gpus_per_node = node.gpus;
  cluster.tiers = {tier_of(node.inside, "intra", node.gpus),
                   tier_of(node.outside, "inter", kTwo * node.gpus)};
  cluster.collective_overhead = hardware::kCollectiveOverhead;
  cluster.fabric = node.outside.fabric;
  cluster.nccl.cpu = node.cpu;
  cluster.nccl.gpu_direct = node.gpu_direct;
  Json json = cluster_json(cluster, kDigits);
  json.erase("nodes");
  json["device"] = {{"base", node.device}};
  return json;
}

Json known_device_json(const hardware::KnownDevice& known, bool rated) {
  Device device;
  device.name = known.summary;
  device.flops = known.flops * (rated ? 1 : hardware::kReachedFlops);
  device.half_flops =
      known.half_flops * (rated ? 1 : hardware::reached_half_flops(known.compute_capability));
  device.memory = known.memory * hardware::kReachedMemory;
  device.memory_size = static_cast<double>(known.memory_size);
  device.launch = hardware::kLaunch;
  device.kernel_gap = hardware::kKernelGap;
  device.host_sync = hardware::kHostSync;
  if (known.compute_capability > 0) {
    device.host_link =
        hardware::pcie_of(known.compute_capability).bandwidth * hardware::kReachedHostLink;
  }
  return device_json(device, kDigits);
}

std::string did_you_mean_node(const std::string& word) {
  std::vector<std::string> with_device;
  for (const auto& node : hardware::nodes()) {
    with_device.push_back(std::string(node.name) + " " + std::string(node.device));
  }
  std::vector<std::string> near = near_names(word, with_device);
  for (auto& name : near) name.resize(name.find(' '));
  if (near.empty()) near = near_names(word, names_of(hardware::nodes()));
  return near.empty() ? "" : " (" + question_of(word, near) + ")";
}

Json with_known_hardware(Reader& cluster) {
  Json json = cluster.json();
  if (cluster.has("node")) {
    const std::string name = cluster.text("node");
    const hardware::KnownNode* node = hardware::find_node(name);
    if (node == nullptr) {
      fail_unknown(cluster, "node", name, hardware::nodes().size(), did_you_mean_node(name));
    }
    Json whole = known_node_json(*node);
    const Json network = whole["fabric"];
    replace_keys(whole, json);
    // The routes of its links do not change the kind of network.
    if (whole["fabric"].is_object() && !whole["fabric"].contains("transport")) {
      whole["fabric"]["transport"] = network;
    }
    json = std::move(whole);
    json.erase("node");
  }
  if (json.contains("device")) fill_in_device(cluster, json);
  return json;
}

}  // namespace syncline::input
