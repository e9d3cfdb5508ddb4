// A live search as the options have it: its report before anything was measured, its journal, and
// the answer.
#pragma once

#include <memory>
#include <string>

#include "cli/tune_live.h"
#include "core/tune/emulated_search.h"
#include "core/tune/journal.h"
#include "core/tune/live_report.h"

namespace syncline::cli {

// What the search is, beside its machine: which machine it believes in is part of that.
std::string identity(const input::Document& document, const LiveVerbOptions& options);

class LiveVerb {
 public:
  // Both must outlive this.
  LiveVerb(const LiveVerbOptions& options, const input::Document& document)
      : options_(options), document_(document) {}

  tune::LiveReport begin(const input::Document& fitted, const Scenario& scenario) const;

  // nullptr: nothing is kept.
  tune::Journal* open_journal(const tune::LiveReport& report, const tune::LiveObjective& machine);

  // Prints the answer, and how to go on where the search was interrupted.
  int answer(tune::ModelTruth& truth, tune::LiveReport& report) const;

 private:
  const LiveVerbOptions& options_;
  const input::Document& document_;
  std::unique_ptr<tune::Journal> journal_;
};

}  // namespace syncline::cli
