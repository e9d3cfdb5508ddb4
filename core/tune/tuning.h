// A scenario tuned: calibration put in place, the search carried out, and everything that is
// reported with the winner. `syncline tune` is this and a printer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/input/document.h"
#include "core/measure/advice.h"
#include "core/measure/explanation.h"
#include "core/measure/memory.h"
#include "core/measure/uncertainty.h"
#include "core/tune/certainty.h"
#include "core/tune/dialect_search.h"
#include "core/tune/tuner.h"
#include "core/tune/verdicts.h"

namespace syncline::tune {

// What trainings came to: at the end of their curves, by the mean of their seeds, or as published.
struct TrainingResult {
  std::string quantity;  // "accuracy", "loss"
  double end = 0;
  std::optional<double> half_width;  // of its 95 % interval
  std::optional<double> baseline;    // what the baseline's came to
  bool published = false;            // beside the scenario's strategies
};

// What could be done in place of the baseline.
struct Alternative {
  Strategy strategy;
  std::string plain;  // its name with the baseline's other knobs; empty: its own
  measure::TrainingChange training = measure::TrainingChange::kSame;
  Seconds step_time = 0;
  measure::Sensitivity sensitivity;
  measure::Memory memory;
  measure::Interval step;                 // 80 % of the step time
  double speedup = 1;                     // over the baseline
  measure::Interval gain;                 // 80 % of that
  bool clearly_faster = false;            // than whatever trains the same, and it fits
  std::string set_with;                   // the lines, or keys, that set it
  std::optional<TrainingResult> outcome;  // where curves (core/worth/curves.h) or others tell
  std::optional<Emitted> written;         // nothing: by a file of ours, or not at all
};

struct Tuning {
  Scenario scenario;  // after calibration; its sweep is ignored
  Search search;
  bool own_search = false;  // declared by the scenario; otherwise the default one
  bool calibrated = false;
  measure::FitErrors fit_errors;  // by that
  std::string executor;
  std::string confirmed_by;  // empty: nothing was confirmed
  Tuned tuned;
  measure::Bottleneck bottleneck;  // of the winner
  std::vector<Alternative> alternatives;
  // DDP's own steps over its cap, where it is asked (`emit`, else the baseline's framework), with
  // the other keys of that configuration; empty: it is not.
  std::vector<CurvePoint> ddp_curve;
  std::vector<FrameworkDefault> defaults;
  Certainty certainty;
  std::optional<NextMeasurement> next;  // where the choice is open
  // Where compression would begin to pay: each strategy of the scenario that compresses against the
  // baseline, or, where only the search does, its best against the best that does not.
  std::vector<BreakEven> break_evens;
  std::vector<Averaging> averaging;
  std::optional<Ranked> taken;     // the alternative that was asked for
  std::optional<Emitted> emitted;  // of that, or of the best
  std::string emitted_dialect;
  std::vector<std::string> warnings;  // what every verb says of such a scenario (warnings.h)
};

// `emit`: the dialect for the winner's configuration, or nullptr.
Tuning tune_document(const input::Document& document, const TuneOptions& options,
                     const std::string& confirmed_by, const dialect::Dialect* emit);

// What of a search's findings a job can apply by one Python file (core/dialect/pytorch_apply.h).

// The alternative that was asked for. Otherwise the best of what was found that the file can carry
// out: the choice, wherever it can be; the choice itself too where nothing can.
const Ranked& best_to_apply(const Tuning& tuning);

// What could be done in place of the baseline: the best that trains the same, and of each way to
// round gradients, to compress them or to average more rarely the best; with what each gains, how
// sure that is, and how a user sets it.

// What gains less over the best that trains the same is not worth another training.
inline constexpr double kClearGain = 0.05;
inline constexpr double kClearChance = 0.8;

// The baseline first, then the best that trains the same, then the others: rounded, changed, each
// with what fits the memory first, and the fastest first. A way that the scenario's own strategies
// or search go is told by those. What neither the framework of `emit` (or of the baseline) nor the
// file of `emit --python` can do is left out, and what is not measured where the baseline is.
// `said`: the best in that framework's words, where it is known.
void add_alternatives(const input::Document& document, const TuneOptions& options,
                      const dialect::Dialect* emit, const std::optional<Emitted>& said,
                      Tuning& tuning);

// The fastest of those that train like this and fit, of all where none fits; nullptr where there is
// none. `clearly`: of those that are clearly faster.
const Alternative* best_alternative(const Tuning& tuning, measure::TrainingChange training,
                                    bool clearly = false);

}  // namespace syncline::tune
