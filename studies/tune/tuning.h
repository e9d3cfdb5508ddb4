// A scenario tuned: calibration put in place, the search carried out, and everything that is
// reported with the winner. `syncline tune` is this and a printer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/input/document.h"
#include "studies/explain/explanation.h"
#include "studies/rows/uncertainty.h"
#include "studies/tune/alternatives.h"
#include "studies/tune/certainty.h"
#include "studies/tune/dialect_search.h"
#include "studies/tune/schemes.h"
#include "studies/tune/tuner.h"
#include "studies/tune/verdicts.h"

namespace syncline::tune {

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
  std::vector<measure::ReadScheme> schemes;  // of the framework that fit, beside the document's
  std::optional<Ranked> taken;               // the alternative that was asked for
  std::optional<Emitted> emitted;            // of that, or of the best
  std::string emitted_dialect;
  std::vector<std::string> warnings;  // what every verb says of such a scenario (warnings.h)
  measure::MemoryLack shortage;       // empty: all strategies fit
  bool fits = true;                   // the best; else the last alternative may, with other keys
};

// `emit`: the dialect for the winner's configuration, or nullptr.
Tuning tune_document(const input::Document& document, const TuneOptions& options,
                     const std::string& confirmed_by, const dialect::Dialect* emit);

// What of a search's findings a job can apply by one Python file (formats/dialect/pytorch_apply.h).

// The alternative that was asked for. Otherwise the best of what was found that the file can carry
// out: the choice, wherever it can be; the choice itself too where nothing can.
const Ranked& best_to_apply(const Tuning& tuning);

}  // namespace syncline::tune
