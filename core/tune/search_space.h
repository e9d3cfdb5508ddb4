// The space that a search declares, as typed strategies: its configurations, every combination of
// the knobs other than fusion that fit together, and words for what distinguishes them. The fusions
// to try in a configuration are in fusion_choices.h.
#pragma once

#include <string>
#include <vector>

#include "core/input/knobs.h"
#include "core/scenario/scenario.h"
#include "core/scenario/search.h"

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

}  // namespace syncline::tune
