// Two settings of a job, run in turns (`syncline compare`): how many times faster the second is.
#pragma once

#include <string>
#include <vector>

#include "core/measure/uncertainty.h"
#include "reports/answer.h"

namespace syncline::reports {

struct Comparison {
  std::string commands[2];
  std::vector<Seconds> times[2];  // a round each: a step's, or the whole run's
  bool of_steps = false;          // or of whole runs
  bool interrupted = false;
};

// How many times faster the second is, and where that lies with 95 % by Student's t over the
// rounds' logarithms; without an interval for fewer than two rounds.
struct FasterBy {
  double factor = 1;
  std::optional<measure::Interval> interval;
};
FasterBy faster_by(const Comparison& comparison);

Answer answer_of(const Comparison& comparison);

}  // namespace syncline::reports
