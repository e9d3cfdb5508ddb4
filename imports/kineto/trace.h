// Content of a PyTorch Kineto trace (libkineto's output_json.cpp; torch.profiler's
// export_chrome_trace): the events of a step's synchronisation, of every dialect since torch 1.8 in
// one form. Times are integer nanoseconds of the file's own clock: a double would lose them in a
// date.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"

namespace syncline::job::kineto {

using Nanoseconds = std::int64_t;
inline constexpr Nanoseconds kFar = std::numeric_limits<Nanoseconds>::max();  // beyond all of it

enum class Host : std::uint8_t {
  kStep,           // ProfilerStep#N
  kForward,        // DistributedDataParallel.forward
  kNamed,          // possible work between steps: a batch is loaded, a value read back, a
                   // range that the user named
  kOptimizer,      // Optimizer.step#...
  kGradient,       // evaluate_function: AccumulateGrad, if torch tells it (from 1.10 or so)
  kEngine,         // evaluate_function: of any other node
  kAccumulate,     // AccumulateGrad itself
  kCopyIn,         // gradient -> bucket
  kCopyInHook,     // the same with a communication hook
  kCopyOut,        // bucket -> gradient
  kCommunication,  // c10d::..., record_param_comms, nccl:..., gloo:...
};

// A span of the host's time.
struct HostSpan {
  Nanoseconds start = 0;
  Nanoseconds end = 0;
  int thread = 0;
  int number = -1;  // kStep: N; kAccumulate: place in Trace::tensors; kCommunication: in messages;
                    // kNamed: in names
  Host kind{};
};

// A call of CUDA's or HIP's runtime or driver.
struct KernelLaunch {
  std::int64_t correlation = 0;
  Nanoseconds start = 0;
  Nanoseconds end = 0;
  std::int64_t bytes = 0;  // of a copy, if the call tells them (AMD)
  int thread = 0;
};

enum class TracedWork : std::uint8_t { kKernel, kCopy, kFill };

struct DeviceEvent {
  Nanoseconds start = 0;
  Nanoseconds end = 0;
  std::int64_t correlation = 0;
  std::int64_t bytes = 0;  // of a copy
  std::int64_t stream = 0;
  int device = 0;
  int message = -1;  // place in Trace::messages, if its name or metadata says collective
  TracedWork work{};
};

// An event's facts about a tensor.
struct TracedTensor {
  std::vector<std::int64_t> shape;
  std::optional<DType> dtype;
  std::int64_t elements = 0;  // 0: its shape is not given; a scalar's is empty
  bool undefined = false;     // the event states that it is no tensor: no shape and no type
};

// A trace's facts about a group of ranks, from all its places.
struct ToldGroup {
  std::string name;         // as torch numbers it; empty: only its size is given
  std::string description;  // "TENSOR_MODEL_PARALLEL_GROUP", "mesh_tp"; empty: none
  std::vector<int> ranks;   // empty: not given
  int size = 0;             // 0: not given
  bool cut = false;         // `ranks` are the first ones
  bool lies = false;        // two places contradict each other
};

// An event's facts about a collective; several events may describe the same one.
struct TracedMessage {
  std::string kind;           // "all_reduce", ...; empty: not given
  std::string group;          // of ranks, as torch names it
  int place = -1;             // of that group in Trace::groups
  std::string backend;        // "nccl", "gloo", if its name begins so
  int ranks = 0;              // 0: not given
  std::int64_t elements = 0;  // the larger of input and output; 0: not given
  std::int64_t given = 0;     // elements that a rank gives; `got`: receives; 0: unknown
  std::int64_t got = 0;
  std::optional<DType> dtype;
  bool told = false;  // the event's metadata has the kind, not only its name
};

// Returns "all_reduce" for "allreduce_", "nccl:all_reduce",
// "ncclDevKernel_AllReduce_Sum_f32_RING_LL" and the like; empty if it names no collective.
std::string collective_kind(std::string_view name);

struct Trace {
  std::string path;
  std::optional<int> rank;
  std::optional<int> world_size;
  std::string backend;
  std::string nccl_version;
  std::string torch_version;
  std::vector<std::string> devices;    // their names, by number
  std::vector<HostSpan> host;          // by start
  std::vector<KernelLaunch> launches;  // by correlation, then start
  std::vector<DeviceEvent> device;     // by start
  std::vector<TracedTensor> tensors;
  std::vector<TracedMessage> messages;
  std::vector<std::string> names;  // of kNamed spans, as shown in answers
  std::vector<ToldGroup> groups;
  std::size_t operators = 0;            // events of the host that are operators, kept or not
  std::size_t damaged = 0;              // events that could not be read and were left out
  std::vector<std::string> optimizers;  // their classes: "AdamW"
  std::vector<std::string> sharded;     // sharding libraries: "FSDP", "DeepSpeed", "Megatron"
  std::vector<std::string> parallel;    // libraries that share a model among ranks: "DeepEP"
  std::string accelerator;              // neither CUDA's nor ROCm's, that worked: "MTIA"; or none
  std::size_t accelerated = 0;          // its events
  bool paddle = false;                  // PaddlePaddle's profiler wrote it
};

// Reads a file in one go, in memory that does not grow with the events that are not kept. Throws
// InputError, naming the file, if it is no JSON, is cut off, or is a bare list of events.
Trace read_trace(const std::string& path);

// One event of traceEvents, read as far as this importer needs it.

enum class Category : std::uint8_t {
  kOther,
  kHost,
  kRuntime,
  kKernel,
  kCopy,
  kFill,
  kPython,
  kAccelerator  // work of a device that is neither CUDA's nor ROCm's
};

struct Event {
  Category category{};
  bool annotation = false;  // a range that torch or the user named
  std::string accelerator;  // kAccelerator: "MTIA"
  std::string name;
  std::string process;  // pid and tid as written there, without quotes
  std::string thread;
  Nanoseconds start = 0;
  Nanoseconds duration = 0;
  // Arguments; -1 and empty: not given.
  std::int64_t correlation = -1;
  std::int64_t stream = -1;
  std::int64_t device = -1;
  std::int64_t bytes = 0;
  std::vector<std::vector<std::int64_t>> shapes;  // Input Dims, lists of tensors laid flat
  std::string type;                               // of the first tensor with a known one
  std::string collective;
  std::string dtype;
  std::string group;
  std::string group_description;
  std::vector<std::int64_t> group_ranks;
  bool group_ranks_cut = false;  // torch writes the first thirty
  std::int64_t in_elements = 0;
  std::int64_t out_elements = 0;
  std::int64_t group_size = 0;
};

enum class EventReading { kRead, kSkipped, kDamaged };

// Reads an event; kBehind bytes after the text may be read. kSkipped: the event is not needed, and
// `event` may hold a part of it, such as category and name.
EventReading read_event(std::string_view text, Event& event);

// A trace's JSON cut into its values, in bounded memory: each event of `traceEvents` and each other
// member of the object around them. Only brackets and strings are examined; the reader parses the
// values.

// Bytes of any value that may be read after every slice: simdjson's need.
inline constexpr std::size_t kBehind = 64;

struct Slices {
  // Receives one element of traceEvents. kBehind bytes after it may be read.
  std::function<void(std::string_view event)> event;
  // Receives any other member of the object.
  std::function<void(std::string_view key, std::string_view value)> member;
};

// Cuts a file that is plain, packed by gzip, or several gzip files one after the other. Throws
// InputError, naming the file, if it cannot be opened, is no JSON object or ends too early, or its
// packing is damaged.
void cut(const std::string& path, const Slices& slices);

}  // namespace syncline::job::kineto
