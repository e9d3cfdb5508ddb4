// A plan: the strategy applied to a workload on a cluster. Operations on streams with dependencies,
// in SPMD form: every rank of a role walks the same list. A pipeline has a role a stage, other jobs
// one. It says *what* happens; executors say when. One plan covers one period: a single training
// step, or the k steps from one LocalSGD averaging to the next. Executors repeat it; each stream
// goes on where it stood.
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
  // Long after every ramp unless said otherwise.
  std::int64_t step = std::numeric_limits<std::int64_t>::max() / 4;
  std::int64_t period = 0;  // LocalSGD steps to the next averaging; 0: the strategy's own
  // Moment of a cycle at which the step begins, from 0 to kTickPhases - 1, if gradients are
  // released at ticks (Fusion::cycle). A step is not a multiple of a cycle, so all moments are
  // equally likely.
  int tick_phase = 0;
  bool averaged = true;  // LocalSGD; false: a step behind the run's last averaging
};

inline constexpr int kTickPhases = 20;

struct TrainingPhase {
  TrainingPoint point;
  std::int64_t steps = 1;  // how many steps of the run are like this
};

using OpId = std::int32_t;
using StreamId = std::int32_t;

// Of a role's streams, the first computes; the others communicate, each with a communicator of its
// own. A stream behind those may hold the framework's own waits (kTick), which occupy neither.
inline constexpr StreamId kComputeStream = 0;

// Gradients (or, under LocalSGD, parameters) that travel together.
struct Bucket {
  // Indices into the workload's tensors; from tensors.size() on, into its buffers.
  std::vector<int> tensors;
  DType dtype = DType::kFp32;
  bool sparse = false;        // one sparse gradient, exchanged as rows
  std::int64_t elements = 0;  // of all tensors, without padding
  Bytes bytes = 0;            // likewise
  Bytes padded_bytes = 0;     // what travels uncompressed: each tensor padded to fusion.align
  const compress::Codec* codec = nullptr;  // nullptr: travels as it is
  std::int64_t kept = 0;                   // elements (or rows) that one rank sends
  std::vector<compress::LowRank> factors;  // with a codec of low rank by tensor, or of all
  int ready = 0;                           // the tensor with which the bucket is complete
  bool averaged = false;                   // parameters, or what an outer step needs of them
  // A part of one tensor, where large ones are partitioned: `elements` from this one on.
  std::int64_t first = 0;
};

// What one rank sends of a compressed bucket.
Bytes encoded_bytes(const Bucket& bucket);

enum class Phase { kForward, kBackward, kUpdate, kAverage };

// Work of the model itself; tensors [first, last] become ready at its end.
struct Compute {
  Phase phase = Phase::kForward;
  Seconds seconds = 0;
  int first = 0;
  int last = -1;
};

// A stream is busy for a reason that is neither the model's work nor a collective.
struct Busy {
  enum class Reason {
    kEncode,
    kDecode,
    kCopyIn,        // gradients into their bucket's buffer
    kCopyOut,       // and back
    kHost,          // the host waits for a stream before it goes on
    kTick,          // the framework lets time pass: Horovod's thread sleeps until its next tick
    kSums,          // what a library adds up in software (core/run/interference.h)
    kInterference,  // what computation and collectives lose to each other (likewise)
  };
  Reason reason = Reason::kHost;
  Seconds seconds = 0;
  int bucket = -1;  // -1: of none
};

using Work = std::variant<Compute, collective::Collective, Busy>;

// Returns how long the work takes by itself; 0 for a collective, whose time depends on the network.
Seconds seconds_of(const Work& work);

// Why the stream is busy; nothing where it computes or communicates.
std::optional<Busy::Reason> reason_of(const Work& work);

struct Op {
  StreamId stream = kComputeStream;
  std::vector<OpId>
      after;  // besides the previous operation on its stream; all smaller than its own id
  Work work;
  int step = 0;  // which of the period's steps it belongs to
  // Operations of the period before, of any id, that must be done too. The first period waits for
  // none: the parameters are in place when a training begins.
  std::vector<OpId> after_previous = {};
  // The collective gathers what each rank holds a part of: parameters, or gradients summed by
  // parts.
  bool gathers = false;
};

struct Plan {
  int ranks = 1;
  int streams = 1;                 // including compute streams; those of one role, then the next's
  int roles = 1;                   // pipeline stages
  int role_step = 1;               // ranks from which on the next role's begin
  int steps = 1;                   // training steps in one period
  int passes = 1;                  // micro-batches of a step between two waits for other ranks
  double stretch = 1;              // how much longer it computes than the workload says
  bool updates_by_bucket = false;  // or all parameters once the last bucket has arrived
  int replicas = 1;                // of the parameters, which averaging sums
  Outer outer;                     // what becomes of the sum
  std::vector<Bucket> buckets;
  std::vector<Op> ops;

  int streams_of_role() const { return streams / roles; }
  int role_of(StreamId stream) const { return stream / streams_of_role(); }
  int role_of_rank(int rank) const { return roles == 1 ? 0 : rank / role_step % roles; }
  // Its number in its role.
  StreamId own_stream(StreamId stream) const { return stream % streams_of_role(); }
  int first_rank(StreamId stream) const { return role_of(stream) * role_step; }
  bool computes(StreamId stream) const { return own_stream(stream) == kComputeStream; }
};

// Returns the plan of one period. Requires that the strategy fits the cluster. Throws InputError
// for an algorithm or codec that no table has, and for groups without a size.
Plan make_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
               const TrainingPoint& point = {});

// The same among those who sum one gradient of a job that is cut (job.h's exchanging), as if
// they were all that trains.
Plan exchange_plan(Workload workload, const Cluster& exchanging, const Strategy& strategy);

// Returns a run as its distinct plans with their weights: one phase where a single step is
// evaluated, several where a sparsity ramp or a LocalSGD period changes on the way.
std::vector<TrainingPhase> training_phases(const Strategy& strategy, const Training& training);

// Returns whether a period begins before the last one's exchange is over.
bool crosses_steps(const Plan& plan);

// What the host takes ahead of the forward passes of a period, all its steps together.
Seconds ahead_of_forward(const Plan& plan);

// Returns whether collectives may be under way at the same time: several streams communicate.
bool overlaps(const Plan& plan);

// Streams beside the compute stream, without one that only holds waits.
int communication_streams(const Plan& plan);

// Returns whether a rank carries the operation out, or is sent something by it.
bool concerns(const Plan& plan, const Op& op, int rank);

// "backward fc.weight .. layer4.2.bn3.bias", "all_reduce bucket 3", ... for people.
std::string describe(const Op& op, const Plan& plan, const Workload& workload);

// "compute", "exchange 2" by the word for those that communicate; in a pipeline "stage 1 compute".
std::string stream_name(const Plan& plan, StreamId stream, std::string_view exchanges);

// Name of a bucket's tensor by its index, which may be a buffer's.
const std::string& tensor_name(const Workload& workload, int index);

// Lowering: the one expansion of a plan's collective into transfers between world ranks.

// Rounds of all groups side by side: round i holds round i of every group. Transfers name world
// ranks; elements count inside the group's payload.
collective::Schedule lower(const collective::Collective& collective);

}  // namespace syncline::plan
