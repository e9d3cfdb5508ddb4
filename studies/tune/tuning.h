// Tunes a scenario: applies its calibration, carries out the search and collects all that is
// reported with the winner. `syncline tune` prints the result.
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
  bool own_search = false;  // declared by the scenario; false: the default one
  bool calibrated = false;
  measure::FitErrors fit_errors;  // errors of the calibration
  std::string executor;
  std::string confirmed_by;  // empty: not confirmed
  Tuned tuned;
  measure::Bottleneck bottleneck;  // the winner's
  std::vector<Alternative> alternatives;
  // Step times with DDP over its bucket cap and the other keys of that configuration, if DDP is
  // asked for (`emit`, else the baseline's framework); else empty.
  std::vector<CurvePoint> ddp_curve;
  std::vector<FrameworkDefault> defaults;
  Certainty certainty;
  std::optional<NextMeasurement> next;  // if the choice is open
  // Break-evens of compression: each compressing strategy of the scenario against the baseline. If
  // only the search compresses: its best with compression against the best without.
  std::vector<BreakEven> break_evens;
  std::vector<Averaging> averaging;
  std::vector<measure::ReadScheme> schemes;  // fitting schemes of the framework, not the document's
  std::optional<Ranked> taken;               // the requested alternative
  std::optional<Emitted> emitted;            // configuration of `taken`, or of the best
  std::string emitted_dialect;
  std::vector<std::string> warnings;  // warnings of the scenario, as in every verb (warnings.h)
  measure::MemoryLack shortage;       // empty: all strategies fit
  bool fits = true;  // the best fits; if not, the last alternative may, with other keys
};

// Tunes the document. `emit`: dialect for the winner's configuration, or nullptr.
Tuning tune_document(const input::Document& document, const TuneOptions& options,
                     const std::string& confirmed_by, const dialect::Dialect* emit);

// Chooses the result that a job can apply by one Python file (formats/dialect/pytorch_apply.h).

// Returns the requested alternative. Otherwise returns the best result that the file can carry out,
// or the choice itself if the file can carry out no result.
const Ranked& best_to_apply(const Tuning& tuning);

}  // namespace syncline::tune
