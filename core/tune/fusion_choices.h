// The fusions that a search tries inside a configuration: those of its rules at every size, count
// or close that makes other buckets, and the explicit buckets of the configuration's optimum.
#pragma once

#include <optional>
#include <vector>

#include "core/scenario/search.h"
#include "core/tune/configuration.h"

namespace syncline::tune {

enum class FusionKind { kBase, kExplicit, kSizeAfter, kSizeBefore, kCount, kRule, kTicks };

// One way to fuse in a configuration, with where its groups end (Configuration::bound); nothing
// where they are no runs of the configuration's candidates, or where more than sizes decides. A
// search of a large model holds thousands of these, each of thousands of groups.
struct FusionChoice {
  FusionKind kind = FusionKind::kBase;
  Fusion fusion;
  GroupEnds ends;
};

// The groups of a fusion that looks at sizes alone; none where more decides (ticks, costs).
std::vector<std::vector<int>> groups_of(const Configuration& configuration, const Fusion& fusion);

// The base's own fusion and the choices that follow from rules: the same for all configurations of
// a search with the same candidates.
std::vector<FusionChoice> rule_choices(const Search& search, const Configuration& configuration);
// The explicit buckets of the configuration's optimum; nothing where no gradient can be grouped.
std::optional<FusionChoice> explicit_choice(const Configuration& configuration);

// The configuration's strategy with this fusion; what the fusion rules out (parts of gradients that
// travel alone) is left out.
Strategy fused(const Strategy& configuration, const Fusion& fusion);

}  // namespace syncline::tune
