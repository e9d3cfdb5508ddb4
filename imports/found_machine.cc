#include "imports/found_machine.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "formats/json/reader.h"
#include "formats/text/limits.h"

namespace syncline::job {
namespace {

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

// Sets the links of GPUs behind switches, which a matrix or a file by hand shows once for each
// other GPU: more than a GPU has are those of one.
void settle_switches(std::vector<FoundGpu>& gpus, int capability) {
  if (capability == 0) return;
  const int most = most_links(capability);
  for (FoundGpu& gpu : gpus) {
    int all = 0, largest = 0;
    for (const auto& [other, count] : gpu.links) {
      all += count;
      largest = std::max(largest, count);
    }
    if (all > most) gpu.links = {{"", std::min(largest, most)}};
  }
}

// Reads <system> of NCCL's topology file.
class SystemReader {
 public:
  SystemReader(const std::string& file, FoundMachine& found) : file_(file), found_(found) {}

  void read(const Json& system) {
    std::string first;
    for (const Json& part : system["inside"]) {
      if (part["tag"] != "cpu") continue;
      // One file lists all machines joined by NVLink; the first counts.
      const std::string host = attribute(part, "host_hash");
      if (first.empty()) first = host;
      if (host != first) continue;
      const std::string vendor = attribute(part, "vendor");
      found_.cpu = vendor == "GenuineIntel"   ? NcclHints::Cpu::kIntel
                   : vendor == "AuthenticAMD" ? NcclHints::Cpu::kAmd
                                              : found_.cpu;
      ++cpus_;
      add(part, 0, "");
    }
    settle_targets();
    if (found_.amd.empty()) settle_switches(found_.gpus, found_.capability);
    found_.through_processor = std::ranges::any_of(
        found_.gpus, [&](const FoundGpu& gpu) { return gpu.bridge != found_.gpus.front().bridge; });
  }

 private:
  void add(const Json& element, BytesPerSecond slot, std::string bridge) {
    const bool pci = element["tag"] == "pci";
    if (pci) {
      const BytesPerSecond own = rate_of_slot(element);
      slot = slot > 0 && own > 0 ? std::min(slot, own) : std::max(slot, own);
      if (bridge.empty()) bridge = std::to_string(cpus_) + " " + attribute(element, "busid");
    }
    const auto inside = std::ranges::count_if(
        element["inside"], [](const Json& part) { return part["tag"] == "gpu"; });
    // Files written by hand may leave the class out, or say a bridge's.
    const bool display = pci && (inside > 0 || is_gpu_class(attribute(element, "class")));
    if (display) add_place(element, slot, bridge, inside);
    for (const Json& part : element["inside"]) {
      if (part["tag"] == "gpu" && display) add_gpu(part);
      if (part["tag"] == "net") add_nic(part);
      if (part["tag"] == "pci" || part["tag"] == "nic") add(part, slot, bridge);
    }
  }

  void add_place(const Json& pci, BytesPerSecond slot, const std::string& bridge,
                 std::ptrdiff_t inside) {
    if (inside > 1) {
      throw InputError(file_ + ": <pci busid=\"" + attribute(pci, "busid") + "\"> has " +
                       std::to_string(inside) +
                       " <gpu>: NCCL reads the first; give each a <pci> of its own");
    }
    const std::string product = attribute(pci, "device");
    if (found_.gpus.empty()) found_.product = product;
    if (found_.product != product) found_.product.clear();
    found_.gpus.push_back({attribute(pci, "busid"), {}, slot, "", bridge});
  }

  // Adds a GPU. XGMI is AMD's NVLink. "tclass" is the PCI class of the other end: a GPU, a
  // processor, else a switch. NCCL fills it in; before, the target may be a GPU of the file.
  void add_gpu(const Json& gpu) {
    FoundGpu& own = found_.gpus.back();
    own.number = attribute(gpu, "dev");
    found_.amd = amd_name(attribute(gpu, "gcn"));
    // AMD's library counts otherwise.
    if (found_.amd.empty())
      found_.capability = static_cast<int>(std::min(leading_number(attribute(gpu, "sm")), 1e3));
    for (const Json& link : gpu["inside"]) {
      const std::string to = attribute(link, "tclass");
      const int count = static_cast<int>(std::min(leading_number(attribute(link, "count")), 1e3));
      if ((link["tag"] != "nvlink" && link["tag"] != "xgmi") || to == "0x068001" || count == 0)
        continue;
      const std::string target = attribute(link, "target");
      own.links[to.empty() ? kUnsaid + target : is_gpu_class(to) ? target : ""] += count;
    }
  }

  void add_nic(const Json& net) {
    found_.nics.push_back({attribute(net, "name"), leading_number(attribute(net, "speed")),
                           attribute(net, "gdr") == "1"});
  }

  // Names the targets without a class: a GPU of the file by its bus or number, else a switch.
  void settle_targets() {
    for (FoundGpu& gpu : found_.gpus) {
      const std::map<std::string, int> links = std::exchange(gpu.links, {});
      for (const auto& [target, count] : links) {
        if (!target.starts_with(kUnsaid)) {
          gpu.links[target] += count;
          continue;
        }
        const std::string name = target.substr(kUnsaid.size());
        const auto other = std::ranges::find_if(found_.gpus, [&](const FoundGpu& one) {
          return one.bus == name || (!one.number.empty() && one.number == name);
        });
        gpu.links[other == found_.gpus.end() ? "" : other->bus] += count;
      }
    }
  }

  inline static const std::string kUnsaid = "?";  // before a target whose class is not said
  const std::string& file_;
  FoundMachine& found_;
  int cpus_ = 0;
};

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
FoundMachine matrix_in(const std::string& text, int capability) {
  constexpr std::array<std::string_view, 4> kByProcessor{"PHB", "NODE", "SYS", "SOC"};
  FoundMachine found;
  found.tool = "nvidia-smi topo -m";
  found.capability = capability;
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
    FoundGpu gpu{cells.front(), {}, 0, "", ""};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string& cell = cells[i + 1];
      found.through_processor |= std::ranges::count(kByProcessor, cell) > 0;
      if (!cell.starts_with("NV")) continue;
      const int count = static_cast<int>(std::min(leading_number(cell.substr(2)), 64.0));
      if (count > 0) gpu.links[columns[i]] = count;
    }
    found.gpus.push_back(std::move(gpu));
  }
  settle_switches(found.gpus, capability);
  if (found.gpus.size() != columns.size()) found.gpus.clear();  // cut off
  return found;
}

// Headings of the matrix of links' types: rocm-smi's, amd-smi's.
constexpr std::array<std::string_view, 2> kAmdHeadings{"Link Type between two GPUs",
                                                       "LINK TYPE TABLE"};

bool is_amd_matrix(const std::string& text) {
  return std::ranges::any_of(kAmdHeadings,
                             [&](auto words) { return text.find(words) != text.npos; });
}

// Returns the machine of `rocm-smi --showtopo` or `amd-smi topology`: below a heading a row and a
// column per GPU, XGMI or PCIE. It does not count the links of a pair: one is taken.
FoundMachine amd_matrix_in(const std::string& text) {
  FoundMachine found;
  found.tool = "rocm-smi --showtopo";
  found.by_xgmi = true;
  bool below = false;
  std::vector<std::string> columns;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> cells = cells_of(line);
    below |= is_amd_matrix(line);
    if (cells.empty() || !below || is_amd_matrix(line)) continue;
    if (columns.empty()) {
      columns = cells;
      continue;
    }
    if (std::ranges::count(columns, cells.front()) == 0 || cells.size() <= columns.size()) break;
    FoundGpu gpu{cells.front(), {}, 0, "", ""};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      found.through_processor |= cells[i + 1] == "PCIE";
      if (cells[i + 1] == "XGMI") gpu.links[columns[i]] = 1;
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
FoundNic parse_port(const std::string& line, bool direct) {
  FoundNic nic{behind(line, " name="), leading_number(behind(line, " speed=")), direct};
  const std::size_t number = line.rfind("] ");
  if (nic.name.empty() && number != line.npos) {
    nic.name = line.substr(number + 2, line.find_first_of(": ", number + 2) - number - 2);
  }
  return nic;
}

// Returns true if a line of NCCL's graph or connections shows two GPUs that meet in a processor:
// "GPU/4E000 :GPU/0-4f000 (5/10.0/SYS)", "via SHM/direct/direct".
bool meets_in_processor(const std::string& line) {
  if (line.find(" via SHM") != line.npos) return true;
  std::size_t at = line.find(" :GPU/");
  for (; at != line.npos; at = line.find("GPU/", at + 1)) {
    const std::size_t open = line.find(" (", at), close = line.find(')', at);
    if (open == line.npos || close == line.npos || close < open) return false;
    const std::string path = line.substr(open, close - open);
    if (path.ends_with("/SYS") || path.ends_with("/PHB")) return true;
  }
  return false;
}

// Returns the first host in lines of NCCL_DEBUG=INFO: its GPUs (of communicators, or of the graph
// of NCCL_DEBUG_SUBSYS=GRAPH), their links, and the ports. Each rank prints the same.
FoundMachine info_in(const std::string& text, int capability) {
  FoundMachine found;
  found.tool = "NCCL's log";
  found.capability = capability;
  std::map<std::string, FoundGpu> graph;
  std::set<std::string> buses;
  std::map<std::string, FoundNic> ports;
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
    found.through_processor |= meets_in_processor(line);
    const std::string bus = behind(line, " busId "), to = behind(line, " - GPU/");
    const double rate = leading_number(behind(line, "+ NVL["));
    if (!bus.empty()) buses.insert(bus);
    if (rate > 0 && !gpu.empty()) {
      graph[gpu].links[to] = static_cast<int>(std::lround(rate / nccl_link_of(capability)));
    } else if (!to.empty()) {
      graph[gpu = to].bus = to;
    }
    const FoundNic nic = parse_port(line, direct);
    if (nic.megabits > 0 && !nic.name.empty() && line.find("NET/") != line.npos) {
      ports.try_emplace(nic.name, nic);
    }
  }
  for (auto& [bus, one] : graph) found.gpus.push_back(std::move(one));
  for (const std::string& bus : buses) {
    if (graph.empty()) found.gpus.push_back({bus, {}, 0, "", ""});
  }
  for (auto& [name, nic] : ports) found.nics.push_back(std::move(nic));
  return found;
}

bool is_xml(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '<';
}

bool is_log(const std::string& text) { return text.find(" NCCL INFO ") != text.npos; }

}  // namespace

bool FoundMachine::joins_gpus() const {
  std::set<std::string> reached;
  std::vector<std::string> next{gpus.front().bus};
  while (!next.empty()) {
    const std::string bus = next.back();
    next.pop_back();
    if (!reached.insert(bus).second) continue;
    for (const FoundGpu& gpu : gpus) {
      if (gpu.links.contains(bus)) next.push_back(gpu.bus);
      if (gpu.bus != bus) continue;
      for (const auto& [other, count] : gpu.links) next.push_back(other);
    }
  }
  return std::ranges::all_of(gpus, [&](const FoundGpu& gpu) { return reached.contains(gpu.bus); });
}

int FoundMachine::links() const {
  std::set<std::string> here{""};
  for (const FoundGpu& gpu : gpus) here.insert(gpu.bus);
  std::vector<int> counts;
  for (const FoundGpu& gpu : gpus) {
    counts.push_back(0);
    for (const auto& [other, count] : gpu.links) counts.back() += here.contains(other) ? count : 0;
  }
  return *std::ranges::min_element(counts);
}

BytesPerSecond FoundMachine::slot() const {
  return std::ranges::min_element(gpus, {}, &FoundGpu::slot)->slot;
}

FoundMachine found_machine(const std::string& file, const std::string& text, int capability) {
  FoundMachine found;
  if (is_xml(text)) {
    const Json system = parse_xml(file, text);
    if (system["tag"] == "system") SystemReader(file, found).read(system);
    return found;
  }
  if (is_log(text)) return info_in(text, capability);
  if (is_amd_matrix(text)) return amd_matrix_in(text);
  return text.find("GPU0") == text.npos ? found : matrix_in(text, capability);
}

bool lacks_device(const std::string& text) {
  return !is_xml(text) && (is_log(text) || is_amd_matrix(text) || text.find("GPU0") != text.npos);
}

std::string device_in_lines(const std::string& text) {
  std::string name;
  for (const std::string_view maker : {"NVIDIA ", "Tesla ", "GeForce ", "AMD Instinct "}) {
    for (std::size_t at = text.find(maker); at != text.npos; at = text.find(maker, at + 1)) {
      std::string word = text.substr(at, text.find_first_of("\r\n|(,", at) - at);
      word = word.substr(0, word.find("  "));
      const hardware::KnownDevice* device = hardware::recognise_device(word);
      if (device == nullptr) continue;
      if (!name.empty() && name != device->name) return "";
      name = device->name;
    }
  }
  return name;
}

// Returns the rate of one NVLink: 20, 25, 25, 25 and 50 GB/s by generation, 14.0625 on GA102
// (NVIDIA's whitepapers of Pascal to Blackwell, and of GA102).
double nvlink_rate(int capability) {
  constexpr int kVolta = 70, kGa102 = 86, kBlackwell = 100;
  return capability == kGa102      ? 14.0625
         : capability < kVolta     ? 20
         : capability < kBlackwell ? 25
                                   : 50;
}

}  // namespace syncline::job
