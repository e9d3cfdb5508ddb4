#include "core/measure/hot_link.h"

#include <algorithm>
#include <memory>

#include "core/collective/network.h"
#include "core/fabric/kinds.h"
#include "core/measure/company.h"
#include "core/run/model_executor.h"

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
    const Seconds cooled = step_on(std::move(changed), scenario, strategy);
    constexpr double kLittle = 0.995;
    if (cooled < kLittle * step) hot.cooler.emplace_back(words, cooled);
  };
  fabric::Topology packed = given;
  packed.nodes = fabric::placed(given, scenario.cluster.nodes, fabric::Placement::kPacked, 1);
  if (packed.nodes != given.nodes) add("nodes side by side (placement: packed)", packed);
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

}  // namespace syncline::measure
