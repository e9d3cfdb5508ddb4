// The communication of a step: its collectives and when they run. It is all that the planner knows
// of a strategy. Seconds, bytes, elements; no errors: the strategy was read for this cluster.
#pragma once

#include <cstddef>
#include <vector>

#include "core/cluster.h"
#include "core/plan.h"
#include "core/strategy.h"

namespace syncline::plan {

// One collective on the route of a bucket.
struct RouteStep {
  collective::Collective collective;  // its `bucket` is set by the plan
  bool own_stream = false;            // true: not on the streams of reduce-scatters
  bool last_micro_batch = false;      // true: not in the other micro-batches
};

using Route = std::vector<RouteStep>;

// A bucket, its route to all ranks, and its processing before and after.
struct BucketExchange {
  Bucket bucket;
  Seconds release = -1;  // seconds from the step's begin to its tick; negative: once it is ready
  Seconds expected = 0;  // with a tick: when it is ready if the passes are not delayed
  Seconds copy_in = 0;   // on the compute stream, like encoding and copying out
  Seconds encode = 0;
  Seconds decode = 0;  // on its own stream
  Seconds copy_out = 0;
  Seconds apply = 0;       // of averaged parameters: the mean or the outer step
  Route reduce;            // of gradients, or of parameters that are averaged
  bool scattered = false;  // `reduce` ends with a part of the sum on each rank
  int shards = 1;          // ranks that each update a part of its parameters
  Route gather;            // brings the parts to all ranks; empty: not needed, or done by a fetch
  Route regather;          // all-gather before the backward pass; empty: parameters were kept
  int needed = 0;          // index of the first tensor whose backward pass waits for `again`
};

// A position in the passes of a micro-batch: before a tensor's layer.
struct Moment {
  bool backward = false;  // pass; false: the forward pass
  int tensor = 0;         // first tensor of the layer that the pass reaches

  bool operator==(const Moment&) const = default;
};

// Parameters that the passes of a micro-batch gather.
struct Fetch {
  enum class Turn { kEach, kFirst, kLater };
  std::size_t parameters = 0;  // index in Communication::parameters
  Route route;
  Moment asked;
  Moment needed;
  Turn turn = Turn::kEach;  // micro-batches that gather them this way
};

struct Communication {
  int ranks = 1;
  int streams = 1;             // for collectives; 0: they run on the stream that computes
  bool across_stream = false;  // true: one more stream, for legs with own_stream
  // Ordered by readiness (or release).
  std::vector<BucketExchange> gradients;
  std::vector<int> order;                  // in which they are sent; empty: as listed
  std::vector<BucketExchange> parameters;  // gathered in buckets of their own
  bool fetching = false;           // passes gather parameters, except those that stay in place
  std::vector<Fetch> fetches;      // in the order of their `asked`
  int shards = 1;                  // maximum over the exchanges
  bool updates_by_bucket = false;  // false: all parameters once the last bucket has arrived
  bool each_micro_batch = false;   // exchanges run in each micro-batch, not only in the last
  bool gathers_each_pass = false;  // parameters, also in micro-batches that exchange nothing
  bool cross_step = false;         // true: the next forward pass waits layer by layer
  int in_flight = 0;               // unfinished exchanges during the backward pass; 0: all
  bool by_clock = false;           // ticks come at expected times, because no pass is delayed
  Seconds host_sync = 0;           // the host's wait after each collective
  Seconds step_begin = 0;          // data-parallel overhead before each step
  Seconds buffer_broadcast = 0;    // before the step's forward pass
};

// Returns the communication of a step that exchanges gradients.
Communication communication_of(const Workload& workload, const Cluster& cluster,
                               const Strategy& strategy, const TrainingPoint& point);

// Parameters that are gathered together.
struct FetchGroup {
  std::vector<int> tensors;  // in ascending order
  Moment asked;
  Moment needed;
};

struct FetchTrace {
  std::vector<FetchGroup> groups;  // ordered by `asked`
  std::vector<int> most;           // tensors in place when they have the most elements
};

// Returns the gathers of both passes, by the rule of DeepSpeed's PartitionedParameterCoordinator. A
// pass enters the model, then each module that a tensor's name contains; a list of numbered modules
// is none. Requires a strategy that fetches.
FetchTrace fetch_trace(const Workload& workload, const Strategy& strategy);

// Returns LocalSGD's communication: a step between two averagings, with gradients summed in a group
// (treated as the cluster) or not at all; and the averaged buckets, by fragment.
Communication local_communication(const Workload& workload, const Cluster& cluster,
                                  const Strategy& strategy, const TrainingPoint& point = {});
std::vector<std::vector<BucketExchange>> averaged_parameters(const Workload& workload,
                                                             const Cluster& cluster,
                                                             const Strategy& strategy);

}  // namespace syncline::plan
