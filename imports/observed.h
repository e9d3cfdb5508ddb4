// An observed training job, from any file: its steps, the gradients in order of readiness, the
// collectives that carried them. Readers of formats fill it (format.h); scenario_of.h makes a
// scenario of it. Seconds and bytes; times of a step count from the start of its forward pass on
// the device.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "core/job.h"
#include "formats/json/json.h"

namespace syncline::job {

// One gradient of one step.
struct Gradient {
  std::string name;                 // empty: unknown
  std::vector<std::int64_t> shape;  // empty: only its size is known
  std::int64_t elements = 0;
  DType dtype = DType::kFp32;
  // Time on the compute stream from the previous gradient's readiness (or the start of the backward
  // pass) to this one's, without copies into buckets.
  Seconds wait = 0;
  // Time of the compute stream until it is copied into its bucket, and back out of it: from one
  // copy's end to the next one's, including delays by the host. 0: no copy was seen.
  Seconds copy_in = 0;
  Seconds copy_out = 0;
  int chunk = 0;        // index of the model chunk in its pipeline stage
  bool expert = false;  // belongs to an expert

  Bytes bytes() const { return elements * size_of(dtype); }
};

// The dimension that the ranks of a group divide.
enum class Role : std::uint8_t {
  kUnknown,
  kTensor,
  kContext,
  kExpert,
  kExpertTensor,
  kPipeline,
  kData,        // gradients, in one level
  kInner,       // gradients and parameters in shards
  kOuter,       // the sums of those shards
  kExpertData,  // the experts' gradients
  kOther,       // norms, losses, tied embeddings
};
const char* role_text(Role role);
// Returns true if gradients or parameters travel in groups of that role.
bool carries_gradients(Role role);

// A group of ranks that exchange data. Times are those of the typical step of its first rank whose
// trace was read.
struct RankGroup {
  std::string name;  // as the framework numbers and describes it
  std::string description;
  std::vector<int> ranks;  // in the world; empty: unknown
  int size = 0;            // 0: unknown
  Role role = Role::kUnknown;
  std::size_t calls = 0;
  Bytes bytes = 0;
  Seconds hidden = 0;   // collectives' time while the device computes
  Seconds exposed = 0;  // collectives' time while the device waits for them
  // Number of its collectives that were matched across the ranks that were read.
  std::size_t matched = 0;
  int last_rank = -1;    // the rank that the others waited for longest; -1: none
  std::size_t last = 0;  // number of them that this rank was last in
  Seconds waited = 0;    // in those by the rank that came first, in total
};

// One collective of one step, as one rank saw it.
struct ObservedExchange {
  std::string kind;  // "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", ...
  std::string group;          // of ranks, as the framework names it
  int ranks = 0;              // in that group; 0: unknown
  std::int64_t elements = 0;  // the larger of a rank's input and output, as nccl-tests counts
  DType dtype = DType::kFp32;
  std::vector<int> gradients;  // places in Step::gradients; empty: unknown
  Seconds complete = 0;        // time at which its last gradient is ready (and copied in)
  Seconds sent = 0;            // start on the device
  Seconds duration = 0;        // on this rank, including the wait for the others
  // The least duration over the ranks that were read: the time once all are there. One rank only:
  // its duration, an upper bound.
  Seconds time = 0;
  // Part of its duration for which the compute stream waits for it.
  Seconds exposed = 0;
  int in = -1;  // place of its group in Observed::groups; -1: unknown

  Bytes bytes() const { return elements * size_of(dtype); }
};

// One step of one rank. broadcast + forward + backward + copy_out + exposed + stages + host_gap +
// update + between = gpu. In a whole job (Observed::whole), forward and backward are those of all
// micro-batches, with the collectives inside the layers; the gradients' waits are those of one.
struct Step {
  int number = 0;   // as the profiler counts
  Seconds cpu = 0;  // on the host; 0: unknown
  // From the first kernel of the forward pass to that of the next step; to the last kernel of the
  // update if the next step was not recorded.
  Seconds gpu = 0;
  // Before the model's own kernels: DDP gathers the buffers, waits for their broadcast and copies
  // them back.
  Seconds broadcast = 0;
  Seconds forward = 0;
  Seconds backward = 0;      // copies into buckets included
  Seconds copy_in = 0;       // the part of `backward` for these copies
  Seconds copy_out = 0;      // out of the buckets, after the backward pass
  Seconds copy_kernels = 0;  // part of copy_in and copy_out for which the device copied
  Seconds exposed = 0;       // the compute stream's wait for running collectives
  Seconds stages = 0;        // the compute stream's wait for other pipeline stages
  // The compute stream's wait for the host: before a collective that does not run yet, and between
  // the last copy or collective and the update.
  Seconds host_gap = 0;
  Seconds update = 0;
  Seconds between = 0;       // from the update's last kernel to the next step's first
  Seconds between_idle = 0;  // part of it in which the device is idle
  // Work of the host during `between`, if the file names it: the longest first.
  std::vector<std::pair<std::string, Seconds>> by_host;
  Seconds idle = 0;  // part of gpu without `between` in which the device is idle: the host is late
  std::vector<Gradient> gradients;          // in ready order
  std::vector<ObservedExchange> exchanges;  // in the order of sending
};

struct Rank {
  int rank = 0;
  std::vector<Step> steps;  // training steps, in order; others are named in Observed::warnings
  int stage = 0;            // of the pipeline
};

// The ranks' shares of the same collective, for several ranks.
struct Skew {
  std::size_t exchange = 0;  // place in Step::exchanges
  Seconds least = 0;         // its duration on the rank that came last
  Seconds most = 0;          // its duration on the rank that waited longest
  int last_rank = 0;         // the rank that came last
};

// The cut of a job in addition to plain data parallelism, as its groups of ranks show.
struct Whole {
  Parallel parallel;
  int micro_batches = 1;
  int shards = 0;                   // ranks that hold all shards together; 0: there are none
  bool all_reduced = false;         // gradients are, although the update is sharded (DeepSpeed)
  bool behind = false;              // gradients are exchanged once all backward passes are over
  bool each_pass = false;           // gradients are exchanged in every micro-batch
  bool regather = false;            // parameters are gathered again for the backward pass
  bool gathers_late = false;        // during the forward pass, not before it
  std::optional<DType> parameters;  // format of gathered parameters; nullopt: not gathered
};

struct Observed {
  std::string format;     // name of the reader's row
  std::string file;       // the first one read, for messages and as the scenario's source
  std::string framework;  // "pytorch"
  std::string version;    // of the framework or the profiler, if given
  std::string name;       // of the job, if given; else of the file
  std::string backend;    // "nccl", "gloo"
  std::string nccl_version;
  int world_size = 1;
  std::string device;                   // as the driver names it: "NVIDIA A100-SXM4-40GB"
  std::vector<std::string> optimizers;  // classes as the framework names them: "AdamW"
  int devices_a_node = 0;               // on the first rank's host; 0: unknown
  bool bucket_views = false;            // gradient_as_bucket_view: no copies exist
  bool comm_hook = false;               // gradients reach the network through a hook
  int ddp_modules = 1;                  // each with reducers of its own
  int accumulation_steps = 1;           // backward passes for one exchange
  std::vector<Rank> ranks;              // by rank
  std::vector<Skew> skew;               // of the typical step, with several ranks
  std::optional<Whole> whole;           // nullopt: plain data-parallel
  std::vector<RankGroup> groups;        // of a whole job, the first rank's first
  std::vector<std::string> warnings;    // sentences, the gravest first
  // Workload of a model file, as a scenario's JSON; such files have no steps, so ranks is empty.
  std::optional<Json> workload;
};

// Returns "trace.json, kineto", and the same followed by ", step 4 of rank 0".
std::string source_of(const Observed& observed);
std::string source_of(const Observed& observed, const Step& step);

// Returns the collectives of a step that a data-parallel job lacks (for experts, embeddings, shards
// or pipeline stages spread over ranks): "5 all_to_all, 3 all_gather". Empty: none.
std::string own_collectives(const Step& step);
bool is_own(const ObservedExchange& exchange);

// Adds the class in an update's mark: "AdamW" of "Optimizer.step#AdamW.step".
void note_optimizer(std::string_view mark, std::vector<std::string>& optimizers);

// Returns the step that represents a rank: that with the median GPU time (the lower of two).
// Requires at least one step.
const Step& typical_step(const Rank& rank);

// Returns the bytes of a rank's gradients.
Bytes gradient_bytes(const Step& step);

// Returns true if a collective of the step is known to carry gradients.
bool carries_gradients(const Step& step);

}  // namespace syncline::job
