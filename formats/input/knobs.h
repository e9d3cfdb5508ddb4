// The tables of a strategy's knobs, and what follows from them.
#pragma once

#include "core/strategy.h"
#include "formats/input/knob_table.h"

namespace syncline::input {

const KnobTable<Fusion::AssumedCost>& assumed_cost_knobs();
const KnobTable<BucketTraits::Cuts>& cuts_knobs();
// The keys of `fusion` and `hierarchy`: choices of people, and traits of frameworks.
const KnobTable<Strategy>& fusion_knobs();
const KnobTable<Strategy>& hierarchy_knobs();
// Codecs that one sentence describes; each codec has one (a test holds that).
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
// The strategy's own; name, about and what stands in a dialect or a preset are no knobs.
const KnobTable<Strategy>& strategy_knobs();

// When parameters are updated unless a strategy says otherwise.
Strategy::Update usual_update(const Strategy& strategy);

// Whether no knob has moved with which buckets' places in line are not their readiness.
bool in_order_of_readiness(const Strategy& strategy);

// Whether gradients are exchanged otherwise than in full at every step.
bool changes_training(const Strategy& strategy);

// What a strategy does otherwise than `base`, fusion aside: "2 streams, sharded"; may be empty.
std::string configuration_words(const Strategy& strategy, const Strategy& base);

}  // namespace syncline::input
