// The fusions that a search tries inside an arm: those of its rules at every size, count or close
// that makes other buckets, and the explicit buckets of the arm's optimum.
#pragma once

#include <optional>
#include <vector>

#include "core/scenario/search.h"
#include "core/tune/arm.h"

namespace syncline::tune {

enum class FusionKind { kBase, kExplicit, kSizeAfter, kSizeBefore, kCount, kRule, kTicks };

// One way to fuse in an arm, with where its groups end (Arm::bound); nothing where they are no runs
// of the arm's candidates, or where more than sizes decides. A search of a large model holds
// thousands of these, each of thousands of groups.
struct FusionChoice {
  FusionKind kind = FusionKind::kBase;
  Fusion fusion;
  GroupEnds ends;
};

// The groups of a fusion that looks at sizes alone; none where more decides (ticks, prices).
std::vector<std::vector<int>> groups_of(const Arm& arm, const Fusion& fusion);

// The base's own fusion and the choices that follow from rules: the same for all arms of a search
// with the same candidates.
std::vector<FusionChoice> rule_choices(const Search& search, const Arm& arm);
// The explicit buckets of the arm's optimum; nothing where no gradient can be grouped.
std::optional<FusionChoice> explicit_choice(const Arm& arm);

// The arm's strategy with this fusion; what the fusion rules out (parts of gradients that travel
// alone) is left out.
Strategy fused(const Strategy& arm, const Fusion& fusion);

}  // namespace syncline::tune
