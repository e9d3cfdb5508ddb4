// The space that a search declares: its configurations, every combination of the knobs other than
// fusion that fit together; the fusions to try in each; and all candidates with a bound for the
// step time of each.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "formats/input/knobs.h"
#include "formats/scenario/scenario.h"
#include "formats/scenario/search.h"
#include "studies/tune/configuration.h"

namespace syncline::tune {

// What a scenario without a "search" gets: explicit buckets, every threshold of both ways to close
// a bucket (a few sizes under LocalSGD), and, where they fit, one to four streams, both hierarchies
// and every algorithm that the cluster's library chooses by itself (on plain links: all), and
// gradients without copies where those cost and the baseline's framework can spare them, all on the
// baseline; beside them whatever the scenario's other strategies have on these axes, and those
// strategies as they stand. Compression and LocalSGD stay as they are: they change the training.
Search default_search(const Scenario& scenario);

// Whether the two come to the same training: what `strategy` saves is not paid for in accuracy.
bool trains_alike(const Strategy& strategy, const Strategy& base);

// Every combination of the search's axes other than fusion that fits together on this cluster, the
// base's own values first where an axis has them.
std::vector<Strategy> strategies_of_configurations(const Search& search, const Strategy& base,
                                                   const Scenario& scenario);

// "4 explicit buckets", "24.56 MiB", "at most 64 MiB", "12 gradients", "one bucket", ...
std::string fusion_words(const Fusion& fusion);

// What fusions of a kind have in common: the rules of a search at every size, count or close that
// makes other buckets, and the explicit buckets of a configuration's optimum.
enum class FusionKind { kBase, kExplicit, kSizeAfter, kSizeBefore, kCount, kRule, kTicks };

// One way to fuse; in a configuration of a search, a candidate. A search of a large model holds
// thousands of these, each of thousands of groups.
struct FusionChoice {
  FusionKind kind = FusionKind::kBase;
  Fusion fusion;
  std::size_t configuration = 0;
  Seconds bound = 0;     // no run of the candidate takes less by the model
  bool own_row = false;  // a strategy of the scenario, as it stands
};

// The groups of a fusion that looks at sizes alone; none where more decides (ticks, costs).
std::vector<std::vector<int>> groups_of(const Configuration& configuration, const Fusion& fusion);
// Where they end, for Configuration::bound; nothing where they are no runs of its candidates.
GroupEnds group_ends(const Configuration& configuration, const Fusion& fusion);

// The base's own fusion and the choices that follow from rules: the same for all configurations of
// a search with the same candidates.
std::vector<FusionChoice> rule_choices(const Search& search, const Configuration& configuration);
// The explicit buckets of the configuration's optimum; nothing where no gradient can be grouped.
std::optional<FusionChoice> explicit_choice(const Configuration& configuration);

// The configuration's strategy with this fusion; what the fusion rules out (parts of gradients that
// travel alone) is left out.
Strategy fused(const Strategy& configuration, const Fusion& fusion);

// Whether NCCL was calibrated on the cluster, and some collective of the strategy was not.
bool has_unmeasured(const Scenario& scenario, const Strategy& strategy);

// Every candidate: the scenario's own strategies that train alike, each configuration with each of
// its fusions.
class CandidateSpace {
 public:
  // All of `scenario`, `base` and `cache` must outlive this.
  CandidateSpace(const Scenario& scenario, const Search& search, const Strategy& base,
                 collective::CostCache& cache);

  const std::vector<FusionChoice>& points() const { return points_; }
  const Strategy& configuration_of(const FusionChoice& point) const {
    return configurations_[point.configuration];
  }
  // The candidate, named by what it does otherwise than the base.
  Strategy strategy_of(const FusionChoice& point) const;
  Strategy named(Strategy strategy, FusionKind kind) const;
  // What was left out, as a measured cost is no match for one of bare links: the names of rows,
  // and algorithms.
  const std::vector<std::string>& unmeasured() const { return unmeasured_; }

 private:
  const Strategy& base_;
  std::vector<Strategy> configurations_;
  std::vector<FusionChoice> points_;
  std::vector<std::string> unmeasured_;
};

}  // namespace syncline::tune
