#include "studies/tune/verdicts.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/error.h"
#include "formats/dialect/dialect.h"
#include "formats/input/document.h"
#include "formats/input/knobs.h"
#include "formats/input/scenario_json.h"
#include "formats/json/reader.h"
#include "studies/rows/row_evaluator.h"

namespace syncline::tune {
namespace {

// Compares two strategies at one value of a key; nullopt if the scenario is invalid there.
class Comparison {
 public:
  Comparison(const input::Document& document, std::string path, const std::string& strategy,
             const std::string& against, const Takes& takes)
      : document_(document),
        path_(std::move(path)),
        strategy_(strategy),
        against_(against),
        takes_(takes) {}

  // Returns the time that the strategy saves, in percent.
  std::optional<double> gain(const Json& value) const {
    input::Document changed = document_;
    try {
      input::set_key(changed, path_, value);
      const Scenario scenario = input::parse_scenario(changed);
      if (scenario.cluster.ranks() == 1) return std::nullopt;
      const auto taken = [&](const std::string& name) {
        return takes_(scenario, *find_strategy(scenario, name));
      };
      return 100 * (1 - taken(strategy_) / taken(against_));
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

 private:
  const input::Document& document_;
  std::string path_;
  const std::string& strategy_;
  const std::string& against_;
  const Takes& takes_;
};

// Returns the path of the bandwidth between the outermost units.
std::string outermost_bandwidth(const input::Document& document, const Scenario& scenario) {
  const Json& cluster = document.root["cluster"];
  if (cluster.contains("upper") && !cluster["upper"].empty()) {
    return "cluster.upper." + std::to_string(cluster["upper"].size() - 1) + ".bandwidth_gbps";
  }
  return scenario.cluster.nodes > 1 ? "cluster.inter.bandwidth_gbps"
                                    : "cluster.intra.bandwidth_gbps";
}

// Returns that bandwidth, also if a named node replaces the key.
double outermost_gbps(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  const Tier& tier =
      cluster.nodes > 1 || cluster.tiers.size() > 2 ? cluster.tiers.back() : cluster.tiers.front();
  return input::tier_json(tier, {}, 12).at("bandwidth_gbps").get<double>();
}

Json::json_pointer pointer_to(std::string path) {
  std::ranges::replace(path, '.', '/');
  return Json::json_pointer("/" + path);
}

}  // namespace

Seconds step_by_model(const Scenario& scenario, const Strategy& strategy) {
  return Evaluator(scenario).step_time(strategy);
}

std::optional<BreakEven> bandwidth_break_even(const input::Document& document,
                                              const std::string& strategy,
                                              const std::string& against, const Takes& takes) {
  const Scenario scenario = input::parse_scenario(document);
  if (scenario.cluster.ranks() == 1) return std::nullopt;
  BreakEven even{strategy, against, outermost_bandwidth(document, scenario), 0, 0, {}, 0, 0};
  const Json::json_pointer pointer = pointer_to(even.path);
  even.now = outermost_gbps(scenario);
  even.least = even.now / 1000;
  even.most = even.now * 1000;
  const Comparison here(document, even.path, strategy, against, takes);
  even.gain_percent = here.gain(even.now).value_or(0);
  // The same links by latency and bandwidth only: measured steps hold for one bandwidth.
  input::Document links = document;
  if (links.root.contains(pointer.parent_pointer())) {
    links.root[pointer.parent_pointer()].erase("measured_steps_us");
  }
  const Comparison compare(links, even.path, strategy, against, takes);
  const auto pays = [&](double bandwidth) { return compare.gain(bandwidth).value_or(0) > 0; };

  // From above in steps of a quarter of a decade: the first value at which it pays.
  constexpr int kSteps = 24;
  double above = even.most;
  if (pays(above)) return even;
  for (int i = 1; i <= kSteps; ++i) {
    double below = even.most * std::pow(10.0, -0.25 * i);
    if (!pays(below)) {
      above = below;
      continue;
    }
    constexpr double kClose = 1e-6;
    while (above / below > 1 + kClose) {
      const double middle = std::sqrt(above * below);
      (pays(middle) ? below : above) = middle;
    }
    even.value = below;
    return even;
  }
  return even;
}

std::optional<BreakEven> nodes_break_even(const input::Document& document,
                                          const std::string& strategy, const std::string& against) {
  const Scenario scenario = input::parse_scenario(document);
  if (scenario.cluster.nodes == 1) return std::nullopt;
  constexpr int kMaxNodes = 1024;
  BreakEven even{strategy, against, "cluster.nodes", 0, 0, {}, 0, 0};
  even.now = scenario.cluster.nodes;
  const Takes takes = step_by_model;
  const Comparison compare(document, even.path, strategy, against, takes);
  even.gain_percent = compare.gain(scenario.cluster.nodes).value_or(0);

  std::vector<std::pair<int, bool>> tried;  // (nodes, true if it pays), doubling
  for (int nodes = 2; nodes <= kMaxNodes; nodes *= 2) {
    if (const auto gain = compare.gain(nodes)) tried.emplace_back(nodes, *gain > 0);
  }
  if (tried.empty()) return std::nullopt;
  even.least = tried.front().first;
  even.most = tried.back().first;
  // The smallest count from which on it pays at every doubling, then the first within that
  // doubling.
  auto first = tried.end();
  while (first != tried.begin() && std::prev(first)->second) --first;
  if (first == tried.end() || first == tried.begin()) return even;
  int no = std::prev(first)->first, yes = first->first;
  while (yes - no > 1) {
    const int middle = (no + yes) / 2;
    (compare.gain(middle).value_or(0) > 0 ? yes : no) = middle;
  }
  even.value = yes;
  return even;
}

std::vector<Averaging> averaging_of(Evaluator& evaluator) {
  const Scenario& scenario = evaluator.scenario();
  std::vector<Averaging> rows;
  for (const auto& strategy : scenario.strategies) {
    if (!strategy.local_sgd.enabled) continue;
    Averaging row;
    row.strategy = strategy.name;
    row.period = strategy.local_sgd.adaptive ? 0 : strategy.local_sgd.period;
    row.metrics = evaluator.metrics_of(strategy);
    row.published = measure::find_published(scenario, {{}, strategy.name});
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<FrameworkDefault> framework_defaults(const Strategy& base, Evaluator& evaluator) {
  const Scenario& scenario = evaluator.scenario();
  std::vector<FrameworkDefault> defaults;
  for (const dialect::Dialect& dialect : dialect::dialects()) {
    if (dialect.suggest == nullptr) continue;
    FrameworkDefault own;
    own.dialect = dialect.name;
    own.config = dialect::least_config(dialect);
    try {
      own.strategy =
          dialect::reading_of(dialect, own.config, scenario.workload, scenario.cluster).strategy;
    } catch (const InputError&) {
      continue;  // the framework would refuse this job
    }
    if (input::changes_training(own.strategy)) continue;  // it changes the training
    own.strategy.name = own.dialect + "'s default";
    own.strategy.overlap = base.overlap;
    if (!base.overlap) own.strategy.streams = 1;
    own.metrics.step_time = evaluator.step_time(own.strategy);
    defaults.push_back(std::move(own));
  }
  return defaults;
}

}  // namespace syncline::tune
