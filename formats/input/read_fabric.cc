// Reads "fabric" as an object: links and routes between the nodes.
#include "formats/input/read_fabric.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/fabric/kinds.h"
#include "formats/fabric/files.h"
#include "formats/json/reader.h"
#include "formats/text/files.h"
#include "formats/text/visible.h"

namespace syncline::input {
namespace {

using fabric::kMaxLevels;
using fabric::kMaxNodes;
constexpr std::int64_t kMaxPorts = 4096;  // of a switch

// Ports that connect nodes to the fabric.
struct Ports {
  int nodes = 1;
  int nics = 1;
  BytesPerSecond node = 0;
  double efficiency = 1;  // share of the rated bandwidth
  BytesPerSecond nic() const { return node / nics; }
};

std::vector<int> read_numbers(Reader& reader, const char* key, std::int64_t most) {
  std::vector<int> numbers;
  const Json& list = reader.array(key);
  for (const Json& each : list) {
    const std::string place = reader.place_of(key) + "." + std::to_string(numbers.size());
    numbers.push_back(static_cast<int>(checked_integer(each, 1, most, reader.file(), place)));
  }
  if (numbers.empty() || numbers.size() > kMaxLevels) {
    reader.fail(key, "expected 1 to " + std::to_string(kMaxLevels) + " numbers");
  }
  return numbers;
}

void require_nodes(const Reader& reader, const char* key, int joined, int nodes) {
  if (joined >= nodes) return;
  reader.fail(key, "it joins " + std::to_string(joined) + " nodes, fewer than the cluster's " +
                       std::to_string(nodes));
}

// Builds a fabric; refuses an impossible shape at its key.
template <typename Shape>
fabric::Topology built(const Reader& reader, const char* key, Shape shape) {
  try {
    return shape();
  } catch (const InputError& error) {
    reader.fail(key, error.what());
  }
}

// Reads the bandwidths of cables by level; one number is for all.
std::vector<BytesPerSecond> read_speeds(Reader& reader, std::size_t levels, const Ports& ports,
                                        BytesPerSecond usual) {
  std::vector<BytesPerSecond> speeds(levels, usual);
  const Json* given = reader.find("link_gbps");
  if (given == nullptr) return speeds;
  if (given->is_array() && given->size() != levels) {
    reader.fail("link_gbps",
                "expected a number, or one for each of the " + std::to_string(levels) + " levels");
  }
  for (std::size_t level = 0; level < levels; ++level) {
    speeds[level] = checked_number(given->is_array() ? (*given)[level] : *given, {0, 1e7, true},
                                   reader.file(), reader.place_of("link_gbps")) *
                    kGigabitPerSecond * ports.efficiency;
  }
  return speeds;
}

fabric::Topology read_fat_tree(Reader& reader, const Ports& ports) {
  fabric::FatTree tree;
  tree.down = read_numbers(reader, "down", kMaxNodes);
  tree.up = read_numbers(reader, "up", kMaxPorts);
  tree.cables.assign(tree.down.size(), 1);
  if (reader.has("links")) tree.cables = read_numbers(reader, "links", kMaxPorts);
  if (tree.up.size() != tree.down.size() || tree.cables.size() != tree.down.size()) {
    reader.fail("up", "expected as many numbers as in 'down', and in 'links'");
  }
  if (tree.up[0] != 1 || tree.cables[0] != 1) {
    reader.fail("up", "a node is plugged into one leaf here; kind rail has several");
  }
  tree.speeds = read_speeds(reader, tree.down.size(), ports, ports.node);
  return built(reader, "down", [&] { return fabric::fat_tree(tree); });
}

fabric::Topology read_leaf_spine(Reader& reader, bool rails, const Ports& ports) {
  fabric::LeafSpine shape;
  shape.nodes = static_cast<int>(reader.integer_or("nodes", ports.nodes, 1, kMaxNodes));
  require_nodes(reader, "nodes", shape.nodes, ports.nodes);
  shape.nodes_per_leaf = static_cast<int>(reader.integer("nodes_per_leaf", 1, kMaxNodes));
  if (rails) {
    shape.rails = ports.nics;
    shape.tors = static_cast<int>(reader.integer_or("tors", 1, 1, 2));
    shape.planes = static_cast<int>(reader.integer_or("planes", 1, 1, 2));
    if (shape.planes > shape.tors) {
      reader.fail("planes", "two planes need two leaves a NIC (tors: 2)");
    }
  }
  const double below = shape.nodes_per_leaf * ports.node / (shape.rails * shape.tors);
  const BytesPerSecond usual = ports.nic() / shape.tors;
  shape.speed = read_speeds(reader, 1, ports, usual).front();
  shape.cables = static_cast<int>(reader.integer_or("links", 1, 1, kMaxPorts));
  if (reader.has("oversubscription") == reader.has("spines")) {
    reader.fail("spines", "expected 'spines' or 'oversubscription', one of both");
  }
  if (reader.has("spines")) {
    shape.spines = static_cast<int>(reader.integer("spines", 1, kMaxPorts));
  } else {
    // The nearest number of spines, and the bandwidth that makes the ratio exact.
    const double above = below / reader.number("oversubscription", {1e-3, 1e6});
    shape.spines = static_cast<int>(
        std::clamp(std::round(above / (shape.speed * shape.cables)), 1.0, 1.0 * kMaxPorts));
    shape.speed = above / (shape.spines * shape.cables);
  }
  return built(reader, "nodes_per_leaf", [&] { return fabric::leaf_spine(shape); });
}

fabric::Topology read_dragonfly(Reader& reader, const Ports& ports) {
  fabric::Dragonfly shape;
  shape.groups = static_cast<int>(reader.integer("groups", 1, kMaxPorts));
  shape.switches = static_cast<int>(reader.integer("switches", 1, kMaxPorts));
  shape.hosts = static_cast<int>(reader.integer("hosts", 1, kMaxPorts));
  shape.cables = static_cast<int>(reader.integer_or("links", 1, 1, kMaxPorts));
  shape.apart = static_cast<int>(reader.integer_or("switches_per_node", 1, 1, kMaxPorts));
  if (ports.nics % shape.apart != 0 || shape.switches % shape.apart != 0) {
    reader.fail("switches_per_node",
                "found " + std::to_string(shape.apart) + ", expected a divisor of the " +
                    std::to_string(ports.nics) + " NICs of a node and of the " +
                    std::to_string(shape.switches) + " switches of a group");
  }
  const auto speeds = read_speeds(reader, 2, ports, ports.nic());
  shape.local = speeds[0];
  shape.global = speeds[1];
  return built(reader, "groups", [&] { return fabric::dragonfly(shape); });
}

fabric::Topology read_torus(Reader& reader, const Ports& ports) {
  const std::vector<int> sizes = read_numbers(reader, "sizes", kMaxPorts);
  const BytesPerSecond speed = read_speeds(reader, 1, ports, ports.nic()).front();
  return built(reader, "sizes", [&] { return fabric::torus(sizes, speed); });
}

// Reads a file of an operator's own tools, relative to the scenario's folder.
fabric::Topology read_tools_file(Reader& reader, const std::string& kind, const Ports& ports) {
  const bool slurm = kind == "slurm";
  const std::string file = reader.text("file");
  const auto folder = std::filesystem::path(reader.file()).parent_path();
  const double oversubscription =
      slurm ? reader.number_or("oversubscription", 1, {1e-3, 1e6}) : 1.0;
  try {
    const std::string text = read_text_file((folder / file).string(),
                                            slurm               ? "Slurm's topology.conf"
                                            : kind == "simgrid" ? "a platform file of SimGrid's"
                                                                : "the output of ibnetdiscover");
    fabric::Topology topology =
        kind == "simgrid" ? fabric::simgrid_fabric(file, text, ports.efficiency)
        : slurm           ? fabric::slurm_fabric(text, ports.node, oversubscription)
                : fabric::ibnetdiscover_fabric(text, ports.nics, ports.node, ports.efficiency);
    fabric::expect_buildable({1.0 * topology.all_nodes(),
                              static_cast<double>(topology.switches.size()),
                              static_cast<double>(topology.links.size()) / 2});
    return topology;
  } catch (const InputError& error) {
    reader.fail("file", file + ": " + error.what());
  }
}

// Returns the nodes of a list: numbers, or names if the fabric has them.
std::vector<int> listed_nodes(const Reader& reader, const Json& list,
                              const fabric::Topology& topology) {
  const std::vector<std::string>& names = topology.names;
  const int all = topology.all_nodes();
  std::unordered_map<std::string_view, int> numbers;
  for (const std::string& name : names) numbers.emplace(name, static_cast<int>(numbers.size()));
  std::vector<int> nodes;
  for (const Json& each : list) {
    if (!each.is_string() || names.empty()) {
      nodes.push_back(static_cast<int>(
          checked_integer(each, 0, all - 1, reader.file(), reader.place_of("placement"))));
      continue;
    }
    const auto name = each.get<std::string>();
    const auto known = numbers.find(name);
    if (known == numbers.end()) {
      reader.fail("placement",
                  "no node is called '" + shorten_text(name) + "'" + did_you_mean(name, names));
    }
    nodes.push_back(known->second);
  }
  return nodes;
}

// Returns a list of names in Slurm's form, "gpu[01-04]".
Json slurm_list(const Reader& reader, const std::string& words) {
  try {
    return fabric::hosts_listed(words);
  } catch (const InputError& error) {
    reader.fail("placement", error.what());
  }
}

// Refuses a job with nodes that no way joins. Trees that never fill are not walked, so a message
// between two of them would cost nothing.
void expect_joined(const Reader& reader, const fabric::Topology& topology) {
  std::vector<int> part(topology.switches.size());  // by switch: another of its part, or itself
  std::iota(part.begin(), part.end(), 0);
  const auto part_of = [&](int each) {
    while (part[fabric::at(each)] != each) {
      each = part[fabric::at(each)] = part[fabric::at(part[fabric::at(each)])];
    }
    return each;
  };
  for (const fabric::FabricLink& link : topology.links) {
    part[fabric::at(part_of(link.from))] = part_of(link.to);
  }
  const auto host_part = [&](int node, int lane) {
    return part_of(topology.plugs[fabric::at(node * topology.lanes + lane)]);
  };
  const auto name = [&](int node) {
    return topology.names.empty() ? std::to_string(node) : topology.names[fabric::at(node)];
  };
  for (const int node : topology.nodes) {
    for (int lane = 0; lane < topology.lanes; ++lane) {
      const int first = topology.nodes.front();
      if (host_part(node, lane) == host_part(first, lane)) continue;
      reader.fail("placement", "no switch joins nodes " + name(first) + " and " + name(node) +
                                   ": list nodes that one does, or give the switch above both");
    }
  }
}

// Places the job on nodes that are not `taken`. Random choices use the fabric's seed. Returns the
// nodes of measurements: adjacent ones, unless the user lists the job's own.
std::vector<int> read_placement(Reader& reader, int nodes, const std::vector<int>& taken,
                                fabric::Topology& topology) {
  using fabric::Placement;
  const std::map<std::string, Placement> kWords{{"packed", Placement::kPacked},
                                                {"spread", Placement::kSpread},
                                                {"scattered", Placement::kScattered}};
  const Json* given = reader.find("placement");
  const bool host_list = given != nullptr && given->is_string() && !topology.names.empty() &&
                         !kWords.contains(given->get<std::string>());
  if (!host_list && (given == nullptr || !given->is_array())) {
    const std::string word =
        reader.word_or("placement", "packed", {"packed", "spread", "scattered"});
    topology.nodes = fabric::place_nodes(topology, nodes, kWords.at(word), topology.seed, taken);
    expect_joined(reader, topology);
    return fabric::place_nodes(topology, nodes, Placement::kPacked, topology.seed, taken);
  }
  const Json list = host_list ? slurm_list(reader, given->get<std::string>()) : *given;
  topology.nodes = listed_nodes(reader, list, topology);
  const std::set<int> distinct(topology.nodes.begin(), topology.nodes.end());
  if (static_cast<int>(distinct.size()) != nodes || topology.nodes.size() != distinct.size()) {
    reader.fail("placement", "expected " + std::to_string(nodes) + " different nodes, found " +
                                 std::to_string(distinct.size()) + " in a list of " +
                                 std::to_string(topology.nodes.size()));
  }
  for (const int node : taken) {
    if (!distinct.contains(node)) continue;
    reader.fail("placement", "node " + std::to_string(node) + " is another job's");
  }
  expect_joined(reader, topology);
  return topology.nodes;
}

// Reads the bandwidth left by failed or degraded links and other jobs, by link name.
void read_shares(Reader& reader, fabric::Topology& topology) {
  const auto expect_found = [&](const Reader& where, const std::string& key,
                                const std::string& name, int count) {
    if (count > 0) return;
    std::vector<std::string> sorts;
    for (const fabric::FabricLink& link : topology.links) sorts.push_back(link.sort);
    std::sort(sorts.begin(), sorts.end());
    sorts.erase(std::unique(sorts.begin(), sorts.end()), sorts.end());
    std::string known;
    for (const std::string& sort : sorts) known += (known.empty() ? "" : ", ") + sort;
    const fabric::FabricLink* first = topology.links.empty() ? nullptr : &topology.links.front();
    where.fail(key, "no link is called '" + name + "'; known: " + known +
                        (first == nullptr ? "" : ", or one by name: " + topology.name(*first)));
  };
  std::vector<std::pair<std::string, double>> shares;
  std::vector<Reader> degraded = reader.objects("degraded");
  for (Reader& each : degraded) {
    shares.emplace_back(each.text("link"), each.number("share", {0, 1}));
    each.finish();
  }
  std::vector<int> counts = fabric::weaken(topology, shares);
  for (std::size_t i = 0; i < degraded.size(); ++i) {
    expect_found(degraded[i], "link", shares[i].first, counts[i]);
  }
  if (!reader.has("load")) return;
  const Reader load = reader.object("load");
  shares.clear();
  for (const auto& [name, share] : load.json().items()) {
    shares.emplace_back(name,
                        1 - checked_number(share, {0, 0.999}, load.file(), load.place_of(name)));
  }
  counts = fabric::weaken(topology, shares);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    expect_found(load, shares[i].first, shares[i].first, counts[i]);
  }
}

// Replaces "name" by its keys; other keys replace or add to them.
Json with_known_fabric(const Reader& reader) {
  const Json& given = reader.json();
  if (!given.contains("name")) return given;
  std::vector<std::string> names;
  for (const auto& known : fabric::known_fabrics()) names.emplace_back(known.name);
  const std::string name =
      checked_word(given["name"], names, reader.file(), reader.place_of("name"));
  Json whole = given;
  for (const auto& known : fabric::known_fabrics()) {
    if (known.name != name) continue;
    const Json keys = Json::parse(known.keys);
    for (const auto& [key, value] : keys.items()) {
      // Each of the two keys replaces the other.
      const bool replaced = (key == "spines" && given.contains("oversubscription")) ||
                            (key == "oversubscription" && given.contains("spines"));
      if (!replaced && !whole.contains(key)) whole[key] = value;
    }
  }
  return whole;
}

}  // namespace

std::shared_ptr<const fabric::Topology> read_topology(Reader named, const Cluster& cluster,
                                                      const Tier& inter) {
  const Json whole = with_known_fabric(named);
  Reader reader(whole, named.file(), named.place(), named.mistakes());
  for (const char* key : {"name", "transport"}) reader.has(key);
  const Ports ports{cluster.nodes, inter.nics, inter.bandwidth, inter.efficiency};
  const std::string kind = reader.require("kind").is_string()
                               ? reader.word_or("kind", "",
                                                {"fat_tree", "leaf_spine", "rail", "dragonfly",
                                                 "torus", "slurm", "ibnetdiscover", "simgrid"})
                               : reader.text("kind");
  fabric::Topology topology = kind == "fat_tree"    ? read_fat_tree(reader, ports)
                              : kind == "dragonfly" ? read_dragonfly(reader, ports)
                              : kind == "torus"     ? read_torus(reader, ports)
                              : kind == "slurm" || kind == "ibnetdiscover" || kind == "simgrid"
                                  ? read_tools_file(reader, kind, ports)
                                  : read_leaf_spine(reader, kind == "rail", ports);
  require_nodes(reader, "kind", topology.all_nodes(), cluster.nodes);
  topology.seed = static_cast<std::uint64_t>(reader.integer_or("seed", 1, 0, 1LL << 53));
  const std::vector<int> measured = read_placement(reader, cluster.nodes, {}, topology);
  topology.hop = reader.number_or("hop_us", 0, {0, 1e6}) * kMicrosecond;
  topology.hashed = reader.word_or("routing", "even", {"even", "ecmp"}) == "ecmp";
  // Each NIC sends through its own connections.
  const int flows = static_cast<int>(reader.integer_or("flows", 1, 1, 64));
  const int lanes = std::max(topology.lanes, topology.hashed ? ports.nics : 1);
  topology.parts = lanes * flows * (topology.hashed ? 1 : fabric::ways_at_a_tie(topology));
  topology.given = named.json().dump();
  const auto finished = [](const fabric::Topology& each) {
    return std::make_shared<fabric::Topology>(each.hashed ? each : fabric::merge_pools(each));
  };
  fabric::Topology before = topology;
  before.nodes = measured;
  read_shares(reader, topology);
  reader.finish();
  const auto now = finished(topology);
  if (now->nodes != measured || reader.has("degraded") || reader.has("load")) {
    now->as_measured = finished(before);
  }
  return now;
}

void join_fabric(Reader& entry, const Cluster& first, const std::vector<int>& taken,
                 Cluster& cluster) {
  auto topology = std::make_shared<fabric::Topology>(*first.topology);
  if (cluster.tiers.size() > (cluster.gpus_per_node > 1 ? 2 : 1)) {
    entry.fail("scenario", "its cluster has levels above the nodes, where the fabric is");
  }
  const int nics = cluster.tiers.empty() ? 1 : cluster.tiers.back().nics;
  const int flows =  // of each NIC, and paths of each
      topology->parts / std::max(topology->lanes, topology->hashed ? first.tiers.back().nics : 1);
  if (topology->lanes > 1 && nics != first.tiers.back().nics) {
    entry.fail("scenario", "a node of it has " + std::to_string(nics) +
                               " NICs, one on this fabric " +
                               std::to_string(first.tiers.back().nics));
  }
  topology->parts = std::max(topology->lanes, topology->hashed ? nics : 1) * flows;
  const int left = topology->all_nodes() - static_cast<int>(taken.size());
  if (left < cluster.nodes) {
    entry.fail("scenario", "it has " + std::to_string(cluster.nodes) +
                               " nodes, and those before it leave " + std::to_string(left) +
                               " of the fabric's " + std::to_string(topology->all_nodes()));
  }
  auto whole = std::make_shared<fabric::Topology>(
      first.topology->as_measured == nullptr ? *first.topology : *first.topology->as_measured);
  whole->nodes = read_placement(entry, cluster.nodes, taken, *topology);
  whole->parts = topology->parts;
  topology->as_measured = std::move(whole);
  cluster.topology = std::move(topology);
}

}  // namespace syncline::input
