// What a training job left behind, whichever file told it: the steps it ran, the gradients in the
// order in which they were ready, the collectives that carried them. Readers of formats fill it
// (format.h); scenario_of.h makes a scenario of it. Seconds and bytes; times of a step count from
// the beginning of its forward pass on the device.
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
  std::string name;                 // empty: the file does not tell
  std::vector<std::int64_t> shape;  // empty: only its size is known
  std::int64_t elements = 0;
  DType dtype = DType::kFp32;
  // Time on the compute stream from the previous gradient's readiness (the backward pass's begin)
  // to this one's, without copies into buckets.
  Seconds wait = 0;
  // Time of the compute stream until it is copied into its bucket, and back out of it: from one
  // copy's end to the next one's, so what the host is late by is in it. 0: no copy was seen.
  Seconds copy_in = 0;
  Seconds copy_out = 0;
  int chunk = 0;        // of the model chunks that its pipeline stage holds
  bool expert = false;  // one of those that its ranks share

  Bytes bytes() const { return elements * size_of(dtype); }
};

// What the ranks of a group share out among them.
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
// Whether gradients or parameters travel in it.
bool carries_gradients(Role role);

// Ranks that exchange among themselves, with what that took in the typical step of the first rank
// read that is one of them.
struct RankGroup {
  std::string name;  // as the framework numbers and describes it
  std::string description;
  std::vector<int> ranks;  // of the world; empty: not told
  int size = 0;            // 0: not told
  Role role = Role::kUnknown;
  std::size_t calls = 0;
  Bytes bytes = 0;
  Seconds hidden = 0;   // of its collectives' time, while the device computes
  Seconds exposed = 0;  // and while it waits for them
  // Over the ranks that were read, of its collectives that were matched across them.
  std::size_t matched = 0;
  int last_rank = -1;    // for which the others waited longest; -1: for none
  std::size_t last = 0;  // of those, how many it came to last
  Seconds waited = 0;    // in these by the rank that came first, all of them together
};

// One collective of one step, as one rank saw it.
struct ObservedExchange {
  std::string kind;  // "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", ...
  std::string group;          // of ranks, as the framework names it
  int ranks = 0;              // in that group; 0: unknown
  std::int64_t elements = 0;  // the larger of what a rank gives and gets, as nccl-tests counts
  DType dtype = DType::kFp32;
  std::vector<int> gradients;  // of its bucket, by their place in Step::gradients; empty: unknown
  Seconds complete = 0;        // its last gradient is ready (and copied in)
  Seconds sent = 0;            // it begins on the device
  Seconds duration = 0;        // on this rank, waiting for the others included
  // The least over the ranks that were read: what it takes once all are there. One rank only: its
  // duration, an upper bound.
  Seconds time = 0;
  // Of its duration, while the compute stream waits for it: never more than it lasts.
  Seconds exposed = 0;
  int in = -1;  // place of its group in Observed::groups; -1: none is told

  Bytes bytes() const { return elements * size_of(dtype); }
};

// One step of one rank.
// broadcast + forward + backward + copy_out + exposed + stages + host_gap + update + between = gpu.
// Of a whole job (Observed::whole) forward and backward are those of all micro-batches, with the
// collectives inside the layers; the gradients' waits are those of one.
struct Step {
  int number = 0;   // as the profiler counts
  Seconds cpu = 0;  // as the host saw it; 0: not told
  // First kernel of the forward pass to that of the next step's; to the last of the update, where
  // no next step was recorded.
  Seconds gpu = 0;
  // Ahead of the model's own kernels: DDP gathers the buffers, waits for their broadcast and copies
  // them back.
  Seconds broadcast = 0;
  Seconds forward = 0;
  Seconds backward = 0;      // copies into buckets included
  Seconds copy_in = 0;       // the part of `backward` that they are
  Seconds copy_out = 0;      // out of the buckets, behind the backward pass
  Seconds copy_kernels = 0;  // of copy_in and copy_out, while the device really copied
  Seconds exposed = 0;       // the compute stream waits for collectives that run
  Seconds stages = 0;        // and for other stages of the pipeline
  // It waits for the host: ahead of a collective that does not run yet, and between the last copy
  // or collective and the update.
  Seconds host_gap = 0;
  Seconds update = 0;
  Seconds between = 0;       // from the update's last kernel to the next step's first
  Seconds between_idle = 0;  // of it, nothing runs on the device
  // What the host does in it, where the file names that: the longest first.
  std::vector<std::pair<std::string, Seconds>> by_host;
  Seconds idle = 0;  // of gpu but `between`: nothing runs on the device, so the host is late
  std::vector<Gradient> gradients;          // in ready order
  std::vector<ObservedExchange> exchanges;  // in the order in which they were sent
};

struct Rank {
  int rank = 0;
  std::vector<Step> steps;  // those that train, in order; others are named in Observed::warnings
  int stage = 0;            // of the pipeline
};

// What each rank's share of the same collective was, with several ranks.
struct Skew {
  std::size_t exchange = 0;  // by its place in Step::exchanges
  Seconds least = 0;         // its duration on the rank that came last
  Seconds most = 0;          // and on the one that waited longest
  int last_rank = 0;         // who came last
};

// How a job is cut beside plain data parallelism, as its groups of ranks tell.
struct Whole {
  Parallel parallel;
  int micro_batches = 1;
  int shards = 0;             // ranks that hold all shards together; 0: gradients are all-reduced
  bool each_pass = false;     // gradients are exchanged in every micro-batch
  bool regather = false;      // parameters are gathered again for the backward pass
  bool gathers_late = false;  // and beside the forward pass, not ahead of it
  std::optional<DType> parameters;  // as they are gathered; nothing: they are not
};

struct Observed {
  std::string format;     // name of the reader's row
  std::string file;       // the first one read, for messages and as the scenario's source
  std::string framework;  // "pytorch"
  std::string version;    // of the framework or the profiler, where told
  std::string name;       // of the job, where told; else of the file
  std::string backend;    // "nccl", "gloo"
  std::string nccl_version;
  int world_size = 1;
  std::string device;                   // as the driver names it: "NVIDIA A100-SXM4-40GB"
  std::vector<std::string> optimizers;  // classes as the framework names them: "AdamW"
  int devices_a_node = 0;               // that the first rank's host shows; 0: unknown
  bool bucket_views = false;            // gradient_as_bucket_view: no copies exist
  bool comm_hook = false;               // gradients reach the network through a hook
  int ddp_modules = 1;                  // each with reducers of its own
  int accumulation_steps = 1;           // backward passes for one exchange
  std::vector<Rank> ranks;              // by rank
  std::vector<Skew> skew;               // of the typical step, with several ranks
  std::optional<Whole> whole;           // nothing: plain data-parallel
  std::vector<RankGroup> groups;        // of a whole job, the first rank's ahead
  std::vector<std::string> warnings;    // sentences, the gravest first
  // Model files tell no step but a workload: its JSON as a scenario has it. Then ranks is empty.
  std::optional<Json> workload;
};

// "trace.json, kineto", and the same with ", step 4 of rank 0" behind it.
std::string source_of(const Observed& observed);
std::string source_of(const Observed& observed, const Step& step);

// "5 all_to_all, 3 all_gather": the collectives of a step that no data-parallel job has of itself
// (experts, embeddings, shards or pipeline stages spread over ranks). Empty: none.
std::string own_collectives(const Step& step);
bool is_own(const ObservedExchange& exchange);

// Notes the class that the mark of an update names, as "AdamW" of "Optimizer.step#AdamW.step".
void note_optimizer(std::string_view mark, std::vector<std::string>& optimizers);

// The step that stands for all of a rank: the one whose GPU time is the median (the lower of two).
// Requires at least one step.
const Step& typical_step(const Rank& rank);

// Of the gradients that a rank holds.
Bytes gradient_bytes(const Step& step);

// Whether a collective is known to carry some of them.
bool carries_gradients(const Step& step);

}  // namespace syncline::job
