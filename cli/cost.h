// What an answer will take, said before it is begun where that is much.
#pragma once

#include <string>
#include <vector>

#include "core/measure/estimate.h"

namespace syncline::cli {

// One sentence an answer that is heavy (measure::is_heavy), for `check`. The same on any machine.
std::vector<std::string> heavy_answers(const Scenario& scenario);

// Says so on standard error where the answer is heavy. Throws MachineError where it needs more
// memory than there is here (the machine's, or the process's own limit): nothing has been begun
// then.
void announce(const Scenario& scenario, measure::Answer answer);

}  // namespace syncline::cli
