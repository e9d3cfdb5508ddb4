// One collective in simulated time. Two implementations, one per grain; plan_run drives one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/collective/network.h"
#include "core/executor.h"
#include "core/plan.h"
#include "core/sim/flows.h"
#include "core/sim/fluid.h"

namespace syncline::sim {

// Kinds of tokens. plan_run owns the first, a CollectiveRun the others.
enum TokenKind : std::int32_t { kOpDone, kWoke, kFlowDone, kArrived };

class CollectiveRun {
 public:
  virtual ~CollectiveRun() = default;
  virtual FluidPlan fluid_plan() const = 0;
  // Begins the collective of operation `op` as `instance`. Returns true if it was over at once.
  virtual bool start(Fluid& fluid, int instance, plan::OpId op) = 0;
  // Takes a token of another kind than kOpDone. Returns the instance that ended with it, or -1.
  virtual int handle(Fluid& fluid, Fluid::Token token) = 0;
};

// Returns runs that merge rounds with the same link load into one flow per edge, after their
// latencies. For one job, or several on one fabric, in this order; all have the same fluid plan.
std::vector<std::unique_ptr<CollectiveRun>> make_merged_runs(const std::vector<run::Beside>& jobs,
                                                             bool fold);

// Returns a run of every message of every round. A rank begins its next round when all that it sent
// in the last one has left it and all that it awaited has arrived. A receiver takes messages in the
// order of its rounds, the next as soon as the last is off the wire. With `fold`, ranks with equal
// messages are one, and a collective alone on the network skips rounds that repeat (pace.h).
// Requires that no cost model gives a collective's time: such plans run merged.
std::unique_ptr<CollectiveRun> make_step_run(const plan::Plan& plan, const Cluster& cluster,
                                             bool fold);

}  // namespace syncline::sim
