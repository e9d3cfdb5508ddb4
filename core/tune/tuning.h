// A scenario tuned: calibration put in place, the search carried out, and everything that is
// reported with the winner. `syncline tune` is this and a printer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/input/document.h"
#include "core/measure/bottleneck.h"
#include "core/tune/certainty.h"
#include "core/tune/dialect_search.h"
#include "core/tune/tuner.h"
#include "core/tune/verdicts.h"

namespace syncline::tune {

struct Tuning {
  Scenario scenario;  // after calibration; its sweep is ignored
  Search search;
  bool own_search = false;  // declared by the scenario; otherwise the default one
  bool calibrated = false;
  measure::Pinned pinned;  // by that
  std::string executor;
  std::string confirmed_by;  // empty: nothing was confirmed
  Tuned tuned;
  measure::Bottleneck bottleneck;  // of the winner
  std::vector<FrameworkDefault> defaults;
  Certainty certainty;
  // Where compression would begin to pay: each strategy of the scenario that compresses against the
  // baseline, or, where only the search does, its best against the best that does not.
  std::vector<BreakEven> break_evens;
  std::vector<Averaging> averaging;
  std::optional<Emitted> emitted;
  std::string emitted_dialect;
  std::vector<std::string> remarks;  // what every verb says of such a scenario (remarks.h)
};

// `emit`: the dialect for the winner's configuration, or nullptr.
Tuning tune_document(const input::Document& document, const TuneOptions& options,
                     const std::string& confirmed_by, const dialect::Dialect* emit);

}  // namespace syncline::tune
