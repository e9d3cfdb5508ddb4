// Alternatives to the baseline, each with its gain and the lines that set it: the best with the
// same training, and the best of each way to round or compress gradients or to average less often.
#pragma once

#include <optional>
#include <string>

#include "core/base/units.h"
#include "core/strategy.h"
#include "formats/dialect/dialect.h"
#include "formats/input/document.h"
#include "studies/explain/advice.h"
#include "studies/rows/prediction.h"
#include "studies/tune/dialect_search.h"
#include "studies/tune/tuner.h"

namespace syncline::tune {

struct Tuning;

// Result of trainings: at the end of their curves, as the mean over seeds, or as published.
struct TrainingResult {
  std::string quantity;  // "accuracy", "loss"
  double end = 0;
  std::optional<double> half_width;  // half of its 95 % interval
  std::optional<double> baseline;    // the baseline's result
  bool published = false;  // false: from curves; true: published with the scenario's strategies
};

// An alternative to the baseline. The change is named as its strategy.
struct Alternative : measure::Advice {
  std::string plain;            // its name with the baseline's other knobs; empty: its own
  bool clearly_faster = false;  // than the best of the same training, and it fits
  std::optional<TrainingResult> outcome;  // from curves (studies/worth/curves.h) or others
  std::optional<Emitted> written;         // nullopt: by a file of ours, or not at all
};

// Least gain, and its least chance, over the best of the same training to justify another one.
inline constexpr double kClearGain = 0.05;
inline constexpr double kClearChance = 0.8;

// Lists in `tuning` the baseline, the best of the same training, then the others: rounded, changed,
// each with those that fit the memory first, then by speed. If the scenario's own strategies or
// search cover a way, they represent it. Leaves out alternatives that neither the framework of
// `emit` (or of the baseline) nor the file of `emit --python` supports, and unmeasured ones if the
// baseline is measured. `said`: the best as that framework's settings, if known.
void add_alternatives(const input::Document& document, const TuneOptions& options,
                      const dialect::Dialect* emit, const std::optional<Emitted>& said,
                      Tuning& tuning);

// Returns the fastest alternative of that training that fits, of all if none fits; nullptr if there
// is none. `clearly`: only clearly faster ones.
const Alternative* best_alternative(const Tuning& tuning, measure::TrainingChange training,
                                    bool clearly = false);

}  // namespace syncline::tune
