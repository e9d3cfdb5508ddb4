#include "imports/kineto/trace.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_map>

#include "core/base/error.h"
#include "formats/json/json.h"
#include "imports/observed.h"

namespace syncline::job::kineto {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string lower_letters(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) letters += static_cast<char>(std::tolower(byte));
  }
  return letters;
}

// Returns the type for torch's words (c10's toString, record_shapes' types, NCCL's suffixes). A
// type that scenarios have no word for becomes the one of its width: only the bytes count.
std::optional<DType> dtype_of(std::string_view word) {
  constexpr std::pair<DType, std::string_view> kWords[] = {
      {DType::kFp16, "half c10half f16 float16 short"},
      {DType::kBf16, "bfloat16 c10bfloat16 bf16"},
      {DType::kFp32, "float f32 float32 int i32 u32 int32"},
      {DType::kFp64, "double f64 float64 long longint i64"}};
  const std::string name = lower_letters(word);
  for (const auto& [dtype, words] : kWords) {
    std::istringstream all{std::string(words)};
    for (std::string one; all >> one;) {
      if (name == one) return dtype;
    }
  }
  return std::nullopt;
}

// Returns the type in a kernel's name: ncclKernel_AllReduce_RING_LL_Sum_float(...),
// ncclDevKernel_AllReduce_Sum_f32_RING_LL(...). Broadcasts say int8_t for any type.
std::optional<DType> kernel_dtype(std::string_view name) {
  name = name.substr(0, name.find('('));
  std::size_t begin = name.find("_Sum_");
  if (begin == std::string_view::npos) begin = name.find("_SumPostDiv_");
  if (begin == std::string_view::npos) return std::nullopt;
  name = name.substr(name.find('_', begin + 1) + 1);
  if (name.starts_with("__nv_")) name.remove_prefix(5);
  return dtype_of(name.substr(0, name.find('_')));
}

// Largest credible count of elements, for any memory; larger ones become 0, as if not told.
constexpr std::int64_t kMax = std::int64_t{1} << 40;

std::int64_t believed(std::int64_t count) { return count < 0 || count > kMax ? 0 : count; }

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const std::int64_t side : shape) {
    if (side < 0 || (side > 0 && product > kMax / side)) return 0;
    product *= side;
  }
  return product;
}

// Sets the sizes of the tensors that a scatter or gather takes and gives, in either order.
TracedMessage sized_by_shapes(const Event& event, TracedMessage message) {
  std::int64_t least = kMax;
  for (const auto& shape : event.shapes) {
    const std::int64_t elements = shape.empty() ? 0 : believed(elements_of(shape));
    if (elements == 0) continue;
    message.elements = std::max(message.elements, elements);
    least = std::min(least, elements);
  }
  if (message.elements == 0 || least == message.elements) return message;
  const bool gathers = message.kind == "all_gather";
  message.given = gathers ? least : message.elements;
  message.got = gathers ? message.elements : least;
  return message;
}

TracedMessage message_of(const Event& event) {
  TracedMessage message;
  message.told = !event.collective.empty();
  message.kind = collective_kind(message.told ? event.collective : event.name);
  // Messages that are sent together are "coalesced".
  if (message.kind.empty()) message.kind = collective_kind(event.name);
  message.group = event.group;
  message.backend = event.name.starts_with("gloo:")          ? "gloo"
                    : has(lower_letters(event.name), "nccl") ? "nccl"
                                                             : "";
  message.ranks = static_cast<int>(std::clamp<std::int64_t>(event.group_size, 0, 1 << 24));
  message.given = believed(event.in_elements);
  message.got = believed(event.out_elements);
  message.elements = std::max(message.given, message.got);
  message.dtype = dtype_of(event.dtype.empty() ? event.type : event.dtype);
  if (message.elements > 0) return message;
  if (message.kind == "reduce_scatter" || message.kind == "all_gather")
    return sized_by_shapes(event, message);
  for (const auto& shape : event.shapes) {
    if (!shape.empty()) message.elements = believed(message.elements + elements_of(shape));
  }
  return message;
}

TracedTensor tensor_of(const Event& event) {
  TracedTensor tensor;
  if (event.shapes.empty()) return tensor;
  tensor.undefined = event.shapes.front().empty() && event.type.empty();
  if (tensor.undefined) return tensor;
  tensor.shape = event.shapes.front();
  tensor.dtype = dtype_of(event.type);
  tensor.elements = elements_of(tensor.shape);
  return tensor;
}

std::optional<Host> host_kind(std::string_view name) {
  if (name.starts_with("ProfilerStep")) return Host::kStep;
  if (name == "DistributedDataParallel.forward") return Host::kForward;
  if (name.starts_with("Optimizer.step")) return Host::kOptimizer;
  if (name.ends_with("AccumulateGrad")) {
    return has(name, "evaluate_function") ? Host::kGradient : Host::kAccumulate;
  }
  if (has(name, "evaluate_function")) return Host::kEngine;
  if (has(name, "reducer::copy_bucket_to_grad")) return Host::kCopyOut;
  if (has(name, "reducer::mul_out")) return Host::kCopyIn;
  if (has(name, "reducer::copy_")) return Host::kCopyInHook;
  if (name.starts_with("c10d::") || name.starts_with("nccl:") || name.starts_with("gloo:") ||
      name == "record_param_comms") {
    return Host::kCommunication;
  }
  return std::nullopt;
}

// Returns true for kernels that send tokens to experts and back; only their names tell it.
bool of_deep_ep(std::string_view name) {
  return has(name, "deep_ep") || has(name, "internode::") || has(name, "intranode::");
}

void note_once(std::vector<std::string>& names, const char* name) {
  if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

class Collector {
 public:
  explicit Collector(Trace& trace) : trace_(trace) {}

  void add(std::string_view text) {
    const EventReading reading = read_event(text, event_);
    if (reading == EventReading::kDamaged) ++trace_.damaged;
    if (event_.category == Category::kHost) ++trace_.operators;
    if (event_.category == Category::kPython) note_framework();
    if (event_.category == Category::kAccelerator) {
      trace_.accelerator = event_.accelerator;
      ++trace_.accelerated;
    }
    if (reading != EventReading::kRead) return;
    if (event_.category == Category::kHost) add_host();
    if (event_.category == Category::kRuntime) add_launch();
    if (event_.category == Category::kKernel) add_work(TracedWork::kKernel);
    if (event_.category == Category::kCopy) add_work(TracedWork::kCopy);
    if (event_.category == Category::kFill) add_work(TracedWork::kFill);
  }

  void add_member(std::string_view key, std::string_view value);
  void finish();

 private:
  static constexpr int kMaxRanks = 1 << 24;

  int thread() {
    if (event_.thread == last_thread_ && event_.process == last_process_) return last_;
    last_thread_ = event_.thread;
    last_process_ = event_.process;
    if (event_.thread.ends_with("(Python)") || event_.thread.ends_with("(C++)")) {
      trace_.paddle = true;
    }
    const auto number = static_cast<int>(threads_.size());
    last_ = threads_.try_emplace(event_.process + '/' + event_.thread, number).first->second;
    return last_;
  }

  void add_host() {
    note_framework();
    const std::optional<Host> kind = host_kind(event_.name);
    if (!kind) {
      add_named();
      return;
    }
    HostSpan span{event_.start, event_.start + event_.duration, thread(), -1, *kind};
    if (kind == Host::kStep) {
      const std::size_t mark = event_.name.find('#');
      const char* digits = mark == std::string::npos ? "" : event_.name.c_str() + mark + 1;
      const long number = std::strtol(digits, nullptr, 10);
      span.number = static_cast<int>(std::clamp(number, 0L, 1L << 30));
    } else if (kind == Host::kOptimizer) {
      note_optimizer(event_.name, trace_.optimizers);
    } else if (kind == Host::kAccumulate) {
      span.number = static_cast<int>(trace_.tensors.size());
      trace_.tensors.push_back(tensor_of(event_));
    } else if (kind == Host::kCommunication) {
      span.number = static_cast<int>(trace_.messages.size());
      trace_.messages.push_back(message_of(event_));
      trace_.messages.back().place = note_group();
    }
    trace_.host.push_back(span);
  }

  // Adds host work that lasts long enough to be named.
  void add_named() {
    constexpr Nanoseconds kTold = 100'000;
    if (event_.duration < kTold) return;
    // "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__".
    const std::string& name = event_.name;
    const bool loads = name.ends_with("__next__");
    if (!loads && name != "aten::item" && !event_.annotation) return;
    trace_.host.push_back({event_.start, event_.start + event_.duration, thread(),
                           static_cast<int>(trace_.names.size()), Host::kNamed});
    trace_.names.push_back(loads                  ? "data loading (DataLoader)"
                           : name == "aten::item" ? "values read back (.item())"
                                                  : "'" + name + "'");
  }

  void add_launch() {
    if (event_.correlation < 0) return;
    trace_.launches.push_back({event_.correlation, event_.start, event_.start + event_.duration,
                               believed(event_.bytes), thread()});
  }

  void add_work(TracedWork work) {
    DeviceEvent event{event_.start,
                      event_.start + event_.duration,
                      event_.correlation,
                      believed(event_.bytes),
                      event_.stream,
                      static_cast<int>(std::clamp<std::int64_t>(event_.device, 0, 1 << 20)),
                      -1,
                      work};
    const bool collective =
        work == TracedWork::kKernel &&
        (has(event_.name, "nccl") || has(event_.name, "rccl") || of_deep_ep(event_.name));
    if (of_deep_ep(event_.name)) note_once(trace_.parallel, "DeepEP");
    if (collective || !event_.collective.empty()) {
      event.message = static_cast<int>(trace_.messages.size());
      TracedMessage message = message_of(event_);
      if (!message.dtype) message.dtype = kernel_dtype(event_.name);
      message.place = note_group();
      trace_.messages.push_back(std::move(message));
    }
    trace_.device.push_back(event);
  }

  // Returns the place of the event's group among those known; -1: it names no group.
  int note_group() {
    if (event_.group.empty() && event_.group_size <= 0 && event_.group_ranks.empty()) return -1;
    ToldGroup told;
    told.name = event_.group;
    told.description = event_.group_description;
    told.size = static_cast<int>(std::clamp<std::int64_t>(event_.group_size, 0, kMaxRanks));
    told.cut = event_.group_ranks_cut;
    for (const std::int64_t rank : event_.group_ranks) {
      told.ranks.push_back(static_cast<int>(std::clamp<std::int64_t>(rank, -1, kMaxRanks)));
    }
    return add_group(std::move(told));
  }

  int add_group(ToldGroup told) {
    const std::string key = told.name.empty() ? "\n" + std::to_string(told.size) : told.name;
    const auto [at, first] = groups_.try_emplace(key, static_cast<int>(trace_.groups.size()));
    if (first) {
      trace_.groups.push_back(std::move(told));
      return at->second;
    }
    ToldGroup& group = trace_.groups[static_cast<std::size_t>(at->second)];
    if (group.description.empty()) group.description = std::move(told.description);
    if (group.size == 0) group.size = told.size;
    if (told.size != 0 && told.size != group.size) group.lies = true;
    if (told.ranks.empty() || (told.cut && !group.ranks.empty())) return at->second;
    if (!group.ranks.empty() && !group.cut && told.ranks != group.ranks) group.lies = true;
    group.ranks = std::move(told.ranks);
    group.cut = told.cut;
    return at->second;
  }

  // Names that only jobs with sharded gradients leave, or with models that ranks share.
  void note_framework() {
    const std::string& name = event_.name;
    const auto note = [&](bool found, const char* framework) {
      if (found) note_once(trace_.sharded, framework);
    };
    note(has(name, "FullyShardedDataParallel") || name.starts_with("FSDP::"), "FSDP");
    note(has(name, "DeepSpeed") || has(name, "deepspeed/"), "DeepSpeed");
    note(has(name, "Megatron") || has(name, "megatron/core"), "Megatron");
    if (of_deep_ep(name)) note_once(trace_.parallel, "DeepEP");
    if (has(name, "dualpipe") || has(name, "DualPipe")) note_once(trace_.parallel, "DualPipe");
    if (has(name, "PipelineStage") || has(name, "distributed/pipelining")) {
      note_once(trace_.parallel, "torch's pipelining");
    }
  }

  Trace& trace_;
  Event event_;
  std::unordered_map<std::string, int> threads_;
  std::unordered_map<std::string, int> groups_;
  std::string last_thread_ = "\n";
  std::string last_process_;
  int last_ = 0;
};

std::string word(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<int> count(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  const auto value = found->get<std::int64_t>();
  if (value < 0 || value > 1 << 24) return std::nullopt;
  return static_cast<int>(value);
}

// Returns the groups of pg_config. torch leaves the ranks of a group out if they are all.
std::vector<ToldGroup> configured_groups(const Json& info) {
  std::vector<ToldGroup> groups;
  const auto list = info.find("pg_config");
  if (list == info.end() || !list->is_array()) return groups;
  for (const Json& one : *list) {
    if (!one.is_object() || word(one, "pg_name").empty()) continue;
    ToldGroup& group = groups.emplace_back();
    group.name = word(one, "pg_name");
    group.description = word(one, "pg_desc");
    group.size = count(one, "pg_size").value_or(0);
    const auto ranks = one.find("ranks");
    if (ranks == one.end()) continue;
    // Some write the list as text.
    const Json list_of =
        ranks->is_string() ? Json::parse(ranks->get<std::string>(), nullptr, false) : *ranks;
    if (!list_of.is_array()) continue;
    for (const Json& rank : list_of) {
      const bool whole = rank.is_number_integer() && rank >= 0 && rank < 1 << 24;
      group.ranks.push_back(whole ? rank.get<int>() : -1);
    }
  }
  return groups;
}

void read_devices(const Json& devices, Trace& trace) {
  if (!devices.is_array()) return;
  for (const Json& device : devices) {
    trace.devices.push_back(device.is_object() ? word(device, "name") : "");
    if (device.is_object() && device.contains("smCount")) trace.paddle = true;
  }
}

void Collector::add_member(std::string_view key, std::string_view value) {
  const bool version = key == "torch_version" || key == "pytorch_version";
  if (key != "distributedInfo" && key != "deviceProperties" && !version) return;
  const Json json = Json::parse(value, nullptr, false);
  if (key == "distributedInfo" && json.is_object()) {
    trace_.backend = word(json, "backend");
    trace_.rank = count(json, "rank");
    trace_.world_size = count(json, "world_size");
    trace_.nccl_version = word(json, "nccl_version");
    for (ToldGroup& group : configured_groups(json)) add_group(std::move(group));
  }
  if (key == "deviceProperties") read_devices(json, trace_);
  if (version && json.is_string()) trace_.torch_version = json.get<std::string>();
}

void Collector::finish() {
  std::ranges::stable_sort(trace_.host, {}, &HostSpan::start);
  std::ranges::stable_sort(trace_.device, {}, &DeviceEvent::start);
  std::ranges::stable_sort(trace_.launches, [](const KernelLaunch& a, const KernelLaunch& b) {
    return std::pair(a.correlation, a.start) < std::pair(b.correlation, b.start);
  });
}

}  // namespace

std::string collective_kind(std::string_view name) {
  if (name.starts_with("nccl:") || name.starts_with("gloo:")) name.remove_prefix(5);
  const std::string letters = lower_letters(name.substr(0, name.find('(')));
  // In this order: a barrier is called all_reduce_barrier, and others hold others' names.
  constexpr std::pair<std::string_view, const char*> kKinds[] = {
      {"deepep", "deep_ep"},       {"internode", "deep_ep"},    {"intranode", "deep_ep"},
      {"barrier", "barrier"},      {"allreduce", "all_reduce"}, {"reducescatter", "reduce_scatter"},
      {"allgather", "all_gather"}, {"alltoall", "all_to_all"},  {"broadcast", "broadcast"},
      {"sendrecv", "send_recv"},   {"gather", "gather"},        {"scatter", "scatter"},
      {"reduce", "reduce"},        {"send", "send_recv"},       {"recv", "send_recv"}};
  for (const auto& [part, kind] : kKinds) {
    if (has(letters, part)) return kind;
  }
  return "";
}

Trace read_trace(const std::string& path) {
  Trace trace;
  trace.path = path;
  Collector collector(trace);
  cut(path, {.event = [&](std::string_view event) { collector.add(event); },
             .member = [&](std::string_view key,
                           std::string_view value) { collector.add_member(key, value); }});
  collector.finish();
  return trace;
}

}  // namespace syncline::job::kineto
