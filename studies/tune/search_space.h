// Search space: the configurations, each a valid combination of the knobs other than fusion; the
// fusions of each; and all candidates with a bound of the step time of each.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/input/knobs.h"
#include "formats/scenario/scenario.h"
#include "formats/scenario/search.h"
#include "studies/tune/configuration.h"

namespace syncline::tune {

// Returns the search of a scenario without a "search". On the baseline: explicit buckets, every
// threshold of both ways to close a bucket (a few sizes under LocalSGD). If they fit, also one to
// four streams, both hierarchies, every algorithm that the cluster's library chooses by itself (on
// plain links: all), and gradients without copies if copies cost and the baseline's framework can
// avoid them. Adds values of the scenario's other strategies on these axes, and these strategies
// unchanged. Compression and LocalSGD are fixed: they change the training.
Search default_search(const Scenario& scenario);

// Returns true if both give the same training: time saved by `strategy` costs no accuracy.
bool trains_alike(const Strategy& strategy, const Strategy& base);

// Returns every combination of the search's axes other than fusion that is valid on this cluster,
// the base's own values first.
std::vector<Strategy> strategies_of_configurations(const Search& search, const Strategy& base,
                                                   const Scenario& scenario);

// Returns "4 explicit buckets", "24.56 MiB", "at most 64 MiB", "12 gradients", "one bucket", ...
std::string fusion_words(const Fusion& fusion);

// Kind of a fusion: rules at every size, count or close that gives other buckets, and the explicit
// buckets of a configuration's optimum.
enum class FusionKind { kBase, kExplicit, kSizeAfter, kSizeBefore, kCount, kRule, kTicks };

// One way to fuse; with a configuration, a candidate. A search of a large model stores thousands of
// these, each of thousands of groups.
struct FusionChoice {
  FusionKind kind = FusionKind::kBase;
  Fusion fusion;
  std::size_t configuration = 0;
  Seconds bound = 0;     // lower bound of the candidate's time by the model
  bool own_row = false;  // an unchanged strategy of the scenario
};

// Returns the groups of a fusion by sizes only; empty for other rules (ticks, costs).
std::vector<std::vector<int>> groups_of(const Configuration& configuration, const Fusion& fusion);
// Returns the groups' ends for Configuration::bound; empty if they are no runs of its candidates.
GroupEnds group_ends(const Configuration& configuration, const Fusion& fusion);

// Returns the base's fusion and the choices of rules, equal for all configurations of a search with
// the same candidates.
std::vector<FusionChoice> rule_choices(const Search& search, const Configuration& configuration);
// Returns the explicit buckets of the configuration's optimum; nullopt without candidates.
std::optional<FusionChoice> explicit_choice(const Configuration& configuration);

// Returns the configuration's strategy with this fusion, without features that the fusion excludes
// (parts of gradients with their own exchange).
Strategy apply_fusion(const Strategy& configuration, const Fusion& fusion);

// Returns true if NCCL was calibrated on the cluster, but not for some collective of the strategy.
bool has_unmeasured(const Scenario& scenario, const Strategy& strategy);

// All candidates: the scenario's strategies with the base's training, and each configuration with
// each of its fusions.
class CandidateSpace {
 public:
  // Collects the candidates. Requires that `scenario`, `base` and `cache` outlive this.
  CandidateSpace(const Scenario& scenario, const Search& search, const Strategy& base,
                 collective::CostCache& cache);

  const std::vector<FusionChoice>& points() const { return points_; }
  const Strategy& configuration_of(const FusionChoice& point) const {
    return configurations_[point.configuration];
  }
  // Returns the candidate, named by its differences from the base.
  Strategy strategy_of(const FusionChoice& point) const;
  Strategy name_candidate(Strategy strategy, FusionKind kind) const;
  // Returns the names of rows and algorithms that were left out: a measured cost cannot be compared
  // with one of bare links.
  const std::vector<std::string>& unmeasured_names() const { return unmeasured_; }

 private:
  struct Rules;  // choices of a configuration
  // Rules by a configuration's candidates, and true if it excludes ticks.
  using KnownRules = std::map<std::pair<std::vector<int>, bool>, Rules>;

  void add_rows(const Scenario& scenario, const std::function<bool(const Strategy&)>& left_out);
  void add_configurations(const Scenario& scenario, const Search& search,
                          const std::vector<Strategy>& alike, collective::CostCache& cache,
                          KnownRules& known);

  const Strategy& base_;
  std::vector<Strategy> configurations_;
  std::vector<FusionChoice> points_;
  std::vector<std::string> unmeasured_;
};

}  // namespace syncline::tune
