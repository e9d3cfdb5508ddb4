#include "formats/fabric/files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/fabric/kinds.h"

namespace syncline::fabric {
namespace {

// Gbit/s of data per lane, without encoding (InfiniBand Trade Association's roadmap).
constexpr std::array<std::pair<std::string_view, double>, 9> kLanes{{{"SDR", 2},
                                                                     {"DDR", 4},
                                                                     {"QDR", 8},
                                                                     {"FDR10", 10},
                                                                     {"FDR", 13.64},
                                                                     {"EDR", 25},
                                                                     {"HDR", 50},
                                                                     {"NDR", 100},
                                                                     {"XDR", 200}}};

// Lanes of a link: InfiniBand's widths.
constexpr std::array kWidths{1, 2, 4, 8, 12};

// Names of links by their upper level, in switches from the hosts.
constexpr std::array<const char*, 4> kTiers{"leaf", "spine", "core", "top"};

// Returns the bandwidth of a word such as "4xHDR".
std::optional<BytesPerSecond> rate_of(std::string_view word) {
  const std::size_t cross = word.find('x');
  int width = 0;
  if (cross == word.npos || cross == 0 || cross > 2) return std::nullopt;
  const auto [end, error] = std::from_chars(word.data(), word.data() + cross, width);
  if (error != std::errc() || end != word.data() + cross) return std::nullopt;
  if (std::ranges::find(kWidths, width) == kWidths.end()) return std::nullopt;
  for (const auto& [name, gbits] : kLanes) {
    if (word.substr(cross + 1) == name) return width * gbits * kGigabitPerSecond;
  }
  return std::nullopt;
}

// Returns the next text in quotes from `from`, and moves `from` past it.
std::string quoted(const std::string& line, std::size_t& from) {
  const std::size_t open = line.find('"', from);
  const std::size_t close = open == line.npos ? open : line.find('"', open + 1);
  if (close == line.npos) throw InputError("expected a node in quotes, and its description");
  from = close + 1;
  return line.substr(open + 1, close - open - 1);
}

// A name ordered so that shorter numbers come first: mlx5_2 before mlx5_10.
using Ordered = std::pair<std::size_t, std::string>;
Ordered ordered(const std::string& name) { return {name.size(), name}; }

struct Port {
  Ordered adapter;  // "mlx5_0" of "gpu01 mlx5_0"
  int number = 1;
  int leaf = 0;
  BytesPerSecond rate = 0;
};

// Returns the operator's name in a managed switch's "MF0;leaf01:MQM8700/U1".
std::string switch_name(const std::string& description) {
  const std::size_t begin = description.find(';') + 1;  // 0: there is none
  return description.substr(begin, description.find(':', begin) - begin);
}

class Dump {
 public:
  explicit Dump(double reached) : reached_(reached) {}

  void add(const std::string& line) {
    if (line.starts_with("Switch")) {
      std::size_t from = 0;
      here_ = number_of(quoted(line, from));
      if (!described_.insert(here_).second) throw InputError("the switch stands there twice");
      name(here_, switch_name(quoted(line, from)));
    } else if (line.starts_with('[') && here_ >= 0) {
      add_cable(line);
    } else if (!line.starts_with('#')) {
      here_ = -1;  // of an adapter or router, which repeats the switches' lines
    }
  }

  Topology finish(int ports, BytesPerSecond node_port) {
    for (std::size_t id = 0; id < out_.switches.size(); ++id) {
      if (described_.contains(static_cast<int>(id))) continue;
      throw InputError("the switch " + ids_[id] + " is named and not described");
    }
    for (const auto& [pair, more] : unpaired_) {
      if (more == 0) continue;
      throw InputError("not all cables between " + out_.switches[at(pair.first)].name + " and " +
                       out_.switches[at(pair.second)].name + " are reported by both");
    }
    sort_switches();
    plug_in(ports, node_port);
    name_levels();
    out_.kind = "ibnetdiscover";
    take_all_nodes(out_);
    return std::move(out_);
  }

 private:
  int number_of(const std::string& id) {
    const auto [it, fresh] = known_.try_emplace(id, static_cast<int>(ids_.size()));
    if (fresh) {
      ids_.push_back(id);
      out_.switches.push_back({id});
      expect_buildable({0, static_cast<double>(ids_.size()), 0});
    }
    return it->second;
  }

  // Names a switch; a repeated or empty name gets the switch's id.
  void name(int id, const std::string& name) {
    const bool usable = !name.empty() && names_.insert(name).second;
    out_.switches[at(id)].name = usable ? name : name + " " + ids_[at(id)];
  }

  // Adds a cable: [1] "H-0c42a10300d1"[1](c42a10300d1)  # "gpu01 mlx5_0" lid 7 4xHDR
  void add_cable(const std::string& line) {
    std::size_t from = 0;
    const std::string id = quoted(line, from);
    int number = 0;
    if (from + 1 < line.size()) {
      std::from_chars(line.data() + from + 1, line.data() + line.size(), number);
    }
    const std::string description = quoted(line, from);
    std::optional<BytesPerSecond> rate;
    std::istringstream words(line.substr(from));
    std::string word;
    while (!rate && words >> word) rate = rate_of(word);
    if (!rate) throw InputError("expected a cable's width and speed, such as 4xHDR");
    if (id.starts_with("S-")) {
      const int there = number_of(id);
      out_.links.push_back({here_, there, *rate * reached_});
      unpaired_[std::minmax(here_, there)] += here_ < there ? 1 : here_ > there ? -1 : 0;
    } else if (id.starts_with("H-") && description.find("Aggregation Node") == line.npos) {
      // The unit that sums inside switches (SHARP) is described as an adapter, too.
      if (!plugged_.insert({id, number}).second) throw InputError("a port stands there twice");
      const std::size_t space = description.find(' ');
      const std::string adapter = space == line.npos ? "" : description.substr(space + 1);
      hosts_[ordered(description.substr(0, space))].push_back(
          {ordered(adapter), number, here_, *rate * reached_});
    }
  }

  // Sorts switches by name: the file's order depends on the host on which the tool ran.
  void sort_switches() {
    std::vector<int> order(out_.switches.size());
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](int id) { return ordered(out_.switches[at(id)].name); };
    std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
    std::vector<Switch> sorted;
    std::vector<int> place(order.size());
    for (const int id : order) {
      place[at(id)] = static_cast<int>(sorted.size());
      sorted.push_back(out_.switches[at(id)]);
    }
    out_.switches = std::move(sorted);
    for (FabricLink& link : out_.links) {
      link.from = place[at(link.from)];
      link.to = place[at(link.to)];
    }
    for (auto& [host, list] : hosts_) {
      for (Port& port : list) port.leaf = place[at(port.leaf)];
    }
  }

  void plug_in(int ports, BytesPerSecond node_port) {
    std::map<std::size_t, int> counts;
    for (auto& [host, list] : hosts_) {
      ++counts[list.size()];
      if (list.size() != at(ports)) continue;
      std::sort(list.begin(), list.end(), [](const Port& a, const Port& b) {
        return std::tie(a.adapter, a.number) < std::tie(b.adapter, b.number);
      });
      out_.names.push_back(host.second);
      for (const Port& port : list) {
        out_.plugs.push_back(narrow(port, node_port / ports) ? narrowed(host.second, port)
                                                             : port.leaf);
      }
    }
    out_.lanes = ports;
    if (!out_.names.empty()) return;
    std::string found;
    for (const auto& [size, hosts] : counts) {
      found += (found.empty() ? "" : ", ") + std::to_string(hosts) + " of " + std::to_string(size);
    }
    throw InputError("no host has " + std::to_string(ports) + " ports, as 'inter' says of a node" +
                     (found.empty() ? "" : "; by their ports there are " + found));
  }

  static bool narrow(const Port& port, BytesPerSecond expected) {
    constexpr double kRounding = 1e-9;
    return port.rate < (1 - kRounding) * expected;
  }

  // Adds the switch at the host's end of a cable that is slower than the host's ports.
  int narrowed(const std::string& host, const Port& port) {
    const int end = static_cast<int>(out_.switches.size());
    out_.switches.push_back({host + "." + port.adapter.second + "." + std::to_string(port.number)});
    join(out_, {end, port.leaf, port.rate, "port"});
    return end;
  }

  // Returns the number of switches from each to the nearest host.
  std::vector<int> levels_of(const std::vector<std::set<int>>& neighbours) const {
    std::vector<int> levels(out_.switches.size(), -1);
    std::queue<int> next;
    for (const auto& [host, list] : hosts_) {
      for (const Port& port : list) {
        if (levels[at(port.leaf)] == 0) continue;
        levels[at(port.leaf)] = 0;
        next.push(port.leaf);
      }
    }
    for (; !next.empty(); next.pop()) {
      for (const int other : neighbours[at(next.front())]) {
        if (levels[at(other)] >= 0) continue;
        levels[at(other)] = levels[at(next.front())] + 1;
        next.push(other);
      }
    }
    return levels;
  }

  void name_levels() {
    std::vector<std::set<int>> neighbours(out_.switches.size());
    for (const FabricLink& link : out_.links) {
      if (link.sort.empty()) neighbours[at(link.from)].insert(link.to);
    }
    const std::vector<int> levels = levels_of(neighbours);
    for (FabricLink& link : out_.links) {
      if (!link.sort.empty()) continue;
      const int level = std::max({levels[at(link.from)], levels[at(link.to)], 0});
      link.sort = kTiers[std::min(at(level), kTiers.size() - 1)];
    }
    std::vector<int> order;
    for (int id = 0; id < static_cast<int>(levels.size()); ++id) {
      if (levels[at(id)] > 0) order.push_back(id);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return levels[at(a)] < levels[at(b)]; });
    for (const int id : order) pool(id, levels, neighbours[at(id)]);
  }

  // Pools a switch without hosts with another of its level if both are above mostly the same
  // switches; a few cables may have failed.
  void pool(int id, const std::vector<int>& levels, const std::set<int>& neighbours) {
    std::set<int> below;
    for (const int other : neighbours) {
      if (levels[at(other)] >= levels[at(id)]) continue;
      const int pool = out_.switches[at(other)].pool;
      below.insert(pool < 0 ? other : pool);
    }
    std::map<int, std::size_t> common;
    for (const int each : below) {
      for (const int pool : above_[each]) ++common[pool];
    }
    int& pool = out_.switches[at(id)].pool;
    for (const auto& [other, count] : common) {
      const bool level = levels[at(other)] == levels[at(id)];
      if (level && 2 * count > std::max(below.size(), below_[other])) pool = other;
    }
    if (pool >= 0) return;
    pool = id;
    below_[id] = below.size();
    for (const int each : below) above_[each].push_back(id);
  }

  double reached_;
  Topology out_;
  int here_ = -1;
  std::vector<std::string> ids_;
  std::map<std::string, int> known_;  // switches by id
  std::set<int> described_;
  std::set<std::string> names_;
  std::set<std::pair<std::string, int>> plugged_;
  std::map<std::pair<int, int>, int> unpaired_;  // lines of one end minus the other's
  std::map<Ordered, std::vector<Port>> hosts_;
  std::map<int, std::vector<int>> above_;  // pools above a switch or pool
  std::map<int, std::size_t> below_;       // number of switches or pools below a pool
};

}  // namespace

Topology ibnetdiscover_fabric(const std::string& text, int ports, BytesPerSecond node_port,
                              double reached) {
  Dump dump(reached);
  for_each_line(text, [&](const std::string& line) { dump.add(line); });
  return dump.finish(ports, node_port);
}

}  // namespace syncline::fabric
