// The steps of a trace: from where to where the host launched what belongs to each.
#pragma once

#include <string>
#include <vector>

#include "core/job/kineto/timeline.h"

namespace syncline::job::kineto {

// AccumulateGrad of one gradient.
struct Arrival {
  Nanoseconds start = 0;    // the host begins to take it
  Nanoseconds settled = 0;  // what was launched until here may have produced it
  Nanoseconds end = 0;
  int thread = 0;
  int tensor = -1;  // place in Trace::tensors
};

// By start. Where torch tells the engine's call and the node in it, both are one arrival.
std::vector<Arrival> arrivals_of(const Trace& trace);

// All-reduces of gradients: those that the reducer's hooks launched, inside an arrival; where there
// are none of those, all behind a step's first arrival (by hand behind the backward pass; by
// torches that tell no engine calls). SyncBatchNorm has others, between arrivals.
void mark_gradient_exchanges(Timeline& timeline, const std::vector<Arrival>& arrivals);

struct StepWindow {
  int number = 0;
  Nanoseconds start = 0;
  Nanoseconds end = 0;
  bool marked = true;  // by the profiler, so that its length is the host's
  int profiled = 1;    // ProfilerSteps in it: those without an exchange are joined to the next
};

// ProfilerStep#N; without them the host's time is cut behind every Optimizer.step, else in front
// of every DistributedDataParallel.forward, else it is one step. Windows without an arrival are
// left out and named in `notes`; those that do not exchange although others do are folded into the
// next one that does.
std::vector<StepWindow> windows_of(const Trace& trace, const Timeline& timeline,
                                   const std::vector<Arrival>& arrivals,
                                   std::vector<std::string>& notes);

// "3, 5, 6".
std::string listed(const std::vector<int>& numbers);

}  // namespace syncline::job::kineto
