#include "core/job/execution_trace/nodes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"

namespace syncline::job::execution_trace {
namespace {

using Value = nlohmann::json;

// A terabyte of fp32, more than a device holds: a damaged file.
constexpr std::int64_t kMostElements = std::int64_t{1} << 38;

std::optional<std::int64_t> integer(const Value& value) {
  return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

const Value& member(const Value& object, const char* key) {
  static const Value kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

const Value& item(const Value& list, std::size_t at) {
  static const Value kNothing;
  return list.is_array() && at < list.size() ? list[at] : kNothing;
}

std::string text_of(const Value& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool speaks_of_a_step(std::string_view name) {
  return name == "torch::autograd::AccumulateGrad" || name == "record_param_comms" ||
         name.starts_with("torch::distributed::reducer::") || name.starts_with("c10d::") ||
         name.starts_with("nccl:") || name.starts_with("gloo:") ||
         name.starts_with("ProfilerStep#") || name.starts_with("Optimizer.step#") ||
         name.starts_with("## process_group");
}

// The product of a shape; of a list of shapes, as deep as it goes, their sum. Nothing for what is
// neither, or larger than memory.
std::optional<std::int64_t> elements_in(const Value& shape, bool single) {
  if (!shape.is_array()) return std::nullopt;
  const bool sizes = single || (!shape.empty() && !shape.front().is_array());
  std::int64_t elements = sizes ? 1 : 0;
  for (const Value& part : shape) {
    const auto count = sizes ? integer(part) : elements_in(part, false);
    if (!count || *count < 0 || *count > kMostElements) return std::nullopt;
    if (sizes && *count > 0 && elements > kMostElements / *count) return std::nullopt;
    elements = sizes ? elements * *count : elements + *count;
    if (elements > kMostElements) return std::nullopt;
  }
  return elements;
}

// "Tensor(float)" and "GenericList[Tensor(float),Tensor(float)]" are, "Int" is none.
std::optional<Tensor> tensor_of(const Value& value, const Value& shape, const std::string& type) {
  constexpr std::string_view kTensor = "Tensor(";
  const std::size_t at = type.find(kTensor);
  if (at == std::string::npos) return std::nullopt;
  const bool single = at == 0;
  const auto elements = elements_in(shape, single);
  if (!elements) return std::nullopt;
  Tensor tensor;
  tensor.elements = *elements;
  const std::size_t begin = at + kTensor.size();
  tensor.type = type.substr(begin, type.find(')', begin) - begin);
  if (single) {
    for (const Value& size : shape) tensor.shape.push_back(size.get<std::int64_t>());
  }
  // [id, storage, offset, elements, bytes of one, device]; a list of one tensor holds it.
  const Value& fields = single ? value : item(value, 0);
  if (single || (value.is_array() && value.size() == 1)) {
    tensor.storage = integer(item(fields, 1)).value_or(-1);
  }
  return tensor;
}

void add_tensors(const Value& values, const Value& shapes, const Value& types, Node& node) {
  if (!values.is_array()) return;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto tensor = tensor_of(values[i], item(shapes, i), text_of(item(types, i)));
    if (tensor) node.tensors.push_back(std::move(*tensor));
  }
}

// [tensors, number, (group), rank, "allreduce", split sizes in, out, first rank, stride, ranks]:
// the name is the first text, its rank stands before it; the last three came with torch 2.2.
void read_comm_values(const Value& values, Node& node) {
  for (std::size_t i = 0; values.is_array() && i < values.size(); ++i) {
    if (!values[i].is_string() || i == 0) continue;
    constexpr std::int64_t kMost = 1 << 24;
    node.collective = text_of(values[i]);
    const auto rank = integer(values[i - 1]);
    if (rank && *rank >= 0 && *rank < kMost) node.rank = static_cast<int>(*rank);
    const auto ranks = integer(item(values, i + 5));
    if (ranks && *ranks > 0 && *ranks < kMost) node.ranks = static_cast<int>(*ranks);
    if (i >= 2 && values[i - 2].is_array()) node.group = text_of(item(values[i - 2], 0));
    return;
  }
}

std::optional<Node> node_of(const Value& object) {
  Node node;
  node.name = text_of(member(object, "name"));
  const auto id = integer(member(object, "id"));
  if (!id || !speaks_of_a_step(node.name)) return std::nullopt;
  node.id = *id;
  node.parent =
      integer(member(object, object.contains("ctrl_deps") ? "ctrl_deps" : "parent")).value_or(0);
  const Value& inputs = member(object, "inputs");
  const bool nested = inputs.is_object();
  const Value& values = nested ? member(inputs, "values") : inputs;
  if (nested) {
    const Value& outputs = member(object, "outputs");
    add_tensors(values, member(inputs, "shapes"), member(inputs, "types"), node);
    add_tensors(member(outputs, "values"), member(outputs, "shapes"), member(outputs, "types"),
                node);
  } else {
    add_tensors(values, member(object, "input_shapes"), member(object, "input_types"), node);
    add_tensors(member(object, "outputs"), member(object, "output_shapes"),
                member(object, "output_types"), node);
  }
  if (node.name == "record_param_comms") read_comm_values(values, node);
  if (node.name.starts_with("## process_group")) node.groups = text_of(item(values, 0));
  return node;
}

// Takes each node out of the document as soon as it is complete.
class NodeTaker {
 public:
  NodeTaker(const std::string& file, Trace& trace) : file_(file), trace_(trace) {}

  bool operator()(int depth, Value::parse_event_t event, Value& parsed) {
    constexpr int kDeepest = 64;
    if (depth > kDeepest) throw InputError(file_ + ": nested more than 64 levels deep");
    if (depth == 1 && event == Value::parse_event_t::key) {
      in_nodes_ = parsed == "nodes";
      seen_ = seen_ || in_nodes_;
    }
    if (depth != 2 || event != Value::parse_event_t::object_end || !in_nodes_) return true;
    ++count_;
    if (auto node = node_of(parsed)) trace_.nodes.push_back(std::move(*node));
    return false;
  }

  bool any() const { return seen_ && count_ > 0; }

 private:
  const std::string& file_;
  Trace& trace_;
  bool in_nodes_ = false;
  bool seen_ = false;
  std::size_t count_ = 0;
};

}  // namespace

Trace trace_from_text(const std::string& name, const std::string& text) {
  Trace trace;
  NodeTaker taker(name, trace);
  try {
    const Value rest = Value::parse(text, std::ref(taker));
    trace.schema = text_of(member(rest, "schema"));
  } catch (const Value::parse_error& error) {
    const bool cut = error.byte > text.size();
    throw InputError(
        name +
        (cut ? ": cut off: its JSON ends inside a value, after " : ": not valid JSON at byte ") +
        std::to_string(cut ? text.size() : error.byte) + (cut ? " bytes" : ""));
  } catch (const Value::exception&) {
    throw InputError(name + ": not valid JSON: a number that is too large");
  }
  if (!taker.any()) {
    throw InputError(name + ": expected an execution trace with a list 'nodes', found none");
  }
  std::stable_sort(trace.nodes.begin(), trace.nodes.end(),
                   [](const Node& a, const Node& b) { return a.id < b.id; });
  return trace;
}

}  // namespace syncline::job::execution_trace
