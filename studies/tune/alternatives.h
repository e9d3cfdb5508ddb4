// Alternatives to the baseline: the best that trains the same, and the best of each way to round or
// compress gradients or to average more rarely, each with its gain and the lines that set it.
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

// What trainings came to: at the end of their curves, by the mean of their seeds, or as published.
struct TrainingResult {
  std::string quantity;  // "accuracy", "loss"
  double end = 0;
  std::optional<double> half_width;  // of its 95 % interval
  std::optional<double> baseline;    // what the baseline's came to
  bool published = false;            // beside the scenario's strategies
};

// What could be done in place of the baseline.
struct Alternative : measure::Prediction {
  Strategy strategy;
  std::string plain;  // its name with the baseline's other knobs; empty: its own
  measure::TrainingChange training = measure::TrainingChange::kSame;
  bool clearly_faster = false;            // than whatever trains the same, and it fits
  std::string set_with;                   // the lines, or keys, that set it
  std::optional<TrainingResult> outcome;  // where curves (studies/worth/curves.h) or others tell
  std::optional<Emitted> written;         // nothing: by a file of ours, or not at all
};

// What gains less over the best that trains the same is not worth another training.
inline constexpr double kClearGain = 0.05;
inline constexpr double kClearChance = 0.8;

// Lists in `tuning` the baseline first, then the best that trains the same, then the others:
// rounded, changed, each with what fits the memory first, and the fastest first. A way that the
// scenario's own strategies or search go is told by those. What neither the framework of `emit` (or
// of the baseline) nor the file of `emit --python` can do is left out, and what is not measured
// where the baseline is. `said`: the best in that framework's words, where it is known.
void add_alternatives(const input::Document& document, const TuneOptions& options,
                      const dialect::Dialect* emit, const std::optional<Emitted>& said,
                      Tuning& tuning);

// Finds the fastest of those that train like this and fit, of all if none fits; nullptr if there is
// none. `clearly`: of those that are clearly faster.
const Alternative* best_alternative(const Tuning& tuning, measure::TrainingChange training,
                                    bool clearly = false);

}  // namespace syncline::tune
