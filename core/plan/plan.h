// A plan: the strategy applied to a workload on a cluster. Operations on streams with
// dependencies, in SPMD form (every rank walks the same list). It says *what* happens; executors
// say when. One plan covers one period: a single training step, or the k steps from one LocalSGD
// averaging to the next. Executors repeat it; each stream goes on where it stood. Where steps
// overlap, an operation also waits for operations of the period before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/collective/collective.h"
#include "core/compress/codec.h"
#include "core/scenario/workload.h"
#include "core/units.h"

namespace syncline::plan {

using OpId = std::int32_t;
using StreamId = std::int32_t;

// Stream 0 computes; streams 1.. communicate, each with a communicator of its own. A stream behind
// those may hold the framework's own waits (Wait), which occupy neither.
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

struct Encode {
  int bucket = 0;
  Seconds seconds = 0;
};

struct Decode {
  int bucket = 0;
  Seconds seconds = 0;
};

// The host waits for a stream before it goes on.
struct HostSync {
  Seconds seconds = 0;
};

// Gradients are copied into their bucket's buffer, or back out of it.
struct Copy {
  int bucket = 0;
  Seconds seconds = 0;
  bool into = true;
};

// The framework lets time pass: Horovod's background thread sleeps until its next tick.
struct Wait {
  Seconds seconds = 0;
};

// What a library adds up in software while a collective's bytes flow, on the processor that
// computes. `seconds` is what the collective takes longer for it, alone: the network says how long
// the bytes take, so executors fill it in (core/run/slowed.h).
struct Sums {
  int bucket = 0;
  Seconds work = 0;     // of the processor
  double reducing = 1;  // of the bytes' time, that in which sums are taken
  double exposed = 0;   // of the shorter of both, what the longer one does not hide
  double busy = 0;      // of the processor, what the bytes take
  Seconds seconds = 0;
};

// What the computation loses to a bucket's exchange beside it, or the exchange to the computation:
// `share` of the time that they run beside each other, and, in an operation of its own ahead of the
// exchange, `delay` once. The network says how long that is, so executors fill in the seconds
// (core/run/slowed.h).
struct Slowed {
  std::optional<int> bucket;  // nothing: whatever the step before has left under way
  double share = 0;
  Seconds delay = 0;
  // Of the computation behind the bucket, as it is by itself; below zero: of that which is over. An
  // exchange that goes on beside the next step's forward pass has none.
  Seconds rest = 0;
  double lost = 0;  // of an exchange: the share that the computation loses meanwhile
  Seconds seconds = 0;
};

using Work = std::variant<Compute, collective::Collective, Encode, Decode, HostSync, Copy, Wait,
                          Sums, Slowed>;

// How long the work takes by itself; 0 for a collective, whose time depends on the network, and for
// what it slows as long as nobody has filled that in.
Seconds seconds_of(const Work& work);

struct Op {
  StreamId stream = kComputeStream;
  std::vector<OpId>
      after;  // besides the previous operation on its stream; all smaller than its own id
  Work work;
  int step = 0;  // which of the period's steps it belongs to
  // Operations of the period before, of any id, that must be done too. The first period waits for
  // none: the parameters are in place when a training begins.
  std::vector<OpId> after_previous = {};
};

struct Plan {
  int ranks = 1;
  int streams = 1;                 // including the compute stream
  int steps = 1;                   // training steps in one period
  bool updates_by_bucket = false;  // or all parameters once the last bucket has arrived
  std::vector<Bucket> buckets;
  std::vector<Op> ops;
};

// Whether a period begins before the last one's exchange is over.
bool crosses_steps(const Plan& plan);

// What the host takes ahead of the forward passes of a period, all its steps together.
Seconds ahead_of_forward(const Plan& plan);

// Whether collectives may be under way at the same time: several streams communicate.
bool overlaps(const Plan& plan);

// Streams beside the compute stream, without one that only holds waits.
int communication_streams(const Plan& plan);

// "backward fc.weight .. layer4.2.bn3.bias", "all_reduce bucket 3", ... for people.
std::string describe(const Op& op, const Plan& plan, const Workload& workload);

// Name of a bucket's tensor by its index, which may be a buffer's.
const std::string& tensor_name(const Workload& workload, int index);

}  // namespace syncline::plan
