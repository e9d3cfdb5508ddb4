#include "imports/cluster_of.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "catalogue/hardware/device.h"
#include "core/base/error.h"
#include "core/base/statistics.h"
#include "studies/calibrate/calibration.h"

namespace syncline::job {
namespace {

struct Shape {
  int nodes = 1;
  int gpus = 1;
};

std::string shape_text(const Shape& shape) {
  return std::to_string(shape.nodes) + (shape.nodes == 1 ? " node" : " nodes") + " x " +
         std::to_string(shape.gpus) + (shape.gpus == 1 ? " GPU" : " GPUs");
}

// Returns nodes and GPUs by filling hosts. `usual`: GPUs of a node of that kind, 0: unknown.
Shape shape_of(const Observed& observed, int usual, std::vector<std::string>& assumed) {
  const int ranks = std::max(1, observed.world_size);
  int a_node = observed.devices_a_node > 0 ? observed.devices_a_node : usual;
  if (a_node <= 0) a_node = 1;
  Shape shape{1, ranks};
  if (ranks > a_node) {
    while (ranks % a_node != 0) --a_node;
    shape = {ranks / a_node, a_node};
  }
  if (ranks > 1) {
    assumed.push_back(std::to_string(ranks) + " ranks on " + shape_text(shape) +
                      (observed.devices_a_node > 0
                           ? ": the host of the first rank shows " +
                                 std::to_string(observed.devices_a_node) + " devices"
                           : ""));
  }
  return shape;
}

// Returns the usual node with that device, if possible with the host's number of it.
const hardware::KnownNode* node_of(const hardware::KnownDevice& device, const Observed& observed) {
  for (const hardware::KnownNode& node : hardware::nodes()) {
    if (node.device == device.name && node.gpus == observed.devices_a_node) return &node;
  }
  return hardware::usual_node_of(device);
}

// Returns assumed links of an unknown machine: PCIe 4.0 inside, 100 Gbit/s between nodes.
Json unknown_links(const Shape& shape, std::vector<std::string>& assumed) {
  constexpr double kPcieGbps = 200;
  constexpr double kNicGbps = 100;
  Json cluster = Json::object();
  if (shape.gpus > 1) cluster["intra"] = {{"latency_us", 5}, {"bandwidth_gbps", kPcieGbps}};
  if (shape.nodes > 1) cluster["inter"] = {{"latency_us", 15}, {"bandwidth_gbps", kNicGbps}};
  assumed.push_back(
      "links: 200 Gbit/s inside a node (PCIe 4.0) and 100 Gbit/s between nodes, since nothing "
      "tells; give the cluster with --cluster FILE");
  return cluster;
}

// Adds measured links, by the job's collectives that were read from all of their ranks.
void measure_links(const Observed& observed, Json& cluster, std::vector<std::string>& assumed) {
  const auto tables = tables_of(observed);
  if (tables.empty()) return;
  try {
    const auto calibration =
        calibrate::calibration_of(tables, {}, cluster.at("name").get<std::string>());
    for (const char* key : {"intra", "inter", "calibration"}) {
      if (calibration.cluster.contains(key)) cluster[key] = calibration.cluster.at(key);
    }
    std::size_t rows = 0;
    for (const auto& table : tables) rows += table.rows.size();
    assumed.push_back("collectives take what they took here, the least over the ranks (" +
                      std::to_string(rows) + (rows == 1 ? " size" : " sizes") +
                      "); for other sizes measure the network (syncline calibrate)");
  } catch (const InputError& error) {
    assumed.push_back(
        std::string("the collectives' own times give no cost model of the network: ") +
        error.what());
  }
}

// Returns the placement of a group with `ranks` ranks on the job's nodes, if it is known.
std::optional<Shape> lie_of(const Observed& observed, int ranks) {
  const int devices = observed.devices_a_node;
  if (devices <= 0 || ranks < 2) return std::nullopt;
  if (observed.world_size <= devices) return Shape{1, ranks};
  if (ranks != observed.world_size || ranks % devices != 0) return std::nullopt;
  return Shape{ranks / devices, devices};
}

// Times by size, for the kind and the ranks of a table.
using Times = std::map<std::pair<std::string, int>, std::map<Bytes, std::vector<Seconds>>>;

// Returns true if every rank of the exchange's group was read, the latest one among them.
bool is_complete(const Observed& observed, const ObservedExchange& exchange, int ranks) {
  if (exchange.in < 0) return static_cast<std::size_t>(ranks) <= observed.ranks.size();
  const RankGroup& group = observed.groups[static_cast<std::size_t>(exchange.in)];
  return !group.ranks.empty() && std::ranges::all_of(group.ranks, [&](int rank) {
    return std::ranges::find(observed.ranks, rank, &Rank::rank) != observed.ranks.end();
  });
}

Times times_of(const Observed& observed) {
  Times times;
  for (const Step& step : observed.ranks.front().steps) {
    for (const ObservedExchange& exchange : step.exchanges) {
      const int ranks = exchange.ranks > 0 ? exchange.ranks : observed.world_size;
      if (!is_complete(observed, exchange, ranks) || exchange.time <= 0 || exchange.elements <= 0)
        continue;
      times[{exchange.kind, ranks}][exchange.bytes()].push_back(exchange.time);
    }
  }
  return times;
}

}  // namespace

std::vector<cost::MeasuredTable> tables_of(const Observed& observed) {
  if (observed.ranks.size() < 2) return {};
  std::vector<cost::MeasuredTable> tables;
  for (const auto& [shape, sizes] : times_of(observed)) {
    const auto& [name, ranks] = shape;
    const auto kind = cost::kind_named(name);
    const auto lie = lie_of(observed, ranks);
    if (!kind || !lie) continue;
    cost::MeasuredTable& table = tables.emplace_back();
    table.source = observed.file;
    table.line = 1;
    table.test = name;
    table.kind = kind;
    table.ranks = ranks;
    table.nodes = lie->nodes;
    table.gpus_per_node = lie->gpus;
    table.nccl_version = observed.nccl_version;
    table.device = observed.device;
    for (const auto& [bytes, times] : sizes) {
      cost::MeasuredRow& row = table.rows.emplace_back();
      row.size = bytes;
      row.out_of_place = median(times);
      row.spread = spread_of_median(times);
    }
  }
  return tables;
}

Json cluster_of(const Observed& observed, std::vector<std::string>& assumed) {
  const hardware::KnownDevice* device = hardware::recognise_device(observed.device);
  const hardware::KnownNode* node = device != nullptr ? node_of(*device, observed) : nullptr;
  const Shape shape = shape_of(observed, node != nullptr ? node->gpus : 0, assumed);
  Json cluster{{"name", shape_text(shape)}};
  if (!observed.device.empty()) {
    cluster["name"] = cluster["name"].get<std::string>() + ", " + observed.device;
  }
  cluster["nodes"] = shape.nodes;
  cluster["gpus_per_node"] = shape.gpus;
  if (node != nullptr) {
    cluster["node"] = node->name;
    if (observed.world_size > 1) {
      assumed.push_back("links as in " + std::string(node->summary) + " (" +
                        std::string(node->name) +
                        "), the usual node of such a device; measure them (syncline calibrate) or "
                        "give the cluster with --cluster FILE");
    }
  } else {
    cluster.update(unknown_links(shape, assumed));
    if (device != nullptr) cluster["device"] = device->name;
  }
  measure_links(observed, cluster, assumed);
  if (observed.backend == "gloo") cluster["library"] = "gloo";
  if (observed.backend == "nccl" && device == nullptr) cluster["library"] = "nccl";
  return cluster;
}

}  // namespace syncline::job
