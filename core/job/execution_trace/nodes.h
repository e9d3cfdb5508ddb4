// The nodes of a PyTorch execution trace that tell of gradients and of collectives, read from its
// JSON while it is parsed: of 14392 nodes of a ResNet's three steps a thousand stay.
//
// A node has one of two layouts. Since schema 1.0.2-chakra: {id, name, ctrl_deps, inputs {values,
// shapes, types}, outputs {...}, attrs [{name, type, value}]}; before: {id, name, parent, inputs,
// input_shapes, input_types, outputs, output_shapes, output_types}. Ids count up over all threads
// as operations begin; nodes are written as they end. (torch/csrc/profiler/standalone/
// execution_trace_observer.cpp, torch 1.11 to 2.7.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::job::execution_trace {

// One tensor that an operation was given or gave back; or a list of tensors, as one.
struct Tensor {
  std::int64_t storage = -1;        // whose memory it lies in; -1: unknown
  std::vector<std::int64_t> shape;  // of a single tensor
  std::int64_t elements = 0;
  std::string type;  // "float", "c10::Half", "long"
};

struct Node {
  std::int64_t id = 0;
  std::int64_t parent = 0;
  std::string name;
  std::vector<Tensor> tensors;  // inputs, then outputs; what is no tensor is left out
  // Of a collective (record_param_comms).
  std::string collective;  // "allreduce", "_allgather_base"
  std::string group;       // "0"
  int ranks = 0;           // of the group; 0: not told
  int rank = -1;           // in the group; -1: not told
  // "[{"pg_name": "0", "group_size": 2, ...}]" of "## process_group:init ##".
  std::string groups;
};

struct Trace {
  std::string schema;       // "1.1.0-chakra.0.0.4"
  std::vector<Node> nodes;  // those that speak of a step, by ascending id
};

// Throws InputError, naming `name`, for what is not JSON, is cut off, or has no list of nodes.
Trace trace_from_text(const std::string& name, const std::string& text);

}  // namespace syncline::job::execution_trace
