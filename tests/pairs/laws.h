// What holds for every scenario, whatever its figures: the laws that the net over pairs of
// capabilities (net.h) asks of each.
#pragma once

#include <string>
#include <vector>

#include "core/base/units.h"
#include "formats/json/json.h"

namespace syncline::pairs {

// A law that a scenario breaks.
struct Fault {
  std::string law;   // by its name: "more bandwidth", "one number", ...
  std::string what;  // the figures
};

// Which of the laws are asked that cost more than some milliseconds.
struct Asked {
  bool simulated = true;  // merged
  bool in_steps = false;  // message by message
  bool tuned = false;     // tune's row is run's
};

struct Verdict {
  std::string refusal;  // by the readers, as `check` says it; empty: it is a scenario
  std::vector<Fault> faults;
  Seconds step = 0;
  double merged = 0;  // how far the simulation is from the model, of the model's; 0: not asked
  double in_steps = 0;
};

Verdict judge(const Json& scenario, const Asked& asked);

}  // namespace syncline::pairs
