// The tables of a strategy's knobs, and functions that follow from them.
#pragma once

#include "core/strategy.h"
#include "formats/input/knob_table.h"

namespace syncline::input {

const KnobTable<Fusion::AssumedCost>& assumed_cost_knobs();
const KnobTable<BucketTraits::Cuts>& cuts_knobs();
// Returns the keys of `fusion` and `hierarchy`: users' choices, and traits of frameworks.
const KnobTable<Strategy>& fusion_knobs();
const KnobTable<Strategy>& hierarchy_knobs();
// Codecs that share one sentence of description; each codec has one (a test checks that).
struct CodecWords {
  std::vector<std::string> names;
  std::string meaning;
};
const std::vector<CodecWords>& codec_words();

const KnobTable<Compression>& compression_knobs();
const KnobTable<Outer>& outer_knobs();
const KnobTable<Fetches>& fetch_knobs();
const KnobTable<LocalSgd>& local_sgd_knobs();
const KnobTable<ComputeFusion>& compute_fusion_knobs();
// Returns the strategy's own knobs: not its name, about, or the keys of a dialect or a preset.
const KnobTable<Strategy>& strategy_knobs();

// Returns the usual update of parameters, for a strategy that does not set it.
Strategy::Update usual_update(const Strategy& strategy);

// Returns true if all knobs that moved leave the buckets in order of their readiness.
bool in_order_of_readiness(const Strategy& strategy);

// Returns true unless gradients are exchanged in full at every step.
bool changes_training(const Strategy& strategy);

// Returns the differences of a strategy to `base`, fusion aside: "2 streams, sharded"; or empty.
std::string configuration_words(const Strategy& strategy, const Strategy& base);

}  // namespace syncline::input
