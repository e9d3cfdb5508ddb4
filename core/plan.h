// A plan: the strategy applied to a workload on a cluster. Operations on streams with dependencies,
// in SPMD form: every rank of a role runs the same list. A pipeline has one role per stage, other
// jobs one. It has no start times; executors find them. One plan covers one period: a training
// step, or the k steps from one LocalSGD averaging to the next. Executors repeat it without
// draining the streams.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/units.h"
#include "core/cluster.h"
#include "core/codec.h"
#include "core/collective/collective.h"
#include "core/collective/schedule.h"
#include "core/job.h"
#include "core/strategy.h"

namespace syncline::plan {

// The moment of the training that a plan is for.
struct TrainingPoint {
  // Default: long after every ramp.
  std::int64_t step = std::numeric_limits<std::int64_t>::max() / 4;
  std::int64_t period = 0;  // LocalSGD steps to the next averaging; 0: the strategy's own
  // Moment of a cycle at which the step begins, from 0 to kTickPhases - 1, if gradients are
  // released at ticks (Fusion::cycle). A step is not a multiple of a cycle, so all moments are
  // equally likely.
  int tick_phase = 0;
  bool averaged = true;  // LocalSGD; false: a step after the run's last averaging
};

inline constexpr int kTickPhases = 20;
inline constexpr int kPlainSteps = 16;  // of LocalSGD without an averaging, in one plan at most

struct TrainingPhase {
  TrainingPoint point;
  std::int64_t steps = 1;  // steps of the run at this point
};

using OpId = std::int32_t;
using StreamId = std::int32_t;

// Streams of a role: the first computes; the others communicate, each with its own communicator.
// One more stream may hold the framework's own waits (kTick), which occupy neither.
inline constexpr StreamId kComputeStream = 0;

// Gradients (or, under LocalSGD, parameters) that travel together.
struct Bucket {
  // Indices into the workload's tensors; from tensors.size() on, into its buffers.
  std::vector<int> tensors;
  DType dtype = DType::kFp32;
  bool sparse = false;        // one sparse gradient, exchanged as rows
  std::int64_t elements = 0;  // of all tensors, without padding
  Bytes bytes = 0;            // without padding
  Bytes padded_bytes = 0;     // on the wire uncompressed: each tensor padded to fusion.align
  const compress::Codec* codec = nullptr;  // nullptr: uncompressed
  std::int64_t kept = 0;                   // elements (or rows) that one rank sends
  std::vector<compress::LowRank> factors;  // of a low-rank codec, by tensor or of the whole bucket
  int ready = 0;                           // the last of its tensors to become ready
  bool averaged = false;                   // true: parameters, or values for an outer step
  // First element of the bucket's part of one tensor, if large tensors are partitioned.
  std::int64_t first = 0;
};

// Returns the bytes that one rank sends of a compressed bucket.
Bytes encoded_bytes(const Bucket& bucket);

enum class Phase { kForward, kBackward, kUpdate, kAverage };

// Work of the model itself; tensors [first, last] are ready at its end.
struct Compute {
  Phase phase = Phase::kForward;
  Seconds seconds = 0;
  int first = 0;
  int last = -1;
};

// A stream is busy, but not with the model's work or a collective.
struct Busy {
  enum class Reason {
    kEncode,
    kDecode,
    kCopyIn,        // gradients into their bucket's buffer
    kCopyOut,       // bucket's buffer into gradients
    kHost,          // the host waits for a stream before it goes on
    kTick,          // framework's own wait: Horovod's thread sleeps until its next tick
    kSums,          // a library's sums in software (core/run/interference.h)
    kInterference,  // mutual slowdown of computation and collectives (core/run/interference.h)
  };
  Reason reason = Reason::kHost;
  Seconds seconds = 0;
  int bucket = -1;  // -1: of no bucket
};

using Work = std::variant<Compute, collective::Collective, Busy>;

// Returns the duration of the work by itself; 0 for a collective, which depends on the network.
Seconds seconds_of(const Work& work);

// Returns the reason why the stream is busy; empty if it computes or communicates.
std::optional<Busy::Reason> reason_of(const Work& work);

struct Op {
  StreamId stream = kComputeStream;
  std::vector<OpId>
      after;  // in addition to the previous operation on its stream; smaller than its own id
  Work work;
  int step = 0;  // index in the period
  // Operations of the previous period, of any id, that must be done too. The first period waits for
  // none: the parameters are in place when a training begins.
  std::vector<OpId> after_previous = {};
  // The collective gathers parts that ranks hold: parameters, or gradients summed by parts.
  bool gathers = false;
};

struct Plan {
  int ranks = 1;
  int streams = 1;                 // including compute streams; ordered by role
  int roles = 1;                   // pipeline stages
  int role_step = 1;               // first rank of the next role - first rank of a role
  int steps = 1;                   // training steps in one period
  int wait_steps = 0;              // steps between two waits of all ranks; 0: `steps`
  int passes = 1;                  // micro-batches of a step between two waits for other ranks
  double compute_slowdown = 1;     // computation time / the workload's computation time
  bool updates_by_bucket = false;  // false: all parameters once the last bucket has arrived
  bool updates_on_host = false;    // by the host's processors (core/plan/offload.h)
  int replicas = 1;                // copies of the parameters that averaging sums
  Outer outer;                     // use of the sum
  std::vector<Bucket> buckets;
  std::vector<Op> ops;

  int streams_of_role() const { return streams / roles; }
  int role_of(StreamId stream) const { return stream / streams_of_role(); }
  int role_of_rank(int rank) const { return roles == 1 ? 0 : rank / role_step % roles; }
  // Returns a stream's index within its role.
  StreamId own_stream(StreamId stream) const { return stream % streams_of_role(); }
  int first_rank(StreamId stream) const { return role_of(stream) * role_step; }
  bool computes(StreamId stream) const { return own_stream(stream) == kComputeStream; }
};

// Returns the plan of one period. Requires that the strategy fits the cluster. Throws InputError
// for an algorithm or codec in no table, and for groups without a size.
Plan make_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
               const TrainingPoint& point = {});

// Returns the plan of the ranks that sum one gradient of a model-parallel job (job.h's exchanging),
// as if they were the whole job.
Plan exchange_plan(Workload workload, const Cluster& exchanging, const Strategy& strategy);

// Returns a run as its distinct plans with their weights: one phase for a single step, several if a
// sparsity ramp or a LocalSGD period changes during the run.
std::vector<TrainingPhase> training_phases(const Strategy& strategy, const Training& training);

// True if a period begins before the last one's exchange is over.
bool crosses_steps(const Plan& plan);

// Returns the host's time before the forward passes of a period, over all its steps.
Seconds time_before_forward(const Plan& plan);

// True if collectives may be under way at the same time: several streams communicate.
bool overlaps(const Plan& plan);

// Counts the streams other than the compute stream and a stream of waits.
int communication_streams(const Plan& plan);

// True if a rank carries the operation out, or receives something by it.
bool concerns(const Plan& plan, const Op& op, int rank);

// Describes an operation: "backward fc.weight .. layer4.2.bn3.bias", "all_reduce bucket 3", ...
std::string describe(const Op& op, const Plan& plan, const Workload& workload);

// Returns "compute", or "exchange 2" by the word `exchanges`; in a pipeline "stage 1 compute".
std::string stream_name(const Plan& plan, StreamId stream, std::string_view exchanges);

// Returns the name of a bucket's tensor by its index, which may be a buffer's.
const std::string& tensor_name(const Workload& workload, int index);

// Lowering: the one expansion of a plan's collective into transfers between world ranks.

// Returns the rounds of all groups in parallel: round i holds round i of every group. Transfers
// name world ranks; elements count inside the group's payload.
collective::Schedule lower(const collective::Collective& collective);

}  // namespace syncline::plan
