#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "formats/input/scenario_json.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/text/digits.h"
#include "formats/text/files.h"
#include "imports/found_machine.h"
#include "imports/init.h"

namespace syncline::job {
namespace {

using hardware::KnownDevice;
using hardware::KnownPort;

// AMD's devices by RCCL's name and by PCI device, the virtual machine's second (The PCI ID
// Repository, 2025). `link`: GB/s of one XGMI link, each direction, if a ring takes every link;
// `slot`: of PCIe (AMD's data sheets of the platforms; of MI250X some links join two dies).
struct AmdDevice {
  std::string_view gcn;
  std::string_view name;
  std::string_view products[2];
  double link = 0;
  double slot = 0;
};
constexpr AmdDevice kAmd[] = {{"gfx90a", "mi250x", {"0x7408", "0x740c"}, 0, 31.5},
                              {"gfx942", "mi300x", {"0x74a1", "0x74b5"}, 64, 63},
                              {"gfx942", "mi325x", {"0x74a5", "0x74b9"}, 64, 63},
                              {"gfx950", "mi350x", {"0x75a0", "0x75b0"}, 76.8, 63}};

// Returns the device that an AMD GPU's PCI device names.
std::string amd_device_of(const FoundMachine& found, const std::string& file) {
  for (const AmdDevice& device : kAmd) {
    if (device.gcn == found.amd && std::ranges::count(device.products, found.product) > 0) {
      return std::string(device.name);
    }
  }
  throw InputError(file + ": its GPUs are " + found.amd + ", PCI device '" + found.product +
                   "', which names none that is known; --gpu says which");
}

// Returns AMD's device. Refuses one that the file contradicts.
const AmdDevice& amd_of(const hardware::KnownNode& node, const FoundMachine& found,
                        const std::string& file) {
  const auto* row = std::ranges::find(kAmd, node.device, &AmdDevice::name);
  const bool known = row != std::end(kAmd);
  if (known && (found.amd.empty() || row->gcn == found.amd)) return *row;
  throw InputError("--gpu: " + std::string(node.name) + " is " +
                   (known ? std::string(row->gcn) : "not AMD's") + ", the GPUs of " + file +
                   " are " + (found.amd.empty() ? "AMD's" : found.amd));
}

// NVIDIA's devices by PCI device (The PCI ID Repository, 2026).
constexpr std::pair<std::string_view, std::string_view> kNvidia[] = {
    {"0x1db1", "v100-sxm"},
    {"0x1db5", "v100-sxm-32gb"},
    {"0x1db4", "v100-pcie"},
    {"0x1eb8", "t4"},
    {"0x20b0", "a100-sxm-40gb"},
    {"0x20b2", "a100-sxm-80gb"},
    {"0x20b1", "a100-pcie-40gb"},
    {"0x20f1", "a100-pcie-40gb"},
    {"0x20b5", "a100-pcie-80gb"},
    {"0x2235", "a40"},
    {"0x2236", "a10"},
    {"0x2237", "a10g"},
    {"0x2204", "rtx-3090"},
    {"0x27b8", "l4"},
    {"0x26b9", "l40s"},
    {"0x2684", "rtx-4090"},
    {"0x2b85", "rtx-5090"},
    {"0x2bb5", "rtx-pro-6000-server"},
    {"0x2331", "h100-pcie"},
    {"0x2321", "h100-nvl"},
    {"0x2330", "h100-sxm"},
    {"0x233b", "h200-nvl"},
    {"0x2335", "h200-sxm"},
    {"0x2901", "b200"},
    {"0x2941", "gb200"}};

// Returns the device of the PCI device, else the only known one of that compute capability.
std::string device_of(const FoundMachine& found, const std::string& file) {
  const auto* named = std::ranges::find(kNvidia, found.product,
                                        &std::pair<std::string_view, std::string_view>::first);
  if (named != std::end(kNvidia)) return std::string(named->second);
  const int capability = found.capability;
  std::string all;
  std::size_t count = 0;
  for (const KnownDevice& device : hardware::devices()) {
    if (capability == 0 || device.compute_capability != capability) continue;
    all += (count++ == 0 ? "" : ", ") + std::string(device.name);
  }
  if (count == 1) return all;
  throw InputError(
      file + ": " +
      (count == 0 ? "it does not say which GPUs these are" : "its GPUs may be " + all) +
      "; --gpu says which");
}

// Returns the fastest ports, as --net has them. NCCL uses sockets if it names an interface.
std::string port_words(const std::vector<FoundNic>& nics) {
  double fastest = 0;
  for (const FoundNic& nic : nics) fastest = std::max(fastest, nic.megabits);
  if (fastest == 0) return "";
  const auto is_fast = [&](const FoundNic& nic) { return nic.megabits == fastest; };
  const FoundNic& first = *std::ranges::find_if(nics, is_fast);
  const auto starts = [&](const char* word) { return first.name.starts_with(word); };
  const char* fabric = starts("efa") || starts("rdmap") ? "efa"
                       : starts("cxi") || starts("hsn") ? "slingshot"
                       : first.direct || starts("mlx")  ? "rdma"
                                                        : "tcp";
  constexpr int kDigits = 6;
  constexpr double kMegabitsAGigabit = 1000;
  return std::to_string(std::ranges::count_if(nics, is_fast)) + "x" +
         short_text(fastest / kMegabitsAGigabit, kDigits) + "gbit:" + fabric;
}

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

// Returns the number at the front of `text`, and removes it there.
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
  constexpr double kMaxCount = 64, kMaxRate = 10000, kEthernet = 50;
  std::string_view text = net;
  double rate = number_of(text, net), count = 1;
  if (text.starts_with('x')) {
    text.remove_prefix(1);
    count = std::exchange(rate, number_of(text, net));
  }
  if (!text.starts_with("gbit") || count > kMaxCount || count != std::floor(count) ||
      rate > kMaxRate) {
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

// Returns a text that lasts as long as the program, as the names of known nodes do.
std::string_view lasting(std::string text) {
  static std::set<std::string> all;
  return *all.insert(std::move(text)).first;
}

// Returns the words for GPUs that PCIe joins. NCCL copies through the host's memory between GPUs
// that meet in a processor (NCCL_P2P_LEVEL is PXB by itself; src/graph/paths.cc), at 5.5 GB/s
// (kHostMemory) to 26 (a published all-gather of 4 A100 80GB PCIe, Azure's NC96ads_A100_v4).
std::string pcie_words(const FoundMachine& found) {
  const std::string joined = found.tool + ": PCIe joins the GPUs";
  if (!found.through_processor) return joined;
  return joined +
         " through processors (PHB, NODE, SYS), guessed as fast as a slot; NCCL copies through "
         "the host's memory there (not between two GPUs of AMD processors), at 5.5 GB/s on 2 RTX "
         "3090 and 26 on 4 A100 as published";
}

// Sets the links inside the node and their source.
void join_inside(const FoundMachine& found, const std::string& file, hardware::KnownNode& node) {
  const bool amd = found.by_xgmi || !found.amd.empty();
  if (found.gpus.size() == 1) {
    if (amd) (void)amd_of(node, found, file);
    return;
  }
  const bool linked = found.joins_gpus() && found.links() > 0;
  if (amd) {
    const AmdDevice& device = amd_of(node, found, file);
    if (linked && device.link > 0) {
      node.inside = hardware::nvlink(found.links() * device.link);
      node.source =
          lasting((found.by_xgmi ? found.tool : "RCCL's topology file") + ": XGMI joins all GPUs");
    } else if (!linked && found.by_xgmi) {
      node.inside = hardware::pcie(device.slot);
      node.source = lasting(pcie_words(found));
    }
    return;
  }
  if (found.capability == 0) return;
  const int capability = hardware::device_of(node).compute_capability;
  if (linked) {
    node.inside = hardware::nvlink(found.links() * nvlink_rate(capability));
    node.source = lasting(found.tool + ": NVLink joins all GPUs");
  } else if (node.inside.reached == 1) {
    // NVLink between some GPUs helps no ring through all.
    node.inside = found.slot() > 0 ? hardware::pcie(found.slot() / kGigabytePerSecond)
                                   : hardware::pcie_of(capability);
    node.source = lasting(pcie_words(found));
  }
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

bool is_topology_file(const std::string& node) {
  std::error_code error;
  return node.ends_with(".xml") ||
         (hardware::find_node(node) == nullptr && std::filesystem::is_regular_file(node, error));
}

hardware::KnownNode nccl_node(const std::string& file, std::string gpu, std::string net) {
  const std::string text = read_text_file(file, "NCCL's topology file");
  if (gpu.empty()) gpu = device_in_lines(text);
  if (gpu.empty() && lacks_device(text)) {
    throw InputError(file + ": it does not say which GPUs these are; --gpu says which");
  }
  const FoundMachine found =
      found_machine(file, text, gpu.empty() ? 0 : device_named(gpu).compute_capability);
  if (found.gpus.empty()) {
    throw InputError(file + ": expected NCCL's topology, <system> with GPUs " +
                     "(NCCL_TOPO_DUMP_FILE writes it), what `nvidia-smi topo -m` or `rocm-smi "
                     "--showtopo` prints, or a log of NCCL_DEBUG=INFO");
  }
  if (gpu.empty()) gpu = found.amd.empty() ? device_of(found, file) : amd_device_of(found, file);
  const bool given = !net.empty();
  if (!given) net = port_words(found.nics);
  hardware::KnownNode node = own_node(gpu, static_cast<int>(found.gpus.size()), net);
  const int capability = hardware::device_of(node).compute_capability;
  if (found.capability != 0 && capability != found.capability) {
    throw InputError("--gpu: " + std::string(node.name) + " has compute capability " +
                     std::to_string(capability) + ", the GPUs of " + file + " " +
                     std::to_string(found.capability));
  }
  node.cpu = found.cpu;
  if (!given && !net.empty()) {
    node.gpu_direct &= std::ranges::any_of(found.nics, &FoundNic::direct);
  }
  join_inside(found, file, node);
  return node;
}

}  // namespace syncline::job
