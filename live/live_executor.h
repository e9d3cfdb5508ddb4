// An executor whose ranks are processes of their own: what the backends have beside the seam of
// core/run/executor.h.
#pragma once

#include <string>

#include "core/run/executor.h"

namespace syncline {

// run() is called on every rank with the same plan; `input` holds this rank's gradients in its
// place, the others' may be empty. Outcome: the timeline of all ranks on rank 0's clock, on every
// rank alike; gradients of this rank only.
class LiveExecutor : public Executor {
 public:
  // Of the last run: no rank's times are further off than this.
  virtual Seconds clock_error() const = 0;
  // The library and its version, the transport: for the report.
  virtual std::string hardware() const = 0;
};

}  // namespace syncline
