// PyTorch execution traces (torch.profiler.ExecutionTraceObserver): the operations of the host with
// the shapes they were given, and no times. Gradients come from the nodes of AccumulateGrad, in the
// order in which they ran; collectives from c10d's and the backend's nodes. Which gradients a
// bucket holds is told by the memory that they were copied into; without such copies
// (gradient_as_bucket_view) by the sizes, where the next gradients' sum is the collective's.
#pragma once

#include <string>
#include <vector>

#include "core/job/format.h"
#include "core/job/observed.h"

namespace syncline::job::execution_trace {

bool recognises(const Head& head);

// One file a rank. Observed::timed is false. Throws InputError, naming the file: damaged JSON, or a
// trace without a gradient or a collective, with what to record instead.
Observed read(const std::vector<std::string>& files);

// The same of one rank's text; `name` stands for the file in messages, `rank` for the rank where
// the trace does not tell it.
Observed observed_from_text(const std::string& name, const std::string& text, int rank = 0);

}  // namespace syncline::job::execution_trace
