#include "core/tune/fusion_choices.h"

#include <algorithm>
#include <utility>

#include "core/plan/fusion.h"
#include "core/tune/thresholds.h"

namespace syncline::tune {
namespace {

// Where groups end that are runs of the configuration's candidates.
GroupEnds ends_of(const Configuration& configuration, const Fusion& fusion) {
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

// Collects the choices of one configuration, axis by axis of the search; what does not fit is left
// out.
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
    if (configuration_.rules_out(fused(configuration_.strategy(), fusion))) return;
    auto ends = ends_of(configuration_, fusion);
    choices_.push_back({kind, std::move(fusion), std::move(ends)});
  }

  void add_rules() {
    for (const auto rule : search_.rules) {
      Fusion fusion;
      fusion.rule = rule;
      fusion.layer_key = base().layer_key;
      add(FusionKind::kRule, fusion);
    }
  }

  // Every way to close a bucket with every first size, at the sizes asked for and at those where
  // the buckets change.
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

  // Of the sizes that make the same buckets the one that a person would write. Where not every
  // change of the buckets is looked for, and at ticks, the size itself matters.
  void add_breakpoints(const Fusion& form) {
    const auto thresholds =
        size_thresholds(configuration_.tensors(), configuration_.candidates(), form);
    const bool all = configuration_.candidates().size() <= kMostExact;
    const auto ticks = [](Seconds cycle) { return cycle > 0; };
    const bool ticked = form.close == Fusion::Close::kBefore &&
                        std::any_of(search_.cycles.begin(), search_.cycles.end(), ticks);
    for (std::size_t i = 0; i < thresholds.size(); ++i) {
      const Bytes low = thresholds[i];
      const Bytes high = i + 1 < thresholds.size() ? thresholds[i + 1] - 1 : 2 * low;
      add_size(all && !ticked ? roundest_size(low, high) : low, form);
    }
  }

  void add_size(Bytes size, const Fusion& form) {
    Fusion fusion = form;
    fusion.size = std::max<Bytes>(1, size);
    // A size of nothing closes after each gradient, which the rule "none" says in a file.
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
      // At a tick nothing but the size decides.
      if (form.first_size > 0 || form.by_layer) continue;
      Fusion ticked = by_size(std::max<Bytes>(1, size), form.close);
      ticked.cycle = cycle;
      add(FusionKind::kTicks, ticked);
    }
  }

  void add_counts() {
    Fusion counted;
    counted.rule = Fusion::Rule::kCount;
    for (const auto count : search_.counts) {
      counted.count = count;
      add(FusionKind::kCount, counted);
    }
    if (!search_.all_counts) return;
    for (const auto count :
         count_thresholds(configuration_.tensors(), configuration_.candidates(), counted)) {
      counted.count = count;
      add(FusionKind::kCount, counted);
    }
  }

  const Search& search_;
  const Configuration& configuration_;
  std::vector<FusionChoice> choices_;
};

}  // namespace

std::vector<std::vector<int>> groups_of(const Configuration& configuration, const Fusion& fusion) {
  if (fusion.cycle > 0 || fusion.rule == Fusion::Rule::kMgWfbp ||
      fusion.order == Fusion::Order::kForward) {
    return {};
  }
  return plan::fuse(configuration.tensors(), configuration.candidates(), fusion);
}

Strategy fused(const Strategy& configuration, const Fusion& fusion) {
  Strategy strategy = configuration;
  strategy.fusion = fusion;
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
  auto runs = ends_of(configuration, fusion);
  return FusionChoice{FusionKind::kExplicit, std::move(fusion), std::move(runs)};
}

}  // namespace syncline::tune
