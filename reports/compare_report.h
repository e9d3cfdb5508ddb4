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

// What a job's output says of its steps: Megatron's "elapsed time per iteration", "step time", a
// bar's it/s, tokens or samples a second; or what `own` finds, whose group is a time in seconds, or
// a rate where `rate`. Of the later three quarters the median; of a rate its inverse. Nothing: the
// output has none. Throws InputError for an expression that is none, or has no group.
std::optional<Seconds> step_in(const std::string& output, const std::string& own, bool rate);

}  // namespace syncline::reports
