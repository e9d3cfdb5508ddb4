#include "core/collective/footprint.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace syncline::collective {
namespace {

constexpr BytesPerSecond kNoCap = std::numeric_limits<double>::infinity();

// Calls visit(from, to, route of all parts) for every edge of a set, in all groups.
template <typename Visit>
void for_each_edge(const Network& network, const Groups& groups, const EdgeSet& set,
                   const Visit& visit) {
  std::vector<int> route;
  for (int g = 0; g < groups.count; ++g) {
    for (const Edge& edge : set) {
      const int from = groups.rank(g, edge.from);
      const int to = groups.rank(g, edge.to);
      route.clear();
      network.route(groups, from, to, route);
      visit(from, to, route);
    }
  }
}

// Returns each rank's class and the number of classes, by colour refinement: a rank is
// distinguished by its messages in each set and by the colours of the ranks at their other ends.
// Returns the ranks themselves if few are equal (two trees only have their mirror image).
std::pair<std::vector<int>, std::size_t> classes_of(const std::vector<SetFootprint>& sets,
                                                    int ranks) {
  constexpr std::size_t kWorthwhile = 4;  // minimum of ranks per class
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<Colour> colours(n, 1);
  std::vector<Colour> next;
  std::unordered_map<Colour, int> number;
  std::size_t before = 0;
  while (true) {
    next = colours;
    for (std::size_t s = 0; s < sets.size(); ++s) {
      for (const TransferKind& m : sets[s].messages) {
        const auto from = static_cast<std::size_t>(m.from);
        const auto to = static_cast<std::size_t>(m.to);
        const Colour what = mix(s, static_cast<Colour>(m.way));
        next[from] += mix(mix(what, 1), colours[to]);
        next[to] += mix(mix(what, 2), colours[from]);
      }
    }
    for (auto& colour : next) colour = mix(colour, 3);
    colours.swap(next);
    number.clear();
    for (const auto colour : colours) {
      number.try_emplace(colour, static_cast<int>(number.size()));
    }
    if (number.size() == before || number.size() * kWorthwhile > n) break;
    before = number.size();
  }
  const bool folds = number.size() * kWorthwhile <= n;
  std::vector<int> classes(n);
  for (std::size_t r = 0; r < n; ++r) {
    classes[r] = folds ? number.at(colours[r]) : static_cast<int>(r);
  }
  return {std::move(classes), folds ? number.size() : n};
}

template <typename Item>
void keep_each_once(std::vector<Item>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

Footprint::Footprint(const Network& network, const Groups& groups, const EdgeSets& sets)
    : parts_(network.parts()), fastest_(network.fastest()) {
  sets_.resize(sets.size());
  distinguish_links(network, groups, sets);
  load_links(network, groups, sets);
  if (uniform_) return;
  list_messages(network, groups, sets);
  merge_alike(network.ranks());
}

// Colours links in one pass by the sets that send messages over them.
void Footprint::distinguish_links(const Network& network, const Groups& groups,
                                  const EdgeSets& sets) {
  const auto links = static_cast<std::size_t>(network.link_count());
  std::vector<Colour> colours(links, 0);
  int tier = -1;  // crossed by the first message
  for (std::size_t s = 0; s < sets.size(); ++s) {
    sets_[s].flow_cap = kNoCap;
    const Colour colour = mix(s, 1);
    for_each_edge(network, groups, sets[s], [&](int from, int to, const auto& route) {
      const int crossed = network.crossing(from, to);
      if (tier < 0) tier = crossed;
      uniform_ = uniform_ && crossed == tier && network.latency(from, to) == fastest_;
      for (const int id : route) {
        const Link& link = network.link(id);
        // Fabric links, which only some messages pass, are not uniform.
        uniform_ = uniform_ && network.in_fabric(id) == nullptr;
        if (link.per_flow) {
          sets_[s].flow_cap = std::min(sets_[s].flow_cap, link.capacity);
        } else {
          colours[static_cast<std::size_t>(id)] += colour;
        }
      }
    });
  }
  kind_of_link_.assign(links, -1);
  std::unordered_map<Colour, int> kinds;
  for (std::size_t id = 0; id < links; ++id) {
    if (colours[id] == 0) continue;
    const BytesPerSecond capacity = network.link(static_cast<int>(id)).capacity;
    const auto [it, fresh] =
        kinds.try_emplace(mix(colours[id], bits(capacity)), static_cast<int>(capacities_.size()));
    kind_of_link_[id] = it->second;
    if (!fresh) continue;
    capacities_.push_back(capacity);
    first_link_.push_back(static_cast<int>(id));
  }
}

// Counts the messages on the first link of each kind.
void Footprint::load_links(const Network& network, const Groups& groups, const EdgeSets& sets) {
  std::vector<int> messages(capacities_.size(), 0);
  std::vector<int> touched;
  for (std::size_t s = 0; s < sets.size(); ++s) {
    for_each_edge(network, groups, sets[s], [&](int, int, const auto& route) {
      for (const int id : route) {
        const int kind = kind_of_link_[static_cast<std::size_t>(id)];
        if (kind < 0 || first_link_[static_cast<std::size_t>(kind)] != id) continue;
        if (messages[static_cast<std::size_t>(kind)]++ == 0) touched.push_back(kind);
      }
    });
    std::sort(touched.begin(), touched.end());
    for (const int kind : touched) {
      sets_[s].load.emplace_back(kind, messages[static_cast<std::size_t>(kind)]);
      messages[static_cast<std::size_t>(kind)] = 0;
    }
    touched.clear();
  }
}

void Footprint::list_messages(const Network& network, const Groups& groups, const EdgeSets& sets) {
  const auto kind_of = [&](int id) { return kind_of_link_[static_cast<std::size_t>(id)]; };
  const auto add_way = [&](Seconds latency, const std::vector<int>& route) {
    // Innermost ports come first (network.h).
    Way& way = ways_.emplace_back(Way{latency, kNoCap, {}, kind_of(route[0]), kind_of(route[1])});
    for (const int id : route) {
      const Link& link = network.link(id);
      if (link.per_flow) {
        way.flow_cap = std::min(way.flow_cap, link.capacity);
      } else {
        way.links.push_back(kind_of(id));
      }
    }
    keep_each_once(way.links);
  };
  // Ways are numbered by appearance; equal links by kind at equal latency are one way.
  std::unordered_map<Colour, int> known;
  for (std::size_t s = 0; s < sets.size(); ++s) {
    auto& messages = sets_[s].messages;
    messages.reserve(sets[s].size() * static_cast<std::size_t>(groups.count));
    for_each_edge(network, groups, sets[s], [&](int from, int to, const auto& route) {
      const Seconds latency = network.latency(from, to);
      Colour colour = mix(static_cast<Colour>(network.crossing(from, to)), bits(latency));
      for (const int id : route) colour = mix(colour, static_cast<Colour>(kind_of(id)));
      const auto [way, fresh] = known.try_emplace(colour, static_cast<int>(ways_.size()));
      if (fresh) add_way(latency, route);
      messages.push_back({from, to, way->second});
    });
  }
}

void Footprint::merge_alike(int ranks) {
  const auto [class_of, count] = classes_of(sets_, ranks);
  rank_classes_ = count;
  const bool folds = rank_classes_ < static_cast<std::size_t>(ranks);
  for (SetFootprint& set : sets_) {
    for (TransferKind& m : set.messages) {
      set.ways.push_back(m.way);
      m.from = class_of[static_cast<std::size_t>(m.from)];
      m.to = class_of[static_cast<std::size_t>(m.to)];
    }
    keep_each_once(set.ways);
    if (!folds) continue;
    keep_each_once(set.messages);
    set.messages.shrink_to_fit();
  }
}

}  // namespace syncline::collective
