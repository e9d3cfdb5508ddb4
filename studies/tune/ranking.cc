#include "studies/tune/ranking.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "formats/input/knobs.h"
#include "formats/text/digits.h"
#include "studies/tune/thresholds.h"

namespace syncline::tune {
namespace {

double rounded(Seconds seconds) { return significant(seconds, 10); }

// Returns whether the ranking has a candidate of the same figures: it differs in knobs or in its
// rule, but they change nothing here (streams that are never busy together).
bool ranked_already(const Ranked& ranked, const Tuned& tuned) {
  const auto alike = [&](Seconds measure::Metrics::*figure, const Ranked& other) {
    return rounded(other.metrics.*figure) == rounded(ranked.metrics.*figure);
  };
  using measure::Metrics;
  return std::ranges::any_of(tuned.ranking, [&](const Ranked& other) {
    return alike(&Metrics::step_time, other) && alike(&Metrics::communication, other) &&
           alike(&Metrics::exposed, other) &&
           other.metrics.collectives == ranked.metrics.collectives &&
           other.metrics.bytes_on_wire == ranked.metrics.bytes_on_wire;
  });
}

}  // namespace

void add_slower(Ranked ranked, Tuned& tuned) {
  if (!shorter(tuned.winner().metrics.step_time, ranked.metrics.step_time)) return;
  if (ranked_already(ranked, tuned)) return;
  const auto behind =
      std::find_if(tuned.ranking.begin() + 1, tuned.ranking.end(), [&](const Ranked& other) {
        return shorter(ranked.metrics.step_time, other.metrics.step_time);
      });
  tuned.ranking.insert(behind, std::move(ranked));
}

void Ranking::rank() {
  tuned_.ranking.clear();
  tuned_.best_of_kind.clear();
  tuned_.best_explicit = tuned_.best_threshold = std::nullopt;
  tuned_.best_as_before = tuned_.best_changed = std::nullopt;
  // Among equals the simplest is first, then the one that was written first.
  std::vector<GroupBest*> bests;
  for (auto& [key, best] : walk_.groups()) bests.push_back(&best);
  std::map<const GroupBest*, int> effort;
  for (const GroupBest* best : bests) effort[best] = effort_of(*best);
  std::ranges::stable_sort(bests, {}, [&](const GroupBest* best) {
    return std::tuple(!best->fits, rounded(best->step), effort.at(best), best->index);
  });
  if (!bests.empty()) tuned_.fastest = bests.front()->step;
  tuned_.ranking.push_back(bests.empty() ? tuned_.baseline : recommend(bests));
  // The best of each kind and of either way to train, and slower ones.
  std::size_t place = 0;
  for (const GroupBest* best : bests) {
    tuned_.best_of_kind.try_emplace(best->ranked.kind, best->ranked);
    auto& best_so = input::changes_training(best->ranked.strategy) ? tuned_.best_changed
                                                                   : tuned_.best_as_before;
    if (!best_so) best_so = best->ranked;
    const bool certain = place++ < walk_.certain();
    if (certain && tuned_.ranking.size() < options_.top) add_slower(rounder(*best), tuned_);
  }
  // Kinds that a framework's threshold can say, against explicit buckets.
  for (const GroupBest* best : bests) {
    const FusionKind kind = best->ranked.kind;
    const bool by_size = kind == FusionKind::kSizeAfter || kind == FusionKind::kSizeBefore ||
                         kind == FusionKind::kTicks;
    if (kind == FusionKind::kExplicit && !tuned_.best_explicit) {
      tuned_.best_explicit = best->ranked;
    }
    if (by_size && !tuned_.best_threshold) tuned_.best_threshold = rounder(*best);
  }
}

// Returns the simplest of those that no measurement could tell apart, of those alike the one with
// the fewest collectives.
const GroupBest& Ranking::simplest(const std::vector<GroupBest*>& bests) const {
  const Seconds limit = bests.front()->step * (1 + kEqual);
  const auto end = std::find_if(bests.begin(), bests.end(), [&](const GroupBest* best) {
    return best->step > limit || best->fits != bests.front()->fits;
  });
  return **std::ranges::min_element(bests.begin(), end, {}, [&](const GroupBest* best) {
    return std::pair(effort_of(*best), best->ranked.metrics.collectives);
  });
}

// Returns the simplest of a round size; a row of the scenario that is no slower than that stays.
Ranked Ranking::recommend(const std::vector<GroupBest*>& bests) {
  const GroupBest& simple = simplest(bests);
  const Ranked* own = nullptr;
  Ranked round = rounder(simple);
  int least = effort_of(simple);
  for (const GroupBest* best : bests) {
    const bool row = points()[best->index].own_row && best->fits == simple.fits;
    if (!row || best->step > round.metrics.step_time * (1 + kEqual)) continue;
    if (effort_of(*best) >= least) continue;
    least = effort_of(*best);
    own = &best->ranked;
  }
  return own != nullptr ? *own : round;
}

// Returns the candidate with a size that a person would write, if that costs little.
Ranked Ranking::rounder(const GroupBest& best) {
  const Ranked& found = best.ranked;
  const bool by_size =
      found.strategy.fusion.rule == Fusion::Rule::kSize &&
      (found.kind == FusionKind::kSizeAfter || found.kind == FusionKind::kSizeBefore);
  if (!by_size || points()[best.index].own_row || !evaluator_.traits().cheap ||
      !search_.breakpoints) {
    return found;
  }
  const auto [known, fresh] = round_.try_emplace({best.index, found.strategy.fusion.size}, found);
  if (!fresh) return known->second;
  for (const Bytes size : rounder_sizes(found.strategy.fusion.size)) {
    Fusion fusion = found.strategy.fusion;
    fusion.size = size;
    const Strategy named =
        walk_.space().name_candidate(apply_fusion(found.strategy, fusion), found.kind);
    Ranked round{{walk_.metrics_of(named, points()[best.index].configuration)}, named, found.kind};
    if (round.metrics.step_time > best.step * (1 + kRoundness)) continue;
    known->second = std::move(round);
    break;
  }
  return known->second;
}

// Returns the effort of setting a candidate up: 0 for the baseline, 1 for the scenario's other
// strategies, then more for each knob, most for buckets by hand.
int Ranking::effort_of(const GroupBest& best) const {
  const Strategy& strategy = best.ranked.strategy;
  if (points()[best.index].own_row) return strategy.name == scenario_.baseline ? 0 : 1;
  const std::string words = input::configuration_words(strategy, tuned_.base);
  const auto knobs = words.empty() ? 0 : 1 + std::count(words.begin(), words.end(), ',');
  const bool by_hand = best.ranked.kind == FusionKind::kExplicit;
  return 2 + static_cast<int>(knobs) * 10 + (by_hand ? 5 : static_cast<int>(best.ranked.kind));
}

}  // namespace syncline::tune
