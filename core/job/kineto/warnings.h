// What a reader of the imported job must know before believing it.
#pragma once

#include <string>
#include <vector>

#include "core/job/observed.h"

namespace syncline::job::kineto {

// Of the reading, beside what was observed; of the first rank where they differ.
struct ReadFacts {
  std::size_t operators_a_step = 0;
  bool collectives_on_device = true;
  bool world_told = false;  // a file names the number of ranks
  bool agreed = true;       // the ranks agree on what their collectives carry
};

// Sets `observed.warnings`, the gravest first, `notes` of the reading behind them.
void warn(Observed& observed, const ReadFacts& facts, std::vector<std::string> notes);

}  // namespace syncline::job::kineto
