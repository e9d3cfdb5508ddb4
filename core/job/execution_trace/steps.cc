#include "core/job/execution_trace/steps.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/calibrate/nccl_log_parts.h"

namespace syncline::job::execution_trace {
namespace {

constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";
constexpr std::string_view kProfilerStep = "ProfilerStep#";

std::optional<DType> dtype_of(std::string_view type) {
  if (type == "float") return DType::kFp32;
  if (type == "c10::Half" || type == "half") return DType::kFp16;
  if (type == "c10::BFloat16" || type == "bfloat16") return DType::kBf16;
  if (type == "double") return DType::kFp64;
  return std::nullopt;
}

// "c10d::allreduce_", "nccl:_all_gather_base", or what record_param_comms says -> "all_reduce",
// ...; empty for what moves nothing ("wait", "barrier") and for what is no collective.
std::string kind_of(const Node& node) {
  const bool named = node.name.starts_with("c10d::") || node.name.starts_with("nccl:") ||
                     node.name.starts_with("gloo:");
  if (!named && node.name != "record_param_comms") return {};
  const std::string& word = named ? node.name : node.collective;
  if (word.find("barrier") != std::string::npos) return {};
  const std::string kind = calibrate::test_name(word);
  return kind == "alltoall" || kind == "alltoallv" ? "all_to_all" : kind;
}

// An exchange and what tells its bucket.
struct Sent {
  Exchange exchange;
  std::string type;
  std::int64_t storage = -1;
  std::int64_t id = 0;
};

struct Arrived {
  Gradient gradient;
  std::int64_t storage = -1;  // of the bucket that it was copied into
  std::int64_t id = 0;
  std::int64_t parent = 0;
};

// What stands between two of a step's boundaries.
struct Content {
  std::vector<Arrived> gradients;
  std::vector<Sent> sent;
};

class Gathering {
 public:
  explicit Gathering(const Trace& trace) : trace_(trace) {
    for (const Node& node : trace.nodes) {
      if (node.name.starts_with(kProfilerStep)) marks_.push_back(&node);
    }
    profiled_ = !marks_.empty();
    if (profiled_) return;
    for (const Node& node : trace.nodes) {
      if (node.name.starts_with("Optimizer.step#")) marks_.push_back(&node);
    }
  }

  // By the number of the step; what lies before the first one that the profiler names is none's.
  std::map<int, Content> contents() {
    for (const Node& node : trace_.nodes) {
      if (const auto step = step_at(node.id)) add(node, contents_[*step]);
    }
    return std::move(contents_);
  }

  Copies copies() const { return copies_; }

 private:
  std::optional<int> step_at(std::int64_t id) const {
    const auto after =
        std::upper_bound(marks_.begin(), marks_.end(), id,
                         [](std::int64_t value, const Node* mark) { return value < mark->id; });
    const auto before = after - marks_.begin();
    if (!profiled_) return static_cast<int>(before);
    if (before == 0) return std::nullopt;
    const std::string& name = (*std::prev(after))->name;
    int number = 0;
    std::from_chars(name.data() + kProfilerStep.size(), name.data() + name.size(), number);
    return number;
  }

  void add(const Node& node, Content& content) {
    if (node.name == kAccumulate) {
      add_gradient(node, content);
    } else if (node.name.starts_with("torch::distributed::reducer::")) {
      add_copy(node, content);
    } else if (const std::string kind = kind_of(node); !kind.empty()) {
      add_exchange(node, kind, content);
    }
  }

  static void add_gradient(const Node& node, Content& content) {
    if (node.tensors.empty()) return;  // nothing flowed back to this parameter
    const Tensor& tensor = node.tensors.front();
    const auto dtype = dtype_of(tensor.type);
    if (!dtype || tensor.elements == 0) return;
    Arrived arrived;
    arrived.gradient.shape = tensor.shape;
    arrived.gradient.elements = tensor.elements;
    arrived.gradient.dtype = *dtype;
    arrived.id = node.id;
    arrived.parent = node.parent;
    content.gradients.push_back(std::move(arrived));
  }

  // The copy into the bucket runs beside the accumulation, below the same evaluation.
  void add_copy(const Node& node, Content& content) {
    const bool own = node.name.ends_with("::mul_out");
    if (!own && !node.name.ends_with("::copy_")) return;
    copies_ = own && copies_ != Copies::kHook ? Copies::kOwn : Copies::kHook;
    if (content.gradients.empty() || node.tensors.empty()) return;
    Arrived& last = content.gradients.back();
    if (last.parent == node.parent) last.storage = node.tensors.front().storage;
  }

  // One collective is up to three nodes, each below the one before: c10d's call, its record, the
  // backend's. What the outer ones do not tell is taken from the inner ones.
  void add_exchange(const Node& node, const std::string& kind, Content& content) {
    const auto outer = sent_by_.find(node.parent);
    const bool inner = outer != sent_by_.end() && outer->second.first == &content;
    if (!inner) {
      content.sent.emplace_back().exchange.kind = kind;
      content.sent.back().id = node.id;
    }
    const std::size_t at = inner ? outer->second.second : content.sent.size() - 1;
    sent_by_[node.id] = {&content, at};
    Sent& sent = content.sent[at];
    for (const Tensor& tensor : node.tensors) {
      if (tensor.elements <= sent.exchange.elements) continue;
      sent.exchange.elements = tensor.elements;
      sent.type = tensor.type;
      sent.storage = tensor.storage;
    }
    if (!node.group.empty()) sent.exchange.group = node.group;
    if (node.ranks > 0) sent.exchange.ranks = node.ranks;
  }

  const Trace& trace_;
  std::vector<const Node*> marks_;
  bool profiled_ = false;
  std::map<int, Content> contents_;
  std::map<std::int64_t, std::pair<const Content*, std::size_t>> sent_by_;
  Copies copies_ = Copies::kNone;
};

// Where gradients accumulate over k backward passes, k times as many arrive as are sent, in k equal
// sequences: the last one is what the step sends.
int accumulation_of(const Content& content) {
  std::int64_t arrived = 0;
  std::int64_t sent = 0;
  for (const Arrived& one : content.gradients) arrived += one.gradient.elements;
  for (const Sent& one : content.sent) {
    if (one.exchange.kind == "all_reduce") sent += one.exchange.elements;
  }
  if (sent <= 0 || arrived % sent != 0) return 1;
  const auto passes = static_cast<std::size_t>(arrived / sent);
  if (passes < 2 || content.gradients.size() % passes != 0) return 1;
  const std::size_t each = content.gradients.size() / passes;
  for (std::size_t i = each; i < content.gradients.size(); ++i) {
    const Gradient& gradient = content.gradients[i].gradient;
    if (gradient.elements != content.gradients[i - each].gradient.elements) return 1;
  }
  return static_cast<int>(passes);
}

// By the memory that they were copied into, if that adds up; else the next ones that no collective
// has yet, if they do. Empty where neither does.
std::vector<int> members_of(const Sent& sent, const std::vector<Arrived>& gradients,
                            const std::vector<bool>& taken) {
  std::vector<int> copied;
  std::vector<int> next;
  std::int64_t of_copied = 0;
  std::int64_t of_next = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Arrived& arrived = gradients[i];
    if (taken[i] || arrived.id > sent.id) continue;
    if (sent.storage >= 0 && arrived.storage == sent.storage) {
      copied.push_back(static_cast<int>(i));
      of_copied += arrived.gradient.elements;
    }
    if (of_next < sent.exchange.elements) {
      next.push_back(static_cast<int>(i));
      of_next += arrived.gradient.elements;
    }
  }
  if (of_copied == sent.exchange.elements) return copied;
  if (of_next == sent.exchange.elements) return next;
  return {};
}

Step step_of(int number, const Content& content, int& other_types) {
  Step step;
  step.number = number;
  for (const Arrived& arrived : content.gradients) step.gradients.push_back(arrived.gradient);
  std::vector<bool> taken(content.gradients.size());
  for (const Sent& sent : content.sent) {
    const auto dtype = dtype_of(sent.type);
    if (!dtype) {
      ++other_types;
      continue;
    }
    Exchange exchange = sent.exchange;
    exchange.dtype = *dtype;
    if (exchange.kind == "all_reduce" || exchange.kind == "reduce_scatter") {
      exchange.gradients = members_of(sent, content.gradients, taken);
    }
    for (const int member : exchange.gradients) taken[static_cast<std::size_t>(member)] = true;
    step.exchanges.push_back(std::move(exchange));
  }
  return step;
}

// The groups that the trace's first node lists: [{"pg_name", "backend_config": "cuda:nccl",
// "group_size"}], the default one first.
void read_groups(const std::string& text, Steps& steps) {
  const auto groups = nlohmann::json::parse(text, nullptr, false);
  if (!groups.is_array()) return;
  for (const auto& group : groups) {
    if (!group.is_object()) continue;
    const auto size = group.find("group_size");
    constexpr std::int64_t kMost = 1 << 24;
    if (size != group.end() && size->is_number_integer()) {
      const auto ranks = size->get<std::int64_t>();
      if (ranks > steps.world_size && ranks < kMost) steps.world_size = static_cast<int>(ranks);
    }
    const auto config = group.find("backend_config");
    if (config == group.end() || !config->is_string() || !steps.backend.empty()) continue;
    for (const char* backend : {"nccl", "gloo"}) {
      if (config->get_ref<const std::string&>().find(backend) != std::string::npos) {
        steps.backend = backend;
        break;
      }
    }
  }
}

void read_group_facts(const Trace& trace, Steps& steps) {
  for (const Node& node : trace.nodes) {
    if (!node.groups.empty()) read_groups(node.groups, steps);
    if (node.name.starts_with("nccl:")) steps.backend = "nccl";
    if (node.name.starts_with("gloo:")) steps.backend = "gloo";
    steps.world_size = std::max(steps.world_size, node.ranks);
  }
  for (const Node& node : trace.nodes) {
    // A broadcast's record has its root in that place.
    const std::string kind = kind_of(node);
    const bool own = kind == "all_reduce" || kind == "all_gather" || kind == "reduce_scatter";
    if (own && node.rank >= 0 && node.ranks == steps.world_size) steps.rank = node.rank;
  }
}

}  // namespace

Steps steps_of(const Trace& trace) {
  Steps steps;
  read_group_facts(trace, steps);
  Gathering gathering(trace);
  std::map<int, Content> contents = gathering.contents();
  steps.copies = gathering.copies();
  for (auto& [number, content] : contents) {
    const int passes = accumulation_of(content);
    steps.accumulation = std::max(steps.accumulation, passes);
    const auto each = content.gradients.size() / static_cast<std::size_t>(passes);
    content.gradients.erase(content.gradients.begin(),
                            content.gradients.end() - static_cast<std::ptrdiff_t>(each));
    Step step = step_of(number, content, steps.other_types);
    if (!step.gradients.empty() || !step.exchanges.empty()) steps.list.push_back(std::move(step));
  }
  return steps;
}

}  // namespace syncline::job::execution_trace
