// What could be done in place of the baseline: the best that trains the same, and of each way to
// round gradients, to compress them or to average more rarely the best; with what each gains, how
// sure that is, and how a user sets it.
#pragma once

#include <string>
#include <vector>

#include "core/input/document.h"
#include "core/measure/advice.h"
#include "core/measure/uncertainty.h"
#include "core/tune/tuning.h"

namespace syncline::tune {

// What gains less over the best that trains the same is not worth another training.
inline constexpr double kClearGain = 0.05;
inline constexpr double kClearChance = 0.8;

// The baseline first, then the best that trains the same, then the others: rounded, changed, each
// with what fits the memory first, and the fastest first. A way that the scenario's own strategies
// or search go is told by those. What neither the framework of `emit` (or of the baseline) nor the
// file of `emit --python` can do is left out, and what is not measured where the baseline is.
void add_alternatives(const input::Document& document, const TuneOptions& options,
                      const dialect::Dialect* emit, Tuning& tuning);

// The fastest of those that train like this and fit, of all where none fits; nullptr where there is
// none. `clearly`: of those that are clearly faster.
const Alternative* best_alternative(const Tuning& tuning, measure::TrainingChange training,
                                    bool clearly = false);

}  // namespace syncline::tune
