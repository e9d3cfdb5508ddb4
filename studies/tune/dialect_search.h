// Expresses the winner as a framework's configuration. If the framework cannot, its configurations
// are searched: each is read by the dialect, planned and evaluated. The best is returned with its
// difference from the winner.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/dialect/dialect.h"
#include "studies/tune/evaluator.h"

namespace syncline::tune {

struct Emitted {
  Json config;
  std::string algorithm;     // as dialect::Written::algorithm
  std::string setting;       // as dialect::Written::setting
  Strategy strategy;         // the configuration, read back
  Seconds step_time = 0;     // predicted for `strategy`
  bool exact = false;        // same exchange and step time as the winner
  std::string difference;    // if not exact: difference from the winner
  std::size_t searched = 0;  // number of configurations evaluated
};

// Returns the best configuration. Compression and averaging are the winner's if the dialect has
// them; missing features are named in the difference. Every key of `Dialect::changes` and every
// setting of `Dialect::candidates` is searched, alone and two together: from the winner, from
// `own`, the job's configuration in that dialect (null: none), and from `starts`, such as other
// schemes. Other keys of `own` are kept. Configurations that fit the memory come first. A size that
// is not round must gain 0.5 %, a private variable 1 %. Among those within 0.1 % of the best, the
// one with the fewest collectives wins.
Emitted best_config(const dialect::Dialect& dialect, const Strategy& winner, const Json& own,
                    Evaluator& evaluator, const std::vector<Json>& starts = {});

}  // namespace syncline::tune
