
#include <algorithm>
#include <map>
#include <memory>

#include "core/collective/network.h"
#include "core/fabric/kinds.h"
#include "core/measure/company.h"
#include "core/run/executor.h"

namespace syncline::measure {
namespace {

// What the strategy's step would be on this fabric.
Seconds step_on(fabric::Topology topology, Scenario scenario, const Strategy& strategy) {
  scenario.cluster.topology = std::make_shared<const fabric::Topology>(std::move(topology));
  const auto executor = run::make_model_executor({scenario.cluster, {}, scenario.seed});
  collective::CostCache cache(scenario.cluster);
  return evaluate_strategy(scenario, strategy, *executor, cache).metrics.step_time;
}

void add_coolers(const Scenario& scenario, const Strategy& strategy, Seconds step, HotLink& hot) {
  const fabric::Topology& given = *scenario.cluster.topology;
  const auto add = [&](const std::string& words, fabric::Topology changed) {
    if (changed.as_measured == nullptr) changed.as_measured = scenario.cluster.topology;
    const Seconds cooled = step_on(std::move(changed), scenario, strategy);
    constexpr double kLittle = 0.995;
    if (cooled < kLittle * step) hot.cooler.emplace_back(words, cooled);
  };
  fabric::Topology packed = given;
  packed.nodes = fabric::placed(given, scenario.cluster.nodes, fabric::Placement::kPacked, 1);
  // Beside other jobs the nodes side by side may be theirs.
  if (packed.nodes != given.nodes && !given.shared)
    add("nodes side by side (placement: packed)", packed);
  if (given.hashed) {
    fabric::Topology even = given;
    even.hashed = false;
    add("flows spread evenly (routing: even)", fabric::pooled(even));
  }
  fabric::Topology faster = given;
  fabric::weaken(faster, hot.sort, 2);
  add(hot.sort + " links twice as fast", std::move(faster));
  std::stable_sort(hot.cooler.begin(), hot.cooler.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
}

}  // namespace

std::optional<HotLink> hot_link_of(const Evaluated& evaluated, const Scenario& scenario,
                                   const Strategy& strategy, collective::CostCache& cache) {
  if (scenario.cluster.topology == nullptr) return std::nullopt;
  const collective::Network network(scenario.cluster);
  const std::vector<LinkUse> use = link_use(evaluated.plan, network, cache);
  HotLink hot;
  const fabric::FabricLink* hottest = nullptr;
  for (int id = 0; id < network.link_count(); ++id) {
    const Seconds seconds = use[static_cast<std::size_t>(id)].busy;
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
  const auto busy = [&](int id) { return use[static_cast<std::size_t>(id)].busy; };
  std::vector<int> hot;
  for (int id = 0; id < network.link_count(); ++id) {
    if (network.in_fabric(id) != nullptr && busy(id) > 0) hot.push_back(id);
  }
  std::ranges::stable_sort(hot, [&](int a, int b) { return busy(a) > busy(b); });
  hot.resize(std::min(hot.size(), kMostLinksTraced));
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
      links[link].of_op[op] = of_cost->second[static_cast<std::size_t>(hot[link])].busy * bytes;
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
  for (int id = 0; id < network.link_count(); ++id) {
    const fabric::FabricLink* link = network.in_fabric(id);
    const Seconds busy = use[static_cast<std::size_t>(id)].busy;
    if (link == nullptr || busy <= 0) continue;
    Seconds& out = switches[link->from][link->sort].out;
    out = std::max(out, busy);
    Seconds& in = switches[link->to][link->sort].in;
    in = std::max(in, busy);
  }
  const std::size_t together = (switches.size() + kMostSwitchesShown - 1) / kMostSwitchesShown;
  std::vector<SwitchLoad> loads;
  for (auto next = switches.begin(); next != switches.end();) {
    const auto name = [&] {
      return cluster.topology->switches[static_cast<std::size_t>(next->first)].name;
    };
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
