// The nodes of an execution trace -> the steps of one rank.
#pragma once

#include <string>
#include <vector>

#include "core/job/execution_trace/nodes.h"
#include "core/job/observed.h"

namespace syncline::job::execution_trace {

// What the copies between gradients and buckets look like: DDP's own, a communication hook's, or
// none, where gradients are views of their bucket.
enum class Copies { kNone, kOwn, kHook };

struct Steps {
  std::vector<Step> list;  // with gradients or collectives, in order
  Copies copies = Copies::kNone;
  int accumulation = 1;  // backward passes a step, of which the last one is listed
  int other_types = 0;   // collectives whose numbers are no gradients' (integers), left out
  int world_size = 1;    // the largest group
  int rank = -1;         // in that group; -1: not told
  std::string backend;   // "nccl", "gloo"; empty: not told
  std::vector<std::string> warnings;
};

// A step begins with ProfilerStep#N; in a trace without those, behind each Optimizer.step.
Steps steps_of(const Trace& trace);

}  // namespace syncline::job::execution_trace
