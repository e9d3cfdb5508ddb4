#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/fabric/kinds.h"
#include "formats/fabric/files.h"
#include "formats/json/text.h"
#include "formats/text/visible.h"

namespace syncline::fabric {
namespace {

const Json& attributes(const Json& element) { return element.at("attributes"); }

std::string text_of(const Json& element, const char* key, const std::string& otherwise = "") {
  return attributes(element).value(key, otherwise);
}

std::string required(const Json& element, const char* key) {
  if (attributes(element).contains(key)) return text_of(element, key);
  throw InputError("<" + element.at("tag").get<std::string>() + "> without '" + key + "'");
}

// Returns bytes/s for "10Gbps", "1.25GBps", "125MiBps"; without a unit it is bytes/s.
BytesPerSecond rate_of(const std::string& text) {
  char* rest = nullptr;
  const double number = std::strtod(text.c_str(), &rest);
  const std::string unit(rest);
  constexpr std::string_view kSteps = "kMGT";
  double scale = 1;
  std::size_t at = 0;
  if (!unit.empty() && kSteps.find(unit[0]) != std::string_view::npos) {
    const bool binary = unit.size() > 1 && unit[1] == 'i';
    const auto steps = static_cast<double>(kSteps.find(unit[0]) + 1);
    scale = std::pow(binary ? 1024.0 : 1000.0, steps);
    at = binary ? 2 : 1;
  }
  const std::string base = unit.substr(at);
  if (base == "bps") scale /= 8;
  const bool known = base == "bps" || base == "Bps" || unit.empty();
  // No cable is slower or faster than this; later divisions stay finite.
  constexpr BytesPerSecond kSlowest = 1, kFastest = 1e18;
  const BytesPerSecond rate = number * scale;
  if (rest == text.c_str() || !known || !(rate >= kSlowest && rate <= kFastest)) {
    throw InputError("bandwidth '" + shorten_text(text) +
                     "': expected one such as 10Gbps or 1.25GBps");
  }
  return rate;
}

void expect_duplex(const Json& element, const char* key, const std::string& otherwise) {
  const std::string policy = text_of(element, key, otherwise);
  if (policy == "SPLITDUPLEX") return;
  if (policy == "FATPIPE") {
    throw InputError("link '" + text_of(element, "id") +
                     "' is a FATPIPE, which nothing fills: no link of a fabric here is one");
  }
  throw InputError("link '" + text_of(element, "id") + "' is " + policy +
                   ": both directions share it, which no link of a fabric here does; say "
                   "SPLITDUPLEX where it is a cable");
}

// Returns an integer, with blanks around it allowed.
int parameter_in(std::string_view word, const std::string& all) {
  word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
  word = word.substr(0, word.find_last_not_of(' ') + 1);
  int value = 0;
  const char* end = word.data() + word.size();
  const auto [behind, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || behind != end || value < 1 || value > kMaxNodes) {
    throw InputError("topo_parameters '" + shorten_text(all) + "': expected whole numbers above 0");
  }
  return value;
}

// Returns "3,4;3,2" as a list of lists.
std::vector<std::vector<int>> parameters_of(const Json& cluster) {
  const std::string text = required(cluster, "topo_parameters");
  std::vector<std::vector<int>> lists(1);
  std::string_view rest = text;
  while (true) {
    const std::size_t size = std::min(rest.find_first_of(";,"), rest.size());
    lists.back().push_back(parameter_in(rest.substr(0, size), text));
    if (size == rest.size()) return lists;
    if (rest[size] == ';') lists.emplace_back();
    rest.remove_prefix(size + 1);
  }
}

// Returns chassis with all-to-all routers, routers of one place joined across the chassis, and
// links between all pairs of groups. Source: SimGrid's DragonflyZone.
Topology dragonfly_of(const std::vector<std::vector<int>>& lists, BytesPerSecond rate) {
  if (lists.size() != 4 || lists[0].size() != 2 || lists[1].size() != 2 || lists[2].size() != 2 ||
      lists[3].size() != 1) {
    throw InputError(
        "topo_parameters of a DRAGONFLY: expected groups,links;chassis,links;"
        "routers,links;nodes");
  }
  const int groups = lists[0][0], chassis = lists[1][0], routers = lists[2][0];
  const double all = 1.0 * groups * chassis * routers;
  expect_buildable(
      {all * lists[3][0], all,
       all * (routers - 1) / 2 + all * (chassis - 1) / 2 + 0.5 * groups * (groups - 1)});
  const int of_group = chassis * routers;
  if (groups > of_group) {
    throw InputError("topo_parameters: more groups than routers of one, whose links they share");
  }
  Topology topology;
  topology.kind = "simgrid";
  const auto router = [&](int group, int place) { return group * of_group + place; };
  for (int g = 0; g < groups; ++g) {
    for (int place = 0; place < of_group; ++place) {
      topology.switches.push_back({"router" + std::to_string(g) + "." +
                                   std::to_string(place / routers) + "." +
                                   std::to_string(place % routers)});
      topology.plugs.insert(topology.plugs.end(), static_cast<std::size_t>(lists[3][0]),
                            router(g, place));
      for (int other = 0; other < place; ++other) {
        const bool together = place / routers == other / routers;
        const bool across = place % routers == other % routers;
        const int from = router(g, other), to = router(g, place);
        if (together) join(topology, {from, to, rate * lists[2][1], "local"});
        if (across) join(topology, {from, to, rate * lists[1][1], "local"});
      }
    }
    for (int other = 0; other < g; ++other) {
      join(topology, {router(other, g), router(g, other), rate * lists[0][1], "global"});
    }
  }
  return topology;
}

Topology cluster_of(const Json& cluster, double reached) {
  const std::string kind = text_of(cluster, "topology", "FLAT");
  const BytesPerSecond rate = rate_of(required(cluster, "bw")) * reached;
  expect_duplex(cluster, "sharing_policy", "SPLITDUPLEX");
  if (kind == "FLAT") {
    throw InputError(
        "a FLAT cluster is one switch: 'inter' says all of it, and its "
        "oversubscription what a backbone is narrower");
  }
  const auto lists = parameters_of(cluster);
  if (kind == "TORUS") return torus(lists.front(), rate);
  if (kind == "DRAGONFLY") return dragonfly_of(lists, rate);
  if (kind != "FAT_TREE" || lists.size() != 4 || lists[0].size() != 1) {
    throw InputError("a cluster of topology " + kind +
                     ": expected FAT_TREE with "
                     "levels;down;up;links, TORUS or DRAGONFLY");
  }
  for (std::size_t list = 1; list < 4; ++list) {
    if (lists[list].size() == static_cast<std::size_t>(lists[0][0])) continue;
    throw InputError("topo_parameters of a FAT_TREE: expected " + std::to_string(lists[0][0]) +
                     " numbers in each list");
  }
  return fat_tree(
      {lists[1], lists[2], lists[3], std::vector<BytesPerSecond>(lists[1].size(), rate)});
}

// Hosts and routers, joined by routes of one link each; messages take the shortest path.
class Zone {
 public:
  explicit Zone(double reached) : reached_(reached) { topology_.kind = "simgrid"; }

  Topology read(const Json& zone) {
    const std::string routing = text_of(zone, "routing");
    if (routing != "Floyd" && routing != "Dijkstra" && routing != "DijkstraCache") {
      throw InputError("a zone of routing " + routing +
                       ": expected Floyd or Dijkstra, whose routes "
                       "are cables, or a cluster");
    }
    for (const Json& element : zone.at("inside")) {
      const std::string tag = element.at("tag");
      if (tag == "host" || tag == "router") add_place(element, tag == "host");
      if (tag == "link") rates_[required(element, "id")] = &element;
    }
    for (const Json& element : zone.at("inside")) {
      if (element.at("tag") == "route") add_route(element);
    }
    if (topology_.plugs.empty()) throw InputError("no <host> in its zone");
    return std::move(topology_);
  }

 private:
  void add_place(const Json& element, bool host) {
    const std::string id = required(element, "id");
    const int place = static_cast<int>(topology_.switches.size());
    if (!places_.emplace(id, place).second) throw InputError("two places are called '" + id + "'");
    topology_.switches.push_back({id});
    if (!host) return;
    topology_.plugs.push_back(place);
    topology_.names.push_back(id);
  }

  int place(const Json& route, const char* key) const {
    const std::string id = required(route, key);
    const auto known = places_.find(id);
    if (known == places_.end()) throw InputError("a <route> to '" + id + "', which is nowhere");
    return known->second;
  }

  void add_route(const Json& route) {
    const int from = place(route, "src");
    const int to = place(route, "dst");
    if (route.at("inside").size() != 1) {
      throw InputError("the <route> from '" + text_of(route, "src") + "' to '" +
                       text_of(route, "dst") + "': expected one link");
    }
    const Json& link = route.at("inside").front();
    const auto known = rates_.find(required(link, "id"));
    if (known == rates_.end()) {
      throw InputError("a <route> over '" + required(link, "id") + "', which is no <link>");
    }
    expect_duplex(*known->second, "sharing_policy", "SHARED");
    const BytesPerSecond rate = rate_of(required(*known->second, "bandwidth")) * reached_;
    join(topology_, {from, to, rate, "link"});
    const std::string both = text_of(route, "symmetrical", "YES");
    if (both != "YES" && both != "yes") topology_.links.pop_back();
  }

  double reached_;
  Topology topology_;
  std::map<std::string, int> places_;
  std::map<std::string, const Json*> rates_;
};

// Returns the first element with this tag, nested zones included.
const Json* first_of(const Json& element, const std::string& tag) {
  if (element.at("tag") == tag) return &element;
  for (const Json& inner : element.at("inside")) {
    if (const Json* found = first_of(inner, tag)) return found;
  }
  return nullptr;
}

}  // namespace

Topology simgrid_fabric(const std::string& name, const std::string& text, double reached) {
  const Json root = parse_xml(name, text);
  if (root.at("tag") != "platform") throw InputError("no <platform>: not a file of SimGrid's");
  Topology topology;
  if (const Json* cluster = first_of(root, "cluster")) {
    topology = cluster_of(*cluster, reached);
    topology.kind = "simgrid";
  } else if (const Json* zone = first_of(root, "zone")) {
    topology = Zone(reached).read(*zone);
  } else {
    throw InputError("neither a <cluster> nor a <zone>");
  }
  take_all_nodes(topology);
  return topology;
}

}  // namespace syncline::fabric
