// A list gives the data sheets of the machines of each log, by the beginning of a log's name:
//   {"logs": FOLDER, "machines": [{"log": "a100-p4d", "site": "p4d", "compute_capability": 80,
//     "inside_gbytes_per_s": 300, "nic_gbps": 100, "nics": 4, "latency_us": 15, "fabric": "efa",
//     "gpu_direct": true, "nvswitch": true, "cpu": "intel", "algorithm": "ring"}, ...]}
// A log with "algorithm" set (NCCL_ALGO), there or in its name, does not show NCCL's choice.
#include "studies/calibrate/prior_fit.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include "core/base/statistics.h"
#include "core/collective/library.h"
#include "core/collective/nccl.h"
#include "core/cost.h"
#include "formats/input/document.h"
#include "formats/input/scenario_json.h"
#include "formats/json/reader.h"
#include "studies/calibrate/log_files.h"
#include "studies/rows/uncertainty.h"

namespace syncline::calibrate {
namespace {

using collective::Path;

struct Machine {
  std::string log;
  std::string site;  // name of the network; its logs count as one
  BytesPerSecond inside = 0;
  BytesPerSecond nic = 0;
  int nics = 1;
  Seconds latency = 0;  // between nodes
  Fabric fabric = Fabric::kUnknown;
  NcclHints hints;
  bool forced = false;  // NCCL was forced to an algorithm
};

Fabric read_fabric(Reader& reader) {
  const auto& known = input::fabric_words();
  std::vector<std::string> names;
  for (const auto& [word, fabric] : known) names.push_back(word);
  const std::string named = reader.word_or("fabric", "", names);
  const auto found = std::ranges::find(known, named, &std::pair<std::string, Fabric>::first);
  return found == known.end() ? Fabric::kUnknown : found->second;
}

// Reads the list of machines. The second value is the folder with their logs.
std::pair<std::vector<Machine>, std::string> read_machines(const std::string& list) {
  const input::Document document = input::read_document(list);
  Reader reader(document.root, list, "");
  reader.text_or("about", "");
  std::vector<Machine> machines;
  const auto folder = std::filesystem::path(list).parent_path() / reader.text("logs");
  for (Reader& item : reader.objects("machines")) {
    Machine& machine = machines.emplace_back();
    machine.log = item.text("log");
    machine.site = item.text("site");
    machine.hints.compute_capability =
        static_cast<int>(item.integer("compute_capability", 50, 999));
    machine.inside = item.number("inside_gbytes_per_s", {0, 1e6}) * kGigabytePerSecond;
    machine.nic = item.number("nic_gbps", {0, 1e6}) * kGigabitPerSecond;
    machine.nics = static_cast<int>(item.integer("nics", 1, 1024));
    machine.latency = item.number("latency_us", {0, 1e6}) * kMicrosecond;
    machine.fabric = read_fabric(item);
    machine.hints.gpu_direct = item.boolean_or("gpu_direct", true);
    machine.hints.nvswitch = item.boolean_or("nvswitch", false);
    if (item.word_or("cpu", "intel", {"intel", "amd"}) == "amd") {
      machine.hints.cpu = NcclHints::Cpu::kAmd;
    }
    machine.forced = item.word_or("algorithm", "nccl", {"nccl", "ring", "tree"}) != "nccl";
    item.finish();
  }
  reader.finish();
  return {std::move(machines), folder.string()};
}

const Machine* machine_of(const std::vector<Machine>& machines, const std::string& file) {
  const Machine* best = nullptr;
  for (const Machine& machine : machines) {
    const bool longer = best == nullptr || machine.log.size() > best->log.size();
    if (file.starts_with(machine.log) && longer) best = &machine;
  }
  return best;
}

Cluster cluster_of(const Machine& machine, int nodes, int gpus) {
  Cluster cluster;
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus;
  cluster.collective_overhead = 10 * kMicrosecond;
  cluster.fabric = machine.fabric;
  cluster.nccl = machine.hints;
  cluster.nccl.nvswitch = *machine.hints.nvswitch && gpus >= 2;
  constexpr BytesPerSecond kFastestPcie = 64 * kGigabytePerSecond;
  const bool nvlink = machine.inside > kFastestPcie;
  if (gpus > 1) {
    cluster.tiers.push_back({.name = "intra",
                             .span = gpus,
                             .latency = (nvlink ? 2 : 5) * kMicrosecond,
                             .bandwidth = machine.inside});
  }
  // Fewer than four GPUs use one NIC each.
  constexpr int kShares = 4;
  const int nics = std::min(machine.nics, gpus < kShares ? gpus : machine.nics);
  if (nodes > 1) {
    cluster.tiers.push_back({.name = "inter",
                             .span = gpus * nodes,
                             .latency = machine.latency,
                             .bandwidth = machine.nic * nics,
                             .nics = nics});
  }
  return cluster;
}

std::size_t class_of(Bytes size) {
  return size <= 64 * kKiB ? 0 : size <= 4 * kMiB ? 1 : size <= 128 * kMiB ? 2 : 3;
}

bool same_kind(const Path& a, const Path& b) {
  return a.across == b.across && a.nvlink == b.nvlink && a.fabric == b.fabric;
}

// Adds at most 33 rows of a table, evenly spread.
void add_rows(PriorUnit& unit, const cost::MeasuredTable& table, const Cluster& cluster) {
  const collective::NcclCostModel model(cluster);
  const auto points = cost::usable_points(table, cost::Place::kOutOfPlace);
  constexpr std::size_t kMax = 33;
  for (std::size_t p = 0; p < points.size(); p += points.size() / kMax + 1) {
    collective::Collective asked{*table.kind,
                                 nullptr,
                                 collective::world_group(cluster.ranks()),
                                 std::max<Bytes>(1, points[p].size / 4),
                                 4,
                                 0,
                                 {}};
    collective::choose_algorithm(asked, collective::kNcclName, cluster);
    // The model's own time, without what logs showed beyond it.
    const Seconds likely = model.time(asked)->time + cluster.collective_overhead;
    const Path path = collective::path_of(cluster, asked.groups);
    const double bias = collective::nccl_prior(path, static_cast<double>(asked.bytes())).bias;
    const Seconds predicted = likely / std::exp(bias);
    unit.rows[class_of(points[p].size)].push_back(
        {static_cast<double>(points[p].size), std::log(points[p].time / predicted)});
  }
}

double median_error(const std::vector<std::pair<double, double>>& rows) {
  std::vector<double> errors;
  for (const auto& [bytes, error] : rows) errors.push_back(error);
  return median(std::move(errors));
}

// Returns medians of true / predicted that a survey found on public logs of other networks of these
// kinds (2026), for middle and large payloads. Its ratios for small ones are relative to a model
// without the links' latencies. Nodes of one GPU and nodes joined by PCIe are one kind here.
ByPayload surveyed(const Path& path) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto ratios = [](double middle, double large) {
    return ByPayload{kNone, std::log(middle), std::log(large), std::log(large)};
  };
  if (!path.across && path.nvlink) return ratios(1.0, 1.3);
  if (path.across && path.fabric == Fabric::kEfa) return ratios(2.9, 1.2);
  if (path.across && path.fabric == Fabric::kSlingshot) return ratios(4.7, 1.5);
  if (path.across && path.fabric == Fabric::kRdma && path.nvlink) return ratios(1.2, 1.0);
  if (path.across && path.fabric == Fabric::kRdma) {
    return ratios(std::sqrt(1.6 * 1.8), std::sqrt(1.7 * 2.2));
  }
  return {kNone, kNone, kNone, kNone};
}

// Estimates from all sites but one.
struct Learnt {
  const std::vector<PriorUnit>& units;
  std::string left_out;

  double pooled(const Path& path, std::size_t c) const {
    std::vector<double> medians;
    for (const PriorUnit& unit : units) {
      const bool counts = unit.site != left_out && unit.path.across == path.across;
      if (counts && !unit.rows[c].empty()) medians.push_back(median_error(unit.rows[c]));
    }
    return medians.empty() ? 0 : median(std::move(medians));
  }

  // Returns the mean of log(measured / predicted) over the kind's sites, the survey (twice), and
  // the pool (once).
  double bias(const Path& path, std::size_t c) const {
    double sum = pooled(path, c);
    double weight = 1;
    for (const PriorUnit& unit : units) {
      if (unit.site == left_out || !same_kind(unit.path, path) || unit.rows[c].empty()) continue;
      sum += median_error(unit.rows[c]);
      weight += 1;
    }
    if (const double found = surveyed(path)[c]; !std::isnan(found)) {
      sum += 2 * found;
      weight += 2;
    }
    return sum / weight;
  }

  ByPayload biases(const Path& path) const {
    ByPayload all{};
    for (std::size_t c = 0; c < all.size(); ++c) all[c] = bias(path, c);
    return all;
  }
};

// Interpolates linearly over the logarithm of the payload, as in library.h.
double between(const ByPayload& values, double bytes) {
  std::size_t c = 0;
  while (c + 2 < kPayloads.size() && bytes >= kPayloads[c + 1]) ++c;
  const double place = std::clamp(
      std::log(bytes / kPayloads[c]) / std::log(kPayloads[c + 1] / kPayloads[c]), 0.0, 1.0);
  return values[c] + place * (values[c + 1] - values[c]);
}

double mean_square(const std::vector<std::pair<double, double>>& rows, const ByPayload& bias) {
  double sum = 0;
  for (const auto& [bytes, error] : rows) {
    const double left = error - between(bias, bytes);
    sum += left * left;
  }
  return sum / static_cast<double>(rows.size());
}

// Returns the root of a mean of squared errors: one for each site of the kind, by a fit without it,
// and one for the mean of all kinds.
double spread_of(const std::vector<PriorUnit>& units, const Path& path, std::size_t c) {
  double own = 0, all = 0, count = 0, counted = 0;
  for (const PriorUnit& unit : units) {
    if (unit.rows[c].empty() || unit.path.across != path.across) continue;
    const double square = mean_square(unit.rows[c], Learnt{units, unit.site}.biases(unit.path));
    all += square;
    counted += 1;
    if (!same_kind(unit.path, path)) continue;
    own += square;
    count += 1;
  }
  return std::sqrt((own + all / counted) / (count + 1));
}

std::string name_of(const Path& path) {
  if (!path.across) return path.nvlink ? "NVLink inside a node" : "PCIe inside a node";
  if (path.fabric == Fabric::kRdma && path.nvlink) return "RDMA, nodes with NVLink";
  static const std::map<Fabric, std::string> names = {
      {Fabric::kRdma, "RDMA, one GPU a node or PCIe"},
      {Fabric::kEfa, "EFA"},
      {Fabric::kSlingshot, "Slingshot"},
      {Fabric::kTcp, "TCP"},
      {Fabric::kTcpx, "GPUDirect over TCP"},
      {Fabric::kRccl, "RCCL"},
      {Fabric::kUnknown, "unnamed"}};
  return names.at(path.fabric);
}

// Adds a site's rows, predicted by a fit without them.
void add_forecast(measure::FidelityTable& table, const PriorUnit& unit, const PriorFit& fit) {
  for (const auto& rows : unit.rows) {
    for (const auto& [bytes, given] : rows) {
      const double error = given - between(fit.bias, bytes);
      const double half = measure::kHeldDeviations * between(fit.spread, bytes);
      table.predicted.push_back(100 * std::expm1(-error));
      table.intervals.push_back({100 * std::expm1(half), std::fabs(error) <= half});
    }
  }
}

}  // namespace

std::vector<PriorUnit> prior_units(const std::string& list) {
  const auto [machines, folder] = read_machines(list);
  std::vector<std::filesystem::path> logs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    logs.push_back(entry.path());
  }
  std::ranges::sort(logs);
  std::vector<PriorUnit> units;
  for (const auto& log : logs) {
    const std::string file = log.filename().string();
    const Machine* machine = machine_of(machines, file);
    const bool forced = file.find("_ring_") != file.npos || file.find("_tree_") != file.npos;
    if (machine == nullptr || forced || machine->forced) continue;
    for (const cost::MeasuredTable& table : read_nccl_log(log.string())) {
      if (!table.kind || table.nodes == 0 || table.ranks < 2) continue;
      const Cluster cluster = cluster_of(*machine, table.nodes, table.gpus_per_node);
      Path path = collective::path_of(cluster, collective::world_group(cluster.ranks()));
      if (!path.across) path.fabric = Fabric::kUnknown;
      if (path.across && path.fabric != Fabric::kRdma) path.nvlink = false;
      auto unit = std::ranges::find_if(units, [&](const PriorUnit& known) {
        return known.site == machine->site && same_kind(known.path, path);
      });
      if (unit == units.end()) unit = units.insert(units.end(), {machine->site, path, {}});
      add_rows(*unit, table, cluster);
    }
  }
  return units;
}

PriorFit prior_fit(const std::vector<PriorUnit>& units, const Path& path) {
  PriorFit fit{Learnt{units, ""}.biases(path), {}};
  for (std::size_t c = 0; c < kPayloads.size(); ++c) fit.spread[c] = spread_of(units, path, c);
  return fit;
}

PriorFit unnamed_fit(const std::vector<PriorUnit>& units) {
  const auto pooled = [&](const std::string& left_out) {
    ByPayload all{};
    for (std::size_t c = 0; c < all.size(); ++c) all[c] = Learnt{units, left_out}.pooled({}, c);
    return all;
  };
  PriorFit fit{pooled(""), {}};
  for (std::size_t c = 0; c < kPayloads.size(); ++c) {
    double sum = 0, count = 0;
    for (const PriorUnit& unit : units) {
      if (!unit.path.across || unit.rows[c].empty()) continue;
      sum += mean_square(unit.rows[c], pooled(unit.site));
      count += 1;
    }
    fit.spread[c] = std::sqrt(sum / count);
  }
  return fit;
}

std::vector<measure::FidelityTable> prior_fidelity(const std::string& list) {
  const std::vector<PriorUnit> units = prior_units(list);
  std::vector<measure::FidelityTable> tables;
  std::map<std::string, int> sites;
  for (const PriorUnit& unit : units) {
    std::vector<PriorUnit> others;
    std::ranges::copy_if(units, std::back_inserter(others),
                         [&](const PriorUnit& other) { return other.site != unit.site; });
    const std::string name = name_of(unit.path);
    auto table = std::ranges::find(tables, name, &measure::FidelityTable::name);
    if (table == tables.end()) {
      table = tables.insert(tables.end(), measure::FidelityTable{});
      table->name = name;
      table->file = list;
      table->by_prior = true;
    }
    ++sites[name];
    add_forecast(*table, unit, prior_fit(others, unit.path));
  }
  std::ranges::sort(tables, {}, &measure::FidelityTable::name);
  for (auto& table : tables) {
    const int count = sites[table.name];
    table.name += ", " + std::to_string(count) + (count == 1 ? " site" : " sites");
  }
  return tables;
}

}  // namespace syncline::calibrate
