// One step on the device, taken apart: forward, backward, copies, waiting, update, which add up.
#pragma once

#include <vector>

#include "core/job/kineto/timeline.h"
#include "core/job/observed.h"

namespace syncline::job::kineto {

// What the sizes of gradients may be read from, beside Step::gradients and Step::exchanges.
struct CopyOut {
  Bytes bytes = 0;  // 0: a kernel copied, which does not tell
  Seconds time = 0;
};

struct Sent {
  bool of_gradients = false;
  bool typed = false;       // its number format is told
  std::size_t arrived = 0;  // gradients that had arrived when the host launched it
};

struct DerivedStep {
  Step step;
  std::vector<int> tensors;         // of each gradient: place in Trace::tensors; -1: none
  std::vector<Seconds> complete;    // of each gradient: ready and copied in
  std::vector<CopyOut> copies_out;  // in the device's order
  std::vector<Sent> sent;           // of each exchange
  int passes = 1;                   // backward passes in it
  int exchanging_passes = 1;        // of these, those behind which gradients are exchanged
  int forwards = 0;                 // calls of DistributedDataParallel.forward
  bool copied_in = false;           // by the reducer, whatever it took
  bool hooked = false;              // by its way for communication hooks
};

// Requires arrivals in the window. Gradients have no sizes yet (sizes.h).
DerivedStep derive_step(const Trace& trace, const TraceTimeline& timeline,
                        const std::vector<Arrival>& arrivals, const StepWindow& window);

}  // namespace syncline::job::kineto
