// The winner as a framework's configuration. Where the framework cannot express it, what it can
// express is searched: each configuration is read by the dialect, planned and evaluated, and the
// best is returned with what it does differently.
#pragma once

#include <optional>
#include <string>

#include "formats/dialect/dialect.h"
#include "studies/tune/evaluator.h"

namespace syncline::tune {

struct Emitted {
  Json config;
  std::string algorithm;     // beside the dialect, and
  std::string setting;       // the library's variable, as in dialect::Written
  Strategy strategy;         // the configuration, read back
  Seconds step_time = 0;     // predicted for what was read back
  bool exact = false;        // the same exchange as the winner's, and its step time
  std::string difference;    // otherwise: what it does differently
  std::size_t searched = 0;  // configurations that were evaluated for it
};

// Compression and averaging are the winner's where the dialect has them; what it lacks is left
// out and named in the difference. Settings that the winner does not speak of are searched too.
// `own`: the job's own configuration in that dialect, whose other keys every configuration keeps;
// null: the job has none. What fits the memory comes first. A size that is not round has to gain
// 0.5 %, a private variable 1 %; of configurations within 0.1 % of the best, the one with the
// fewest collectives.
Emitted best_config(const dialect::Dialect& dialect, const Strategy& winner, const Json& own,
                    Evaluator& evaluator);

}  // namespace syncline::tune
