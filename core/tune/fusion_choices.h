// The fusions that a search tries inside an arm: those of its rules at every size, count or close
// that makes other buckets, and the explicit buckets of the arm's optimum.
#pragma once

#include <optional>
#include <vector>

#include "core/scenario/search.h"
#include "core/tune/arm.h"

namespace syncline::tune {

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

}  // namespace syncline::tune
