// The space that a search declares, as typed strategies: arms (every combination of the knobs that
// fit together) and, inside an arm, the fusions to try.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/scenario/search.h"
#include "core/tune/arm.h"

namespace syncline {

// What a scenario without a "search" gets: explicit buckets, every threshold of both ways to close
// a bucket (a few sizes under LocalSGD), and, where they fit, one to four streams, every algorithm
// and both hierarchies, all on the baseline. Compression and LocalSGD stay as they are: they change
// the training.
Search default_search(const Scenario& scenario);

// Every combination of the search's axes other than fusion that fits together on this cluster, the
// base's own values first where an axis has them.
std::vector<Strategy> arm_strategies(const Search& search, const Strategy& base,
                                     const Cluster& cluster);

enum class FusionKind { kBase, kExplicit, kSizeAfter, kSizeBefore, kCount, kRule, kTicks };

// One way to fuse in an arm, with the groups that it makes.
struct FusionChoice {
  FusionKind kind = FusionKind::kBase;
  Fusion fusion;
  std::vector<std::vector<int>> groups;  // none where more than sizes decides (ticks, prices)
};

// The base's own fusion and the choices that follow from rules: the same for all arms of a search
// with the same candidates.
std::vector<FusionChoice> rule_choices(const Search& search, const Arm& arm);
// The explicit buckets of the arm's optimum; nothing where no gradient can be grouped.
std::optional<FusionChoice> explicit_choice(const Arm& arm);

// The arm's strategy with this fusion; what the fusion rules out (parts of gradients that travel
// alone) is left out.
Strategy fused(const Strategy& arm, const Fusion& fusion);

// Whether gradients are exchanged otherwise than in full at every step.
bool changes_training(const Strategy& strategy);

// "4 explicit buckets", "24.56 MiB", "at most 64 MiB", "12 gradients", "one bucket", ...
std::string fusion_words(const Fusion& fusion);
// What a strategy does otherwise than `base`, fusion aside: "2 streams, sharded"; may be empty.
std::string arm_words(const Strategy& strategy, const Strategy& base);

}  // namespace syncline
