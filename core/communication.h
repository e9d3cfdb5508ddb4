// What a step communicates, when, and by which collectives: all that the planner knows of a
// strategy. Seconds, bytes, elements; no errors: the strategy was read for this cluster.
#pragma once

#include <cstddef>
#include <vector>

#include "core/cluster.h"
#include "core/plan.h"
#include "core/strategy.h"

namespace syncline::plan {

// One collective on a bucket's way.
struct Leg {
  collective::Collective collective;  // whose bucket the plan fills in
  bool own_stream = false;            // apart from the streams of reduce-scatters
  bool last_micro_batch = false;      // not in the others
};

using Route = std::vector<Leg>;

// A bucket with its way to all ranks and what is done to it before and after.
struct Exchange {
  Bucket bucket;
  Seconds release = -1;  // its tick, from the step's begin; below zero: once it is ready
  Seconds expected = 0;  // with a tick: when it is ready where nothing holds the passes up
  Seconds copy_in = 0;   // on the compute stream, like encoding and copying out
  Seconds encode = 0;
  Seconds decode = 0;  // on its own stream
  Seconds copy_out = 0;
  Seconds apply = 0;       // of averaged parameters: the mean, or the outer step
  Route reduce;            // of gradients, or of parameters that are averaged
  bool scattered = false;  // which ends with a part of the sum on each rank
  int shards = 1;          // ranks that update a part of its parameters each
  Route gather;            // brings the parts to all; empty: nothing to bring, or by a fetch
  Route again;             // likewise for the backward pass; empty: they were not given up
  int needed = 0;          // index of the first tensor whose backward pass waits for `again`
};

// A place in the passes of a micro-batch: ahead of a tensor's layer.
struct Moment {
  bool backward = false;  // pass
  int tensor = 0;         // of the layer, the first one that the pass reaches

  bool operator==(const Moment&) const = default;
};

// Parameters that the passes of a micro-batch gather.
struct Fetch {
  enum class Turn { kEach, kFirst, kLater };
  std::size_t parameters = 0;  // their place among Communication::parameters
  Route route;
  Moment asked;
  Moment needed;
  Turn turn = Turn::kEach;  // micro-batches that gather them so
};

struct Communication {
  int ranks = 1;
  int streams = 1;             // for collectives; 0: they run on the stream that computes
  bool across_stream = false;  // one more, for legs of their own
  // In the order in which they become ready (or are released).
  std::vector<Exchange> gradients;
  std::vector<int> order;            // in which they go; empty: as they are listed
  std::vector<Exchange> parameters;  // gathered in buckets of their own
  bool fetching = false;             // passes gather them, but for those that stay in place,
  std::vector<Fetch> fetches;        // in the order in which they ask for them
  int shards = 1;                    // the most of any exchange
  bool updates_by_bucket = false;    // or all parameters once the last bucket has arrived
  bool each_micro_batch = false;     // exchanges, not the last one alone
  bool cross_step = false;           // the next forward pass waits layer by layer
  int in_flight = 0;                 // exchanges that the backward pass goes on beside; 0: all
  bool by_clock = false;             // ticks come when they are expected, as nothing holds them up
  Seconds host_sync = 0;             // the host's wait behind each collective
  Seconds step_begin = 0;            // what data-parallel running costs ahead of each step,
  Seconds buffer_broadcast = 0;      // and ahead of its forward pass
};

// Of a step that exchanges gradients.
Communication communication_of(const Workload& workload, const Cluster& cluster,
                               const Strategy& strategy, const TrainingPoint& point);

// Parameters that are gathered in one go.
struct FetchGroup {
  std::vector<int> tensors;  // in ascending order
  Moment asked;
  Moment needed;
};

struct FetchTrace {
  std::vector<FetchGroup> groups;  // in the order in which they are asked for
  std::vector<int> most;           // tensors in place, of those, when they have the most elements
};

// Returns what both passes gather, by the rule of DeepSpeed's PartitionedParameterCoordinator. A
// pass enters the model, then each module that a tensor's name tells of; a list of numbered modules
// is none. Requires a strategy that fetches.
FetchTrace fetch_trace(const Workload& workload, const Strategy& strategy);

// Of LocalSGD: a step between two averagings, whose gradients stay in a group, which sees itself as
// the cluster, or on each rank; and what is averaged, by fragment.
Communication local_communication(const Workload& workload, const Cluster& cluster,
                                  const Strategy& strategy, const TrainingPoint& point = {});
std::vector<std::vector<Exchange>> averaged_parameters(const Workload& workload,
                                                       const Cluster& cluster,
                                                       const Strategy& strategy);

}  // namespace syncline::plan
