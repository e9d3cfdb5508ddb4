#include "core/job/init.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/input/scenario_json.h"
#include "core/json/reader.h"

namespace syncline::job {
namespace {

using hardware::KnownDevice;
using hardware::KnownPort;

const KnownDevice& device_named(const std::string& name) {
  std::vector<std::string> names;
  for (const KnownDevice& device : hardware::devices()) names.emplace_back(device.name);
  if (const auto* device = hardware::find_device(same_name(name, names).value_or(name))) {
    return *device;
  }
  throw InputError("--gpu: '" + name + "' is not known" + did_you_mean(name, names) +
                   "; `syncline list` names them");
}

[[noreturn]] void fail_net(const std::string& net) {
  throw InputError("--net: found '" + net +
                   "', expected a port's rate such as 25gbit, 8x400gbit or 4x100gbit:efa");
}

// What is left of a number at the front of `text`.
double number_of(std::string_view& text, const std::string& net) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0)) fail_net(net);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

Fabric fabric_named(std::string_view word, const std::string& net) {
  std::string words;
  for (const auto& [name, fabric] : input::fabric_words()) {
    if (name == word) return fabric;
    words += (words.empty() ? "" : ", ") + name;
  }
  throw InputError("--net: found '" + net + "', the fabrics are " + words);
}

KnownPort port_of(const std::string& net) {
  constexpr double kMostCount = 64, kMostRate = 10000, kEthernet = 50;
  std::string_view text = net;
  double rate = number_of(text, net), count = 1;
  if (text.starts_with('x')) {
    text.remove_prefix(1);
    count = std::exchange(rate, number_of(text, net));
  }
  if (!text.starts_with("gbit") || count > kMostCount || count != std::floor(count) ||
      rate > kMostRate) {
    fail_net(net);
  }
  text.remove_prefix(std::string_view("gbit").size());
  Fabric fabric = rate <= kEthernet ? Fabric::kTcp : Fabric::kUnknown;
  if (text.starts_with(':')) {
    fabric = fabric_named(text.substr(1), net);
  } else if (!text.empty()) {
    fail_net(net);
  }
  return hardware::port(static_cast<int>(count), rate, fabric);
}

bool is_geforce(const KnownDevice& device) {
  return device.summary.find("GeForce") != device.summary.npos;
}

KnownPort inside_of(const KnownDevice& device) {
  const hardware::KnownNode* usual = hardware::usual_node_of(device);
  if (usual != nullptr && usual->inside.count > 0) return usual->inside;
  return is_geforce(device) ? hardware::kHostMemory : hardware::pcie_of(device.compute_capability);
}

}  // namespace

hardware::KnownNode own_node(const std::string& gpu, int gpus, const std::string& net) {
  const KnownDevice& device = device_named(gpu);
  hardware::KnownNode node;
  node.name = node.device = device.name;
  node.summary = device.summary;
  node.gpus = gpus;
  node.inside = inside_of(device);
  node.outside = net.empty() ? KnownPort{} : port_of(net);
  const Fabric fabric = node.outside.fabric;
  // "Available on Tesla and Quadro GPUs" (NVIDIA, GPUDirect RDMA): GeForce cards have none.
  node.gpu_direct = fabric != Fabric::kTcp && fabric != Fabric::kUnknown && !is_geforce(device);
  node.source = "GPUs and network as given, GPUs joined as is usual for them";
  return node;
}

}  // namespace syncline::job
