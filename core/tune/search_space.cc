#include "core/tune/search_space.h"

#include <algorithm>
#include <charconv>

#include "core/collective/algorithm.h"
#include "core/collective/library.h"
#include "core/dialect/changes.h"
#include "core/input/parts.h"
#include "core/measure/advice.h"

namespace syncline::tune {
namespace {

// Four significant digits without trailing zeros.
std::string short_number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 4);
  return {text, end.ptr};
}

std::string mebibytes(Bytes bytes) {
  if (bytes < kMiB / 10) return short_number(static_cast<double>(bytes) / kKiB) + " KiB";
  return short_number(static_cast<double>(bytes) / static_cast<double>(kMiB)) + " MiB";
}

// Puts each value of an axis into each strategy; an axis without values keeps the strategies.
template <typename Value, typename Set>
void vary(std::vector<Strategy>& strategies, const std::vector<Value>& values, Set set) {
  if (values.empty()) return;
  std::vector<Strategy> varied;
  for (const auto& strategy : strategies) {
    for (const auto& value : values) set(varied.emplace_back(strategy), value);
  }
  strategies = std::move(varied);
}

// Across steps each layer's parameters are updated before its forward pass; within one, all of them
// at once, unless the base says otherwise.
void set_cross_step(Strategy& strategy, bool value) {
  if (strategy.cross_step == value) return;
  strategy.cross_step = value;
  strategy.update = value && !shards_update(strategy) ? Strategy::Update::kPerBucket
                                                      : Strategy::Update::kAfterAll;
}

void set_exchange(Strategy& strategy, Strategy::Exchange value) {
  const bool crosses = strategy.cross_step;
  if (strategy.exchange == value) return;
  strategy.exchange = value;
  if (value != Strategy::Exchange::kSharded) strategy.gather_groups.clear();
  if (!crosses) return;
  strategy.cross_step = false;
  set_cross_step(strategy, true);
}

// An axis gets what another strategy of the scenario has there; one that was held at the base's
// value then varies between the two.
template <typename Value>
void widen(std::vector<Value>& values, const Value& base, const Value& other) {
  const auto has = [&](const Value& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  if (values.empty() && !(other == base)) values.push_back(base);
  if (!values.empty() && !has(other)) values.push_back(other);
}

void set_priority(Strategy& strategy, Strategy::Priority value) {
  strategy.priority = value;
  if (value == Strategy::Priority::kReady) strategy.credit = 0;
}

// Whether gradients are copied into buckets at a cost that the base's framework can spare.
bool copies_can_go(const Scenario& scenario, const Strategy& base) {
  const dialect::Dialect* dialect = dialect::find_dialect(base.dialect);
  if (!base.bucket_copies || dialect == nullptr || dialect->changes == nullptr) return false;
  const auto changes = dialect->changes(dialect::least_config(*dialect), exchanging(scenario));
  const bool spared = std::any_of(changes.begin(), changes.end(), [](const auto& change) {
    return change.kind == dialect::ChangeKind::kCopies;
  });
  const auto& tensors = scenario.workload.tensors;
  return spared && (scenario.cluster.device.memory > 0 ||
                    std::any_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
                      return tensor.copy_in + tensor.copy_out > 0;
                    }));
}

}  // namespace

bool trains_alike(const Strategy& strategy, const Strategy& base) {
  return measure::training_beside(strategy, base) == measure::TrainingChange::kSame;
}

Search default_search(const Scenario& scenario) {
  Search search;
  search.base = scenario.baseline;
  search.optimum = search.breakpoints = true;
  search.closes = {Fusion::Close::kAfter, Fusion::Close::kBefore};
  search.rules = {Fusion::Rule::kOne};
  const Strategy* base = find_strategy(scenario, search.base);
  if (base->overlap) search.streams = {1, 2, 3, 4};
  // Averaging hides behind nothing, so only the number of buckets matters: a few sizes show it.
  if (base->local_sgd.enabled) {
    search.breakpoints = false;
    search.closes = {Fusion::Close::kAfter};
    for (const int mebibytes : {1, 2, 4, 8, 16, 32, 64}) search.sizes.push_back(mebibytes * kMiB);
  }
  const Cluster cluster = exchanging(scenario);
  if (cluster.ranks() == 1) return search;
  search.algorithms = cluster.library == Library::kLinks
                          ? collective::algorithm_names()
                          : std::vector{std::string(collective::library_algorithm(cluster))};
  search.hierarchies.emplace_back();
  if (cluster.nodes > 1 && cluster.gpus_per_node > 1) {
    for (const auto form : {Hierarchy::Form::kSharded, Hierarchy::Form::kLeaders}) {
      search.hierarchies.emplace_back();
      search.hierarchies.back().form = form;
      search.hierarchies.back().group_size = cluster.gpus_per_node;
    }
  }
  if (copies_can_go(scenario, *base)) search.bucket_copies = {true, false};
  for (const Strategy& row : scenario.strategies) {
    if (!trains_alike(row, *base)) continue;
    widen(search.algorithms, base->algorithm, row.algorithm);
    widen(search.hierarchies, base->hierarchy, row.hierarchy);
    widen(search.streams, base->streams, row.streams);
    widen(search.exchanges, base->exchange, row.exchange);
    widen(search.cross_steps, base->cross_step, row.cross_step);
    widen(search.priorities, base->priority, row.priority);
    widen(search.bucket_copies, base->bucket_copies, row.bucket_copies);
    widen(search.compute_fusions, base->compute_fusion, row.compute_fusion);
  }
  return search;
}

std::vector<Strategy> strategies_of_configurations(const Search& search, const Strategy& base,
                                                   const Scenario& scenario) {
  Strategy plain = base;
  plain.about.clear();
  plain.dialect.clear();
  plain.notes.clear();
  std::vector<Strategy> strategies{plain};
  vary(strategies, search.local_sgds,
       [](Strategy& strategy, const LocalSgd& value) { strategy.local_sgd = value; });
  vary(strategies, search.compressions,
       [](Strategy& strategy, const Compression& value) { strategy.compression = value; });
  vary(strategies, search.hierarchies,
       [](Strategy& strategy, const Hierarchy& value) { strategy.hierarchy = value; });
  vary(strategies, search.algorithms,
       [](Strategy& strategy, const std::string& value) { strategy.algorithm = value; });
  vary(strategies, search.compute_fusions,
       [](Strategy& strategy, const ComputeFusion& value) { strategy.compute_fusion = value; });
  vary(strategies, search.exchanges, set_exchange);
  vary(strategies, search.cross_steps, set_cross_step);
  vary(strategies, search.priorities, set_priority);
  vary(strategies, search.bucket_copies,
       [](Strategy& strategy, bool value) { strategy.bucket_copies = value; });
  vary(strategies, search.streams, [](Strategy& strategy, int value) { strategy.streams = value; });
  std::erase_if(strategies, [&](const Strategy& strategy) {
    // Ticks are the fusion's: a candidate with another fusion may fit.
    Strategy unticked = strategy;
    if (search.varies_fusion()) unticked.fusion.cycle = 0;
    return input::conflict_of(unticked, scenario.workload, scenario.cluster).has_value();
  });
  return strategies;
}

std::string fusion_words(const Fusion& fusion) {
  switch (fusion.rule) {
    case Fusion::Rule::kNone:
      return "each gradient alone";
    case Fusion::Rule::kLayer:
      return "by layer";
    case Fusion::Rule::kOne:
      return "one bucket";
    case Fusion::Rule::kCount:
      return std::to_string(fusion.count) + " gradients a bucket";
    case Fusion::Rule::kIndex:
      return std::to_string(fusion.ends.size()) +
             (fusion.ends.size() == 1 ? " explicit bucket" : " explicit buckets");
    case Fusion::Rule::kGroups:
      return std::to_string(fusion.groups.size()) + " groups";
    case Fusion::Rule::kMgWfbp:
      return "merged by MG-WFBP";
    case Fusion::Rule::kSize:
      break;
  }
  std::string words = fusion.close == Fusion::Close::kAfter ? "" : "at most ";
  words += mebibytes(fusion.size);
  if (fusion.first_size > 0) words += ", first " + mebibytes(fusion.first_size);
  if (fusion.cycle > 0)
    words += ", a tick every " + short_number(fusion.cycle / kMillisecond) + " ms";
  if (fusion.count > 0) words += ", " + std::to_string(fusion.count) + " gradients";
  return words;
}

}  // namespace syncline::tune
