#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "formats/input/scenario_json.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/text/digits.h"
#include "formats/text/files.h"
#include "formats/text/limits.h"
#include "imports/init.h"

namespace syncline::job {
namespace {

using hardware::KnownDevice;
using hardware::KnownPort;

struct Gpu {
  std::string bus;
  std::map<std::string, int> links;  // NVLinks by the bus of the other end, "" for switches
  BytesPerSecond slot = 0;           // the slowest PCIe link up to its processor; 0: not known
};

struct Nic {
  std::string name;
  double megabits = 0;  // a second
  bool direct = false;  // reaches the GPUs' memory
};

std::string attribute(const Json& element, const char* name) {
  return element["attributes"].value(name, "");
}

// Returns the number that the text begins with; 0 if it has none that means anything.
double leading_number(const std::string& text) {
  constexpr double kMax = 1e9;
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value > 0 && value < kMax ? value : 0;
}

// Returns the net rate of "16.0 GT/s PCIe", 16 lanes. Virtual machines leave both out.
BytesPerSecond rate_of_slot(const Json& pci) {
  constexpr double kNewCode = 8, kOld = 8.0 / 10, kNew = 128.0 / 130;  // from PCIe 3 on
  const double transfers = leading_number(attribute(pci, "link_speed"));
  const double width = leading_number(attribute(pci, "link_width"));
  return transfers * width * (transfers < kNewCode ? kOld : kNew) * kGigabitPerSecond;
}

// Returns true for a GPU, or an accelerator without a display such as AMD's.
bool is_gpu_class(const std::string& pci_class) {
  return pci_class.starts_with("0x03") || pci_class.starts_with("0x12");
}

// Returns RCCL's name of an AMD GPU: "gfx942"; before 2.12 the digits alone, 910 for gfx90a.
std::string amd_name(const std::string& gcn) {
  if (gcn == "910") return "gfx90a";
  return gcn.empty() || gcn.starts_with("gfx") ? gcn : "gfx" + gcn;
}

// One machine as NCCL describes it.
class Found {
 public:
  std::string amd;          // "gfx942"; "": NVIDIA's, or not said
  std::string amd_product;  // its PCI device, "0x74a1"
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;
  NcclHints::Cpu cpu = NcclHints::Cpu::kOther;
  const char* by_nvlink = "NCCL's topology file: NVLink joins all GPUs";
  const char* by_pcie = "NCCL's topology file: PCIe joins the GPUs";
  bool through_processor = false;  // PCIe joins some GPUs by a processor's bridges
  int capability = 0;              // 90 of an H100; 0: unknown, as in files of virtual machines

  Found() = default;
  explicit Found(const Json& system) {
    std::string first;
    for (const Json& part : system["inside"]) {
      if (part["tag"] != "cpu") continue;
      // One file lists all machines joined by NVLink; the first counts.
      const std::string host = attribute(part, "host_hash");
      if (first.empty()) first = host;
      if (host != first) continue;
      const std::string vendor = attribute(part, "vendor");
      cpu = vendor == "GenuineIntel"   ? NcclHints::Cpu::kIntel
            : vendor == "AuthenticAMD" ? NcclHints::Cpu::kAmd
                                       : cpu;
      add(part, 0);
    }
  }

  // Returns true if NVLinks alone lead from one GPU to all.
  bool joined() const {
    std::set<std::string> reached;
    std::vector<std::string> next{gpus.front().bus};
    while (!next.empty()) {
      const std::string bus = next.back();
      next.pop_back();
      if (!reached.insert(bus).second) continue;
      for (const Gpu& gpu : gpus) {
        if (gpu.links.contains(bus)) next.push_back(gpu.bus);
        if (gpu.bus != bus) continue;
        for (const auto& [other, count] : gpu.links) next.push_back(other);
      }
    }
    return std::ranges::all_of(gpus, [&](const Gpu& gpu) { return reached.contains(gpu.bus); });
  }

  // Returns the NVLinks of the GPU that has the fewest, to GPUs of this machine and its switches.
  int links() const {
    std::set<std::string> here{""};
    for (const Gpu& gpu : gpus) here.insert(gpu.bus);
    std::vector<int> counts;
    for (const Gpu& gpu : gpus) {
      counts.push_back(0);
      for (const auto& [other, count] : gpu.links)
        counts.back() += here.contains(other) ? count : 0;
    }
    return *std::ranges::min_element(counts);
  }

  BytesPerSecond slot() const { return std::ranges::min_element(gpus, {}, &Gpu::slot)->slot; }

 private:
  void add(const Json& element, BytesPerSecond slot) {
    const bool pci = element["tag"] == "pci";
    if (pci) {
      const BytesPerSecond own = rate_of_slot(element);
      slot = slot > 0 && own > 0 ? std::min(slot, own) : std::max(slot, own);
    }
    const std::string kind = attribute(element, "class");
    const auto is_gpu = [](const Json& part) { return part["tag"] == "gpu"; };
    // Files written by hand may leave the class out.
    const bool display =
        pci && (kind.empty() ? std::ranges::any_of(element["inside"], is_gpu) : is_gpu_class(kind));
    if (display) gpus.push_back({attribute(element, "busid"), {}, slot});
    for (const Json& part : element["inside"]) {
      if (part["tag"] == "gpu" && display) {
        add_gpu(part);
        if (!amd.empty()) amd_product = attribute(element, "device");
      }
      if (part["tag"] == "net") add_nic(part);
      if (part["tag"] == "pci" || part["tag"] == "nic") add(part, slot);
    }
  }

  // Adds a GPU. XGMI is AMD's NVLink. "tclass" is the PCI class of the other end: a GPU, a
  // processor, else a switch.
  void add_gpu(const Json& gpu) {
    amd = amd_name(attribute(gpu, "gcn"));
    // AMD's library counts otherwise.
    if (amd.empty())
      capability = static_cast<int>(std::min(leading_number(attribute(gpu, "sm")), 1e3));
    for (const Json& link : gpu["inside"]) {
      const std::string to = attribute(link, "tclass");
      const int count = static_cast<int>(std::min(leading_number(attribute(link, "count")), 1e3));
      if ((link["tag"] != "nvlink" && link["tag"] != "xgmi") || to == "0x068001" || count == 0)
        continue;
      gpus.back().links[is_gpu_class(to) ? attribute(link, "target") : ""] += count;
    }
  }

  void add_nic(const Json& net) {
    nics.push_back({attribute(net, "name"), leading_number(attribute(net, "speed")),
                    attribute(net, "gdr") == "1"});
  }
};

// Returns GB/s of one NVLink, each direction: by generation 20, 25, 25, 25 and 50; of GA102's four
// 14.0625 (NVIDIA's whitepapers of Pascal to Blackwell, and of GA102).
double nvlink_of(int capability) {
  constexpr int kVolta = 70, kGa102 = 86, kBlackwell = 100;
  return capability == kGa102      ? 14.0625
         : capability < kVolta     ? 20
         : capability < kBlackwell ? 25
                                   : 50;
}

// Returns the NVLinks of a GPU, by generation (the same whitepapers).
int most_links(int capability) {
  constexpr int kVolta = 70, kAmpere = 80, kGa102 = 86, kHopper = 90;
  return capability >= kHopper   ? 18
         : capability == kGa102  ? 4
         : capability >= kAmpere ? 12
         : capability >= kVolta  ? 6
                                 : 4;
}

// Returns GB/s that NCCL takes for one NVLink (src/graph/topo.h, SM60_NVLINK_BW and so on).
double nccl_link_of(int capability) {
  constexpr int kVolta = 70, kGa102 = 86, kHopper = 90, kBlackwell = 100;
  return capability == kGa102       ? 12
         : capability >= kBlackwell ? 40.1
         : capability >= kHopper    ? 20.6
         : capability >= kVolta     ? 20
                                    : 18;
}

const KnownDevice& device_named(const std::string& name);

// Ahead of "NCCL INFO" in a line.
constexpr std::size_t kLongestPrefix = 400;

// Returns the words of a line, without a terminal's colours.
std::vector<std::string> cells_of(const std::string& line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\x1b')
      at = std::min(line.find('m', at), line.size());  // the code's end
    else
      plain += line[at];
  }
  std::istringstream words(plain);
  std::vector<std::string> cells;
  for (std::string word; words >> word && cells.size() < kMaxValues;) cells.push_back(word);
  return cells;
}

// Returns the machine of `nvidia-smi topo -m`: a row and a column per GPU, NV18 if 18 NVLinks join
// two. Switches are not listed: more links than a GPU has mean a switch.
Found matrix_in(const std::string& text, int capability) {
  Found found;
  std::vector<std::string> columns;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells = cells_of(line);
    if (cells.empty()) continue;
    if (columns.empty() && cells.front() == "GPU0" && line.find(" X ") == line.npos) {
      for (const std::string& cell : cells) {
        if (cell.starts_with("GPU") && cell.size() > 3) columns.push_back(cell);
        if (cell == "CPU" || cell == "NIC0") break;
      }
      continue;
    }
    const bool row = std::ranges::count(columns, cells.front()) > 0;
    if (!row || cells.size() <= columns.size()) continue;
    Gpu gpu{cells.front(), {}, 0};
    int all = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string& cell = cells[i + 1];
      found.through_processor |= cell == "PHB" || cell == "NODE" || cell == "SYS";
      if (!cell.starts_with("NV")) continue;
      const int count = static_cast<int>(std::min(leading_number(cell.substr(2)), 64.0));
      if (count > 0) gpu.links[columns[i]] = count;
      all += count;
    }
    if (all > most_links(capability)) {
      const int each = std::ranges::max_element(gpu.links, {}, [](const auto& one) {
                         return one.second;
                       })->second;
      gpu.links = {{"", each}};
    }
    found.gpus.push_back(std::move(gpu));
  }
  if (found.gpus.size() != columns.size()) found.gpus.clear();  // cut off
  return found;
}

// Returns the text after a word in a line, up to a blank; empty if the line lacks the word.
std::string behind(const std::string& line, const char* word) {
  const std::size_t at = line.find(word);
  if (at == line.npos) return {};
  const std::size_t from = at + std::string_view(word).size();
  return line.substr(from, line.find_first_of(" ,", from) - from);
}

// Returns the name and the rate of a port in a line of NCCL's; a rate of 0: unknown.
Nic parse_port(const std::string& line, bool direct) {
  Nic nic{behind(line, " name="), leading_number(behind(line, " speed=")), direct};
  const std::size_t number = line.rfind("] ");
  if (nic.name.empty() && number != line.npos) {
    nic.name = line.substr(number + 2, line.find_first_of(": ", number + 2) - number - 2);
  }
  return nic;
}

// Returns the first host in lines of NCCL_DEBUG=INFO: its GPUs (of communicators, or of the graph
// of NCCL_DEBUG_SUBSYS=GRAPH), their links, and the ports. Each rank prints the same.
Found info_in(const std::string& text, int capability) {
  Found found;
  std::map<std::string, Gpu> graph;
  std::set<std::string> buses;
  std::map<std::string, Nic> ports;
  std::string host, gpu;
  const bool direct = text.find("GPU Direct RDMA Disabled") == text.npos;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t mark = line.find(" NCCL INFO ");
    if (mark == line.npos || mark > kLongestPrefix) continue;
    const std::string own = line.substr(0, line.find(':'));  // HOST:PID:TID [DEVICE]
    if (host.empty()) host = own;
    if (own != host) continue;
    line.erase(0, mark);
    const std::string bus = behind(line, " busId "), to = behind(line, " - GPU/");
    const double rate = leading_number(behind(line, "+ NVL["));
    if (!bus.empty()) buses.insert(bus);
    if (rate > 0 && !gpu.empty()) {
      graph[gpu].links[to] = static_cast<int>(std::lround(rate / nccl_link_of(capability)));
    } else if (!to.empty()) {
      graph[gpu = to].bus = to;
    }
    const Nic nic = parse_port(line, direct);
    if (nic.megabits > 0 && !nic.name.empty() && line.find("NET/") != line.npos) {
      ports.try_emplace(nic.name, nic);
    }
  }
  for (auto& [bus, one] : graph) found.gpus.push_back(std::move(one));
  for (const std::string& bus : buses) {
    if (graph.empty()) found.gpus.push_back({bus, {}, 0});
  }
  for (auto& [name, nic] : ports) found.nics.push_back(std::move(nic));
  return found;
}

// Returns the device that lines of nvidia-smi name ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: ...)");
// empty if none or several do.
std::string device_in_lines(const std::string& text) {
  constexpr std::string_view kMaker = "NVIDIA ";
  std::string name;
  for (std::size_t at = text.find(kMaker); at != text.npos; at = text.find(kMaker, at + 1)) {
    std::string word = text.substr(at, text.find_first_of("\r\n|(,", at) - at);
    word = word.substr(0, word.find("  "));
    const KnownDevice* device = hardware::recognise_device(word);
    if (device == nullptr) continue;
    if (!name.empty() && name != device->name) return "";
    name = device->name;
  }
  return name;
}

// Reads a node from NCCL's file, its log or nvidia-smi; the last two need the GPU's name.
Found found_in(const std::string& file, const std::string& text, const std::string& gpu) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '<') {
    const Json system = parse_xml(file, text);
    if (system["tag"] == "system") return Found(system);
    return {};
  }
  const bool log = text.find(" NCCL INFO ") != text.npos;
  if (!log && text.find("GPU0") == text.npos) return {};
  if (gpu.empty()) {
    throw InputError(file + ": it does not say which GPUs these are; --gpu says which");
  }
  const int capability = device_named(gpu).compute_capability;
  Found found = log ? info_in(text, capability) : matrix_in(text, capability);
  found.capability = capability;
  found.by_nvlink =
      log ? "NCCL's log: NVLink joins all GPUs" : "nvidia-smi topo -m: NVLink joins all GPUs";
  found.by_pcie =
      log ? "NCCL's log: PCIe joins the GPUs"
      : found.through_processor
          ? "nvidia-smi topo -m: PCIe joins the GPUs through processors (PHB, NODE, SYS), "
            "guessed as fast as a slot, which a copy in the host's memory is not"
          : "nvidia-smi topo -m: PCIe joins the GPUs";
  return found;
}

// AMD's devices by RCCL's name and by PCI device, the virtual machine's second (The PCI ID
// Repository, 2025). `link`: GB/s of one XGMI link, each direction, if a ring takes every link
// (AMD's data sheets of both platforms; of MI250X some links join two dies).
struct AmdDevice {
  std::string_view gcn;
  std::string_view name;
  std::string_view products[2];
  double link = 0;
};
constexpr AmdDevice kAmd[] = {{"gfx90a", "mi250x", {"0x7408", "0x740c"}, 0},
                              {"gfx942", "mi300x", {"0x74a1", "0x74b5"}, 64},
                              {"gfx942", "mi325x", {"0x74a5", "0x74b9"}, 64},
                              {"gfx950", "mi350x", {"0x75a0", "0x75b0"}, 76.8}};

// Returns the device that an AMD GPU's PCI device names.
std::string amd_device_of(const Found& found, const std::string& file) {
  for (const AmdDevice& device : kAmd) {
    if (device.gcn == found.amd && std::ranges::count(device.products, found.amd_product) > 0) {
      return std::string(device.name);
    }
  }
  throw InputError(file + ": its GPUs are " + found.amd + ", PCI device '" + found.amd_product +
                   "', which names none that is known; --gpu says which");
}

// Refuses a device that the file contradicts; the GB/s of its XGMI links.
double amd_link_of(const hardware::KnownNode& node, const Found& found, const std::string& file) {
  const auto* row = std::ranges::find(kAmd, node.device, &AmdDevice::name);
  if (row != std::end(kAmd) && row->gcn == found.amd) return row->link;
  throw InputError("--gpu: " + std::string(node.name) + " is " +
                   (row == std::end(kAmd) ? "not AMD's" : std::string(row->gcn)) +
                   ", the GPUs of " + file + " are " + found.amd);
}

// Returns the only known device of that compute capability.
std::string device_of(int capability, const std::string& file) {
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
std::string port_words(const std::vector<Nic>& nics) {
  double fastest = 0;
  for (const Nic& nic : nics) fastest = std::max(fastest, nic.megabits);
  if (fastest == 0) return "";
  const auto is_fast = [&](const Nic& nic) { return nic.megabits == fastest; };
  const Nic& first = *std::ranges::find_if(nics, is_fast);
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
  const Found found = found_in(file, text, gpu);
  if (found.gpus.empty()) {
    throw InputError(file + ": expected NCCL's topology, <system> with GPUs " +
                     "(NCCL_TOPO_DUMP_FILE writes it), what `nvidia-smi topo -m` prints, or a log "
                     "of NCCL_DEBUG=INFO");
  }
  if (gpu.empty()) {
    gpu = found.amd.empty() ? device_of(found.capability, file) : amd_device_of(found, file);
  }
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
    node.gpu_direct &= std::ranges::any_of(found.nics, &Nic::direct);
  }
  const double xgmi = found.amd.empty() ? 0 : amd_link_of(node, found, file);
  if (xgmi > 0 && found.gpus.size() > 1 && found.joined() && found.links() > 0) {
    node.inside = hardware::nvlink(found.links() * xgmi);
    node.source = "RCCL's topology file: XGMI joins all GPUs";
  }
  if (found.capability == 0 || found.gpus.size() == 1) return node;
  if (found.joined() && found.links() > 0) {
    node.inside = hardware::nvlink(found.links() * nvlink_of(capability));
    node.source = found.by_nvlink;
  } else if (node.inside.reached == 1) {
    // NVLink between some GPUs helps no ring through all.
    node.inside = found.slot() > 0 ? hardware::pcie(found.slot() / kGigabytePerSecond)
                                   : hardware::pcie_of(capability);
    node.source = found.by_pcie;
  }
  return node;
}

}  // namespace syncline::job
