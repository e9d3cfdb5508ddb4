#include "studies/rows/fabric_jobs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "core/base/index.h"
#include "core/executor.h"
#include "core/fabric/kinds.h"

namespace syncline::measure {
namespace {

// Returns a copy with links of changeable capacity; it refers to the measured topology.
std::shared_ptr<fabric::Topology> changeable(const std::shared_ptr<const fabric::Topology>& given) {
  auto topology = std::make_shared<fabric::Topology>(*given);
  if (topology->as_measured == nullptr) topology->as_measured = given;
  return topology;
}

// Returns the links of the fabric with their numbers in the network.
std::vector<std::pair<int, const fabric::FabricLink*>> fabric_links(
    const collective::Network& network) {
  std::vector<std::pair<int, const fabric::FabricLink*>> links;
  for (int id = 0; id < network.link_count(); ++id) {
    if (const auto* link = network.in_fabric(id)) links.emplace_back(id, link);
  }
  return links;
}

// One of the jobs, on the bandwidth that the others leave.
struct Guest {
  const Scenario* scenario = nullptr;
  const Strategy* strategy = nullptr;
  Cluster cluster;
  std::vector<LinkUse> use = {};   // per link of the fabric, as in `bytes`
  std::vector<double> bytes = {};  // per step
  Seconds alone = 0;
  Seconds step = 0;
  plan::Plan plan = {};
  std::shared_ptr<collective::CostCache> cache = {};

  void cost() {
    Scenario here = *scenario;
    here.cluster = cluster;
    cache = std::make_shared<collective::CostCache>(cluster);
    Evaluated evaluated =
        evaluate_strategy(here, *strategy, *run::make_cached_executor(cache), *cache);
    step = evaluated.metrics.step_time;
    plan = std::move(evaluated.plan);
    const collective::Network network(cluster);
    const fabric::Topology& topology = *scenario->cluster.topology;
    use.assign(topology.links.size(), {});
    bytes.assign(topology.links.size(), 0);
    const auto all = link_use(plan, network, *cache);
    for (const auto& [id, link] : fabric_links(network)) {
      const std::size_t which = index(link - cluster.topology->links.data());
      use[which] = all[index(id)];
      bytes[which] = use[which].busy * link->capacity;
    }
  }

  double load(std::size_t link) const { return bytes[link] / step; }
  double present(std::size_t link) const { return std::min(1.0, use[link].present / step); }
};

// Returns the bandwidth of a link left for a job's messages. While another job's messages are
// present, that job has its fair share, or less if it needs less.
BytesPerSecond left_for(const Guest& guest, const std::vector<Guest>& guests, std::size_t link) {
  const BytesPerSecond whole = guest.scenario->cluster.topology->links[link].capacity;
  double messages = 0;
  for (const Guest& each : guests) messages += each.use[link].messages;
  BytesPerSecond left = whole;
  for (const Guest& other : guests) {
    if (&other == &guest || other.bytes[link] <= 0) continue;
    const double share = other.use[link].messages / messages;
    left -= std::min(other.load(link), other.present(link) * share * whole);
  }
  return left;
}

// Evaluates each job on the last round's remaining bandwidth. Returns true if a step changed.
bool another_round(std::vector<Guest>& guests) {
  constexpr double kAlike = 1e-6;  // relative, for capacities
  constexpr double kStill = 1e-3;  // relative, for steps
  std::vector<std::shared_ptr<const fabric::Topology>> left;
  for (const Guest& guest : guests) {
    const auto topology = changeable(guest.scenario->cluster.topology);
    bool moved = false;
    for (std::size_t link = 0; link < topology->links.size(); ++link) {
      const BytesPerSecond before = guest.cluster.topology->links[link].capacity;
      // A link without the job's traffic does not affect its step.
      if (guest.bytes[link] > 0) topology->links[link].capacity = left_for(guest, guests, link);
      moved |= std::fabs(topology->links[link].capacity - before) > kAlike * before;
    }
    left.push_back(moved ? topology : nullptr);
  }
  bool changed = false;
  for (std::size_t job = 0; job < guests.size(); ++job) {
    if (left[job] == nullptr) continue;
    Guest& guest = guests[job];
    const Seconds before = guest.step;
    guest.cluster.topology = left[job];
    guest.cost();
    changed |= std::fabs(guest.step - before) > kStill * before;
  }
  return changed;
}

// Returns all jobs, the scenario's own first, once their steps and the remaining bandwidths agree.
std::vector<Guest> settled_guests(const Scenario& scenario, const Strategy& strategy) {
  std::vector<Guest> guests{{&scenario, &strategy, scenario.cluster}};
  for (const Scenario& other : scenario.others) {
    guests.push_back({&other, find_strategy(other, other.baseline), other.cluster});
  }
  for (Guest& guest : guests) {
    guest.cost();
    guest.alone = guest.step;
  }
  constexpr int kMaxRounds = 8;
  for (int round = 0; round < kMaxRounds && another_round(guests); ++round) {
  }
  return guests;
}

void add_coolers(const Scenario& scenario, const Strategy& strategy, Seconds step, HotLink& hot) {
  const fabric::Topology& given = *scenario.cluster.topology;
  const auto add = [&](const std::string& words, fabric::Topology changed) {
    if (changed.as_measured == nullptr) changed.as_measured = scenario.cluster.topology;
    Scenario on = scenario;
    on.cluster.topology = std::make_shared<const fabric::Topology>(std::move(changed));
    const auto executor = run::make_model_executor({on.cluster, {}, on.seed});
    collective::CostCache cache(on.cluster);
    const Seconds cooled = evaluate_strategy(on, strategy, *executor, cache).metrics.step_time;
    constexpr double kLittle = 0.995;
    if (cooled < kLittle * step) hot.cooler.emplace_back(words, cooled);
  };
  fabric::Topology packed = given;
  packed.nodes = fabric::place_nodes(given, scenario.cluster.nodes, fabric::Placement::kPacked, 1);
  // If other jobs share the fabric, neighbouring nodes may be theirs.
  if (packed.nodes != given.nodes && !given.shared)
    add("nodes side by side (placement: packed)", packed);
  if (given.hashed) {
    fabric::Topology even = given;
    even.hashed = false;
    add("flows spread evenly (routing: even)", fabric::merge_pools(even));
  }
  fabric::Topology faster = given;
  fabric::weaken(faster, hot.sort, 2);
  add(hot.sort + " links twice as fast", std::move(faster));
  std::ranges::stable_sort(hot.cooler, {}, &std::pair<std::string, Seconds>::second);
}

}  // namespace

std::vector<LinkUse> link_use(const plan::Plan& plan, const collective::Network& network,
                              collective::CostCache& cache) {
  std::unordered_map<const collective::CollectiveCost*, double> bytes;
  for (const plan::Op& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr) continue;
    bytes[&cache.cost(*collective)] += static_cast<double>(collective->bytes()) / plan.steps;
  }
  std::vector<LinkUse> use(index(network.link_count()));
  for (const auto& [cost, all] : bytes) {
    std::vector<LinkUse> by_kind(cost->footprint->link_kinds());
    for (const auto& stage : cost->stages) {
      const double message = stage.flow_rate * stage.seconds_per_byte;  // its share of the payload
      for (const auto& [kind, seconds] : stage.links) {
        LinkUse& one = by_kind[index(kind)];
        one.busy += seconds * all;
        one.present += stage.seconds_per_byte * all;
        const double messages = seconds * cost->footprint->capacity(kind) / message;
        one.messages += messages * seconds * all;
      }
    }
    const auto& kinds = cost->footprint->kind_of_link();
    for (std::size_t id = 0; id < kinds.size(); ++id) {
      if (kinds[id] < 0) continue;
      const LinkUse& one = by_kind[index(kinds[id])];
      use[id].busy += one.busy;
      use[id].present += one.present;
      use[id].messages += one.messages;
    }
  }
  for (LinkUse& one : use) {
    if (one.busy > 0) one.messages /= one.busy;
  }
  return use;
}

void find_hot_links(Together& together) {
  constexpr std::size_t kShown = 3;
  auto& hot = together.fabric_jobs.hot;
  hot.clear();
  const std::vector<fabric::FabricLink>& links = together.fabric->links;
  for (std::size_t link = 0; link < links.size(); ++link) {
    double load = 0;
    for (std::size_t job = 0; job < together.bytes.size(); ++job) {
      const FabricJobs::Job& each = together.fabric_jobs.jobs[job];
      load += together.bytes[job][link] / std::fmax(each.alone, each.together);
    }
    if (load > 0) hot.emplace_back(together.fabric->name(links[link]), load / links[link].capacity);
  }
  std::ranges::stable_sort(hot, std::ranges::greater(), &std::pair<std::string, double>::second);
  hot.resize(std::min(kShown, hot.size()));
}

Together together(const Scenario& scenario, const Strategy& strategy) {
  std::vector<Guest> guests = settled_guests(scenario, strategy);
  Together out;
  out.fabric = scenario.cluster.topology;
  for (Guest& guest : guests) {
    out.fabric_jobs.jobs.push_back({guest.scenario->name, guest.alone, guest.step});
    out.bytes.push_back(std::move(guest.bytes));
    if (&guest == &guests.front()) continue;
    out.others.push_back({std::move(guest.plan), guest.scenario->cluster, guest.scenario->seed});
  }
  out.cluster = std::move(guests.front().cluster);
  out.cache = std::move(guests.front().cache);
  find_hot_links(out);
  return out;
}

Cluster cluster_left(const Scenario& scenario, const Strategy& strategy) {
  return scenario.others.empty() ? scenario.cluster : together(scenario, strategy).cluster;
}

Scenario beside_others(Scenario scenario) {
  if (scenario.others.empty()) return scenario;
  const auto guests = settled_guests(scenario, *find_strategy(scenario, scenario.baseline));
  const auto left = changeable(guests.front().cluster.topology);
  for (std::size_t link = 0; link < left->links.size(); ++link) {
    // Another strategy may use links without the baseline's traffic.
    if (guests.front().bytes[link] > 0) continue;
    left->links[link].capacity = left_for(guests.front(), guests, link);
  }
  scenario.cluster.topology = left;
  scenario.others.clear();
  return scenario;
}

std::optional<HotLink> find_hot_link(const Evaluated& evaluated, const Scenario& scenario,
                                     const Strategy& strategy, collective::CostCache& cache) {
  if (scenario.cluster.topology == nullptr) return std::nullopt;
  const collective::Network network(scenario.cluster);
  const std::vector<LinkUse> use = link_use(evaluated.plan, network, cache);
  HotLink hot;
  const fabric::FabricLink* hottest = nullptr;
  for (int id = 0; id < network.link_count(); ++id) {
    const Seconds seconds = use[index(id)].busy;
    const fabric::FabricLink* link = network.in_fabric(id);
    Seconds& most = link == nullptr ? hot.ports : hot.busy;
    if (seconds > most && link != nullptr) hottest = link;
    most = std::max(most, seconds);
  }
  constexpr double kRounding = 1e-6;
  if (hottest == nullptr || hot.busy <= (1 + kRounding) * hot.ports) return std::nullopt;
  hot.name = scenario.cluster.topology->name(*hottest);
  hot.sort = hottest->sort;
  add_coolers(scenario, strategy, evaluated.metrics.step_time, hot);
  return hot;
}

std::vector<LinkWork> hottest_links(const plan::Plan& plan, const Cluster& cluster,
                                    collective::CostCache& cache) {
  if (cluster.topology == nullptr) return {};
  const collective::Network network(cluster);
  const std::vector<LinkUse> use = link_use(plan, network, cache);
  const auto busy = [&](int id) { return use[index(id)].busy; };
  std::vector<int> hot;
  for (const auto& [id, link] : fabric_links(network)) {
    if (busy(id) > 0) hot.push_back(id);
  }
  std::ranges::stable_sort(hot, [&](int a, int b) { return busy(a) > busy(b); });
  hot.resize(std::min(hot.size(), kMaxLinksTraced));
  std::vector<LinkWork> links;
  for (const int id : hot) {
    links.push_back(
        {cluster.topology->name(*network.in_fabric(id)), std::vector<Seconds>(plan.ops.size(), 0)});
  }
  std::map<const collective::CollectiveCost*, std::vector<LinkUse>> known;  // of a payload of 1
  for (std::size_t op = 0; op < plan.ops.size() && !links.empty(); ++op) {
    const auto* collective = std::get_if<collective::Collective>(&plan.ops[op].work);
    if (collective == nullptr || collective->bytes() == 0) continue;
    auto [of_cost, fresh] = known.try_emplace(&cache.cost(*collective));
    const auto bytes = static_cast<double>(collective->bytes());
    if (fresh) {
      plan::Plan alone;
      alone.ops = {plan.ops[op]};
      of_cost->second = link_use(alone, network, cache);
      for (LinkUse& each : of_cost->second) each.busy /= bytes;
    }
    for (std::size_t link = 0; link < links.size(); ++link) {
      links[link].of_op[op] = of_cost->second[index(hot[link])].busy * bytes;
    }
  }
  return links;
}

std::vector<SwitchLoad> switch_loads(const Evaluated& evaluated, const Cluster& cluster,
                                     collective::CostCache& cache) {
  if (cluster.topology == nullptr) return {};
  const collective::Network network(cluster);
  const std::vector<LinkUse> use = link_use(evaluated.plan, network, cache);
  std::map<int, std::map<std::string, SwitchLoad>> switches;
  for (const auto& [id, link] : fabric_links(network)) {
    const Seconds busy = use[index(id)].busy;
    if (busy <= 0) continue;
    Seconds& out = switches[link->from][link->sort].out;
    out = std::max(out, busy);
    Seconds& in = switches[link->to][link->sort].in;
    in = std::max(in, busy);
  }
  const std::size_t together = (switches.size() + kMaxSwitchesShown - 1) / kMaxSwitchesShown;
  std::vector<SwitchLoad> loads;
  for (auto next = switches.begin(); next != switches.end();) {
    const auto name = [&] { return cluster.topology->switches[index(next->first)].name; };
    std::string all = name();
    std::map<std::string, SwitchLoad> group;
    for (std::size_t i = 0; i < together && next != switches.end(); ++i, ++next) {
      if (i > 0 && (i + 1 == together || std::next(next) == switches.end())) all += " to " + name();
      for (const auto& [sort, load] : next->second) {
        group[sort].out = std::max(group[sort].out, load.out);
        group[sort].in = std::max(group[sort].in, load.in);
      }
    }
    for (const auto& [sort, load] : group) loads.push_back({all, sort, load.out, load.in});
  }
  return loads;
}

}  // namespace syncline::measure
