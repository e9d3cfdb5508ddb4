#include "studies/tune/search_space.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "core/algorithm.h"
#include "core/collective/library.h"
#include "core/metrics/phases.h"
#include "core/plan.h"
#include "core/plan/fusion.h"
#include "formats/dialect/changes.h"
#include "formats/input/conflicts.h"
#include "formats/input/scenario_json.h"
#include "studies/explain/advice.h"
#include "studies/tune/thresholds.h"

namespace syncline::tune {
namespace {

// Returns four significant digits without trailing zeros.
std::string short_number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 4);
  return {text, end.ptr};
}

std::string mebibytes(Bytes bytes) {
  if (bytes < kMiB / 10) return short_number(static_cast<double>(bytes) / kKiB) + " KiB";
  if (bytes >= kGiB)
    return short_number(static_cast<double>(bytes) / static_cast<double>(kGiB)) + " GiB";
  return short_number(static_cast<double>(bytes) / static_cast<double>(kMiB)) + " MiB";
}

// Combines each value of an axis with each strategy; an axis without values keeps the strategies.
template <typename Value, typename Set>
void vary(std::vector<Strategy>& strategies, const std::vector<Value>& values, Set set) {
  if (values.empty()) return;
  std::vector<Strategy> varied;
  for (const auto& strategy : strategies) {
    for (const auto& value : values) set(varied.emplace_back(strategy), value);
  }
  strategies = std::move(varied);
}

template <typename Value>
void vary(std::vector<Strategy>& strategies, const std::vector<Value>& values,
          Value Strategy::*knob) {
  vary(strategies, values,
       [knob](Strategy& strategy, const Value& value) { strategy.*knob = value; });
}

// Sets the exchange across steps: each layer's parameters are then updated before its forward pass.
// Within a step they are updated all at once, unless the base differs.
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

// Sets a hierarchy. The framework's rules for the base's groups do not apply to other groups.
void set_hierarchy(Strategy& strategy, const Hierarchy& value) {
  if (strategy.hierarchy == value) return;
  strategy.hierarchy = value;
  strategy.traits.across_stream = false;
  strategy.traits.across_last = false;
}

// Adds another strategy's value to an axis; an axis fixed at the base's value then varies between
// the two.
template <typename Value>
void widen(std::vector<Value>& values, const Value& base, const Value& other) {
  if (values.empty() && !(other == base)) values.push_back(base);
  if (!values.empty() && std::ranges::count(values, other) == 0) values.push_back(other);
}

void set_priority(Strategy& strategy, Strategy::Priority value) {
  strategy.priority = value;
  if (value == Strategy::Priority::kReady) strategy.credit = 0;
}

// Returns true if copies of gradients into buckets have a cost that the base's framework can avoid.
bool copies_can_go(const Scenario& scenario, const Strategy& base) {
  const dialect::Dialect* dialect = dialect::find_dialect(base.dialect);
  if (!base.bucket_copies || dialect == nullptr || dialect->changes == nullptr) return false;
  const auto changes = dialect->changes(dialect::least_config(*dialect), exchanging(scenario));
  const bool spared = std::ranges::any_of(
      changes, [](const auto& change) { return change.kind == dialect::ChangeKind::kCopies; });
  const auto copied = [](const Tensor& tensor) { return tensor.copy_in + tensor.copy_out > 0; };
  return spared && (scenario.cluster.device.memory > 0 ||
                    std::ranges::any_of(scenario.workload.tensors, copied));
}

// Collects the choices of one configuration, axis by axis of the search; invalid ones are left out.
class RuleChoices {
 public:
  RuleChoices(const Search& search, const Configuration& configuration)
      : search_(search), configuration_(configuration) {}

  std::vector<FusionChoice> all() {
    add(FusionKind::kBase, base());
    add_rules();
    add_sizes();
    add_counts();
    return std::move(choices_);
  }

 private:
  const Fusion& base() const { return configuration_.strategy().fusion; }

  void add(FusionKind kind, Fusion fusion) {
    fusion.align = base().align;
    if (configuration_.is_unsupported(apply_fusion(configuration_.strategy(), fusion))) return;
    choices_.push_back({kind, std::move(fusion)});
  }

  void add_rules() {
    for (const auto rule : search_.rules) {
      Fusion fusion;
      fusion.rule = rule;
      fusion.layer_key = base().layer_key;
      add(FusionKind::kRule, fusion);
    }
  }

  // Adds every way to close a bucket with every first size, at the requested sizes and at those
  // that change the buckets.
  void add_sizes() {
    for (const auto close : search_.closes) {
      for (const Bytes first : search_.first_sizes) {
        Fusion form = by_size(0, close, first);
        form.by_layer = base().by_layer;
        form.layer_key = base().layer_key;
        for (const Bytes size : search_.sizes) add_size(size, form);
        if (search_.breakpoints) add_breakpoints(form);
      }
    }
  }

  // Adds sizes that change the buckets; among equivalent ones, the roundest. If not all changes are
  // searched, and with ticks, the size itself matters.
  void add_breakpoints(const Fusion& form) {
    const auto thresholds =
        size_thresholds(configuration_.tensors(), configuration_.candidates(), form);
    const bool all = configuration_.candidates().size() <= kMaxExact;
    const bool ticked = form.close == Fusion::Close::kBefore &&
                        std::ranges::any_of(search_.cycles, [](Seconds each) { return each > 0; });
    for (std::size_t i = 0; i < thresholds.size(); ++i) {
      const Bytes low = thresholds[i];
      const Bytes high = i + 1 < thresholds.size() ? thresholds[i + 1] - 1 : 2 * low;
      add_size(all && !ticked ? roundest_size(low, high) : low, form);
    }
  }

  // Adds the rule by size, if it closes before the size also with each cycle of ticks.
  void add_size(Bytes size, const Fusion& form) {
    Fusion fusion = form;
    fusion.size = std::max<Bytes>(1, size);
    // A size of 0 closes after each gradient, which is the rule "none" in a file.
    if (size == 0 && form.first_size == 0 && !form.by_layer) fusion = Fusion{};
    if (form.close == Fusion::Close::kAfter) {
      add(FusionKind::kSizeAfter, fusion);
      return;
    }
    for (const Seconds cycle : search_.cycles) {
      if (cycle == 0) {
        add(FusionKind::kSizeBefore, fusion);
        continue;
      }
      // At a tick only the size decides.
      if (form.first_size > 0 || form.by_layer) continue;
      Fusion ticked = by_size(std::max<Bytes>(1, size), form.close);
      ticked.cycle = cycle;
      add(FusionKind::kTicks, ticked);
    }
  }

  void add_counts() {
    Fusion counted;
    counted.rule = Fusion::Rule::kCount;
    auto counts = search_.counts;
    if (search_.all_counts) {
      const auto all =
          count_thresholds(configuration_.tensors(), configuration_.candidates(), counted);
      counts.insert(counts.end(), all.begin(), all.end());
    }
    for (const auto count : counts) {
      counted.count = count;
      add(FusionKind::kCount, counted);
    }
  }

  const Search& search_;
  const Configuration& configuration_;
  std::vector<FusionChoice> choices_;
};

// Returns true if ticks are excluded; those of any cycle are alike, so one of a millisecond is
// tried.
bool excludes_ticks(const Configuration& configuration) {
  Strategy ticked = configuration.strategy();
  ticked.fusion.cycle = kMillisecond;
  return configuration.is_unsupported(ticked);
}

bool differ_in_streams_alone(Strategy one, const Strategy& other) {
  one.streams = other.streams;
  return input::strategy_json(one) == input::strategy_json(other);
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
  // Averaging is not overlapped, so only the number of buckets matters: a few sizes cover it.
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
  vary(strategies, search.local_sgds, &Strategy::local_sgd);
  vary(strategies, search.compressions, &Strategy::compression);
  vary(strategies, search.hierarchies, set_hierarchy);
  vary(strategies, search.algorithms, &Strategy::algorithm);
  vary(strategies, search.compute_fusions, &Strategy::compute_fusion);
  vary(strategies, search.exchanges, set_exchange);
  vary(strategies, search.cross_steps, set_cross_step);
  vary(strategies, search.priorities, set_priority);
  vary(strategies, search.bucket_copies, &Strategy::bucket_copies);
  vary(strategies, search.streams, &Strategy::streams);
  std::erase_if(strategies, [&](const Strategy& strategy) {
    // Ticks belong to the fusion: a candidate with another fusion may fit.
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

std::vector<std::vector<int>> groups_of(const Configuration& configuration, const Fusion& fusion) {
  if (fusion.cycle > 0 || fusion.rule == Fusion::Rule::kMgWfbp ||
      fusion.order == Fusion::Order::kForward) {
    return {};
  }
  return plan::fuse(configuration.tensors(), configuration.candidates(), fusion);
}

GroupEnds group_ends(const Configuration& configuration, const Fusion& fusion) {
  const bool in_turn = fusion.cycle == 0 && fusion.order == Fusion::Order::kBackward;
  const bool joins = fusion.rule == Fusion::Rule::kSize || fusion.rule == Fusion::Rule::kCount;
  if (in_turn && joins && !fusion.by_layer) return configuration.units().ends(fusion);
  const auto groups = groups_of(configuration, fusion);
  GroupEnds ends;
  ends.reserve(groups.size());
  std::size_t next = 0;
  for (const auto& group : groups) {
    // All candidates are in some group.
    const auto begin = configuration.candidates().begin() + static_cast<std::ptrdiff_t>(next);
    if (!std::equal(group.begin(), group.end(), begin)) return {};
    next += group.size();
    ends.push_back(static_cast<std::uint32_t>(next));
  }
  return ends;
}

Strategy apply_fusion(const Strategy& configuration, const Fusion& fusion) {
  Strategy strategy = configuration;
  if (fusion != configuration.fusion) set_fusion(strategy, fusion);
  // The rounding of sums belongs to the training, not to the buckets.
  strategy.fusion.sum_format = configuration.fusion.sum_format;
  if (fusion.rule != Fusion::Rule::kNone) strategy.partition = 0;
  return strategy;
}

std::vector<FusionChoice> rule_choices(const Search& search, const Configuration& configuration) {
  return RuleChoices(search, configuration).all();
}

std::optional<FusionChoice> explicit_choice(const Configuration& configuration) {
  const auto ends = configuration.optimum().ends;
  if (ends.empty()) return std::nullopt;
  Fusion fusion = by_ends(ends);
  fusion.align = configuration.strategy().fusion.align;
  return FusionChoice{FusionKind::kExplicit, std::move(fusion)};
}

bool has_unmeasured(const Scenario& scenario, const Strategy& strategy) {
  const CollectiveCostModel& cost_model = scenario.cluster.cost_model;
  if (scenario.cluster.library != Library::kNccl || !cost_model) return false;
  // The cluster's calibration, or its library's model, gives a collective's time.
  const auto unmeasured = [&](const plan::Op& op) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    return collective != nullptr && !collective->nccl && !cost_model(*collective).has_value();
  };
  return std::ranges::any_of(measure::planned_phases(strategy, {}), [&](const auto& phase) {
    const plan::Plan plan =
        plan::make_plan(scenario.workload, scenario.cluster, strategy, phase.point);
    return std::ranges::any_of(plan.ops, unmeasured);
  });
}

struct CandidateSpace::Rules {
  std::vector<FusionChoice> choices;
  std::vector<GroupEnds> ends;  // of each
};

CandidateSpace::CandidateSpace(const Scenario& scenario, const Search& search, const Strategy& base,
                               collective::CostCache& cache)
    : base_(base) {
  // If collectives were measured, strategies on unmeasured links are not compared with them.
  const bool measured = !has_unmeasured(scenario, base);
  const auto left_out = [&](const Strategy& strategy) {
    return measured && has_unmeasured(scenario, strategy);
  };
  add_rows(scenario, left_out);
  KnownRules known;
  // The number of streams varies fastest over the configurations.
  std::vector<Strategy> alike;
  const auto add_alike = [&] {
    if (!alike.empty()) add_configurations(scenario, search, alike, cache, known);
    alike.clear();
  };
  for (Strategy& strategy : strategies_of_configurations(search, base, scenario)) {
    if (left_out(strategy)) {
      const std::string words = "algorithm " + strategy.algorithm;
      if (std::ranges::count(unmeasured_, words) == 0) unmeasured_.push_back(words);
      continue;
    }
    if (!alike.empty() && !differ_in_streams_alone(alike.back(), strategy)) add_alike();
    alike.push_back(std::move(strategy));
  }
  add_alike();
}

// Adds the scenario's strategies: the best is never worse than the user's own.
void CandidateSpace::add_rows(const Scenario& scenario,
                              const std::function<bool(const Strategy&)>& left_out) {
  for (const Strategy& row : scenario.strategies) {
    if (!trains_alike(row, base_)) continue;
    if (left_out(row)) {
      unmeasured_.push_back("'" + row.name + "'");
      continue;
    }
    configurations_.push_back(row);
    points_.push_back(
        {.fusion = row.fusion, .configuration = configurations_.size() - 1, .own_row = true});
  }
}

// Adds configurations that differ in their number of streams alone. Costs and readiness of buckets
// are the same, so that bounds are found together.
void CandidateSpace::add_configurations(const Scenario& scenario, const Search& search,
                                        const std::vector<Strategy>& alike,
                                        collective::CostCache& cache, KnownRules& known) {
  Configuration configuration(scenario, alike.front(), cache);
  std::vector<int> streams;
  for (const Strategy& strategy : alike) streams.push_back(strategy.streams);
  const auto bounds_of = [&](const GroupEnds& ends) {
    return configuration.lower_bounds(ends, streams);
  };
  const auto optimum = search.optimum ? explicit_choice(configuration) : std::nullopt;
  std::vector<Seconds> least;  // bounds of it, by number of streams
  if (optimum) least = bounds_of(group_ends(configuration, optimum->fusion));
  const Rules* rules = nullptr;
  std::vector<std::vector<Seconds>> bounds;  // by choice of these and number of streams
  for (std::size_t k = 0; k < alike.size(); ++k) {
    configurations_.push_back(alike[k]);
    configuration.set_streams(streams[k]);
    const auto [own, fresh] =
        known.try_emplace({configuration.candidates(), excludes_ticks(configuration)});
    if (fresh) {
      own->second.choices = rule_choices(search, configuration);
      for (const FusionChoice& choice : own->second.choices) {
        own->second.ends.push_back(group_ends(configuration, choice.fusion));
      }
    }
    if (rules != &own->second) {
      rules = &own->second;
      bounds.clear();
      for (const GroupEnds& ends : rules->ends) bounds.push_back(bounds_of(ends));
    }
    const auto add = [&](FusionChoice choice, Seconds bound) {
      choice.configuration = configurations_.size() - 1;
      choice.bound = bound;
      points_.push_back(std::move(choice));
    };
    for (std::size_t i = 0; i < bounds.size(); ++i) add(rules->choices[i], bounds[i][k]);
    if (optimum) add(*optimum, least[k]);
  }
}

Strategy CandidateSpace::strategy_of(const FusionChoice& point) const {
  if (point.own_row) return configuration_of(point);
  return name_candidate(apply_fusion(configuration_of(point), point.fusion), point.kind);
}

Strategy CandidateSpace::name_candidate(Strategy strategy, FusionKind kind) const {
  strategy.name =
      kind == FusionKind::kBase ? base_.name + ", as it fuses" : fusion_words(strategy.fusion);
  const std::string words = input::configuration_words(strategy, base_);
  if (!words.empty()) strategy.name += ", " + words;
  return strategy;
}

}  // namespace syncline::tune
