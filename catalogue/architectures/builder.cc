// In fp16 (automatic mixed precision) activations and matrix products are in half precision. The
// parameters stay in fp32 and are cast for each product, and their fp16 gradients before the
// update. Parameters of normalisations stay in fp32 with fp32 gradients. Loss scaling and its
// checks are left out. In bf16, except under autocast, all parameters are bf16, as in training of
// large models: the update also reads and writes their fp32 copies.
#include "catalogue/architectures/builder.h"

#include <cassert>
#include <utility>

namespace syncline::operators {

int GraphBuilder::raw_value(std::string name, Bytes bytes) {
  list.values.push_back({std::move(name), bytes});
  return static_cast<int>(list.values.size()) - 1;
}

int GraphBuilder::value(std::int64_t elements, DType dtype) {
  return raw_value({}, elements * size_of(dtype));
}

int GraphBuilder::parameter(const std::string& name, const std::vector<std::int64_t>& shape,
                            bool cast) {
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) {
    ++parameters_[known->second].uses;
    return parameters_[known->second].read;
  }
  Parameter parameter;
  parameter.name = name;
  parameter.shape = shape;
  parameter.elements = 1;
  for (const auto extent : shape) parameter.elements *= extent;
  parameter.dtype = narrow() ? dtype_ : DType::kFp32;
  parameter.master = raw_value(name, parameter.elements * size_of(parameter.dtype));
  parameter.read = parameter.master;
  parameter.uses = 1;
  if (cast && !narrow() && dtype_ != DType::kFp32) {
    parameter.dtype = dtype_;
    parameter.read = cast_of(parameter.master, parameter.elements, dtype_);
  }
  by_name_[name] = parameters_.size();
  by_value_[parameter.read] = parameters_.size();
  parameters_.push_back(std::move(parameter));
  return parameters_.back().read;
}

void GraphBuilder::buffer(const std::string& name, std::int64_t elements) {
  buffers.push_back({.name = name, .shape = {elements}, .elements = elements});
}

int GraphBuilder::cast_of(int from, std::int64_t elements, DType dtype) {
  const int to = value(elements, dtype);
  const std::string prefix = std::exchange(prefix_, {});
  add("cast", {{from}}, {{to}});
  prefix_ = prefix;
  return to;
}

Operator& GraphBuilder::add(const std::string& kind, std::vector<Operand> inputs,
                            std::vector<Operand> outputs) {
  Operator op;
  op.kind = prefix_ + kind;
  op.part = part_;
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.dtype = dtype_;
  op.layout = layout_;
  list.operators.push_back(std::move(op));
  return list.operators.back();
}

int GraphBuilder::contribute(int value) {
  const int gradient = raw_value({}, list.values[static_cast<std::size_t>(value)].bytes);
  gradients_[value].push_back(gradient);
  return gradient;
}

int GraphBuilder::contribute_parameter(int value) {
  Parameter& parameter = parameters_[by_value_.at(value)];
  const int gradient = this->value(parameter.elements, parameter.dtype);
  parameter.gradients.push_back(gradient);
  owner_[gradient] = by_value_.at(value);
  return gradient;
}

int GraphBuilder::gradient(int value) {
  auto& parts = gradients_[value];
  assert(!parts.empty() && "a value's readers come before its writer in the backward pass");
  if (parts.size() > 1) {
    const int total = raw_value({}, list.values[static_cast<std::size_t>(value)].bytes);
    std::vector<Operand> inputs;
    for (const int part : parts) inputs.push_back({part});
    const std::string prefix = std::exchange(prefix_, {});
    add("sum", std::move(inputs), {{total}});
    prefix_ = prefix;
    parts = {total};
  }
  return parts.front();
}

void GraphBuilder::complete(Parameter& parameter) {
  int gradient = parameter.gradients.front();
  if (parameter.gradients.size() > 1) {
    gradient = value(parameter.elements, parameter.dtype);
    std::vector<Operand> inputs;
    for (const int part : parameter.gradients) inputs.push_back({part});
    add("sum", std::move(inputs), {{gradient}});
  }
  if (fp32_gradients_ && parameter.dtype != DType::kFp32) {
    gradient = cast_of(gradient, parameter.elements, DType::kFp32);
    parameter.dtype = DType::kFp32;
  }
  list.values[static_cast<std::size_t>(gradient)].name = parameter.name + "@GRAD";
  parameter.gradients = {gradient};
  parameter.uses = 0;
  tensors.push_back({parameter.name, parameter.shape, parameter.elements, parameter.dtype});
  list.gradients.push_back(gradient);
}

void GraphBuilder::backward() {
  part_ = StepPart::kBackward;
  for (auto step = tape_.rbegin(); step != tape_.rend(); ++step) {
    const std::size_t first = list.operators.size();
    prefix_ = step->prefix;
    step->run();
    // Gradients of one operator count in the order of its outputs.
    std::vector<int> written;
    for (std::size_t i = first; i < list.operators.size(); ++i) {
      for (const auto& output : list.operators[i].outputs) written.push_back(output.value);
    }
    for (const int output : written) {
      const auto owner = owner_.find(output);
      if (owner == owner_.end()) continue;
      Parameter& parameter = parameters_[owner->second];
      const bool last = parameter.gradients.back() == output;
      if (last && static_cast<int>(parameter.gradients.size()) == parameter.uses) {
        complete(parameter);
      }
    }
  }
}

// Adds passes over memory, in elements of four bytes. SGD reads parameter and gradient and writes
// the parameter; momentum reads and writes a second state, Adam two.
void GraphBuilder::update(Optimizer optimizer, bool copies) {
  part_ = StepPart::kUpdate;
  prefix_.clear();
  const int states = states_of(optimizer);
  const char* kind = optimizer == Optimizer::kSgd        ? "sgd"
                     : optimizer == Optimizer::kMomentum ? "momentum"
                                                         : "adam";
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Parameter& parameter = parameters_[by_name_.at(tensors[i].name)];
    int gradient = list.gradients[i];
    const DType kept = narrow() && !copies ? dtype_ : DType::kFp32;
    if (parameter.dtype != kept) gradient = cast_of(gradient, parameter.elements, DType::kFp32);
    std::vector<Operand> inputs{{parameter.master}, {gradient}};
    std::vector<Operand> outputs{{raw_value(
        parameter.name, parameter.elements * size_of(narrow() ? dtype_ : DType::kFp32))}};
    // The optimizer's own fp32 copy is one more state.
    for (int s = narrow() && copies ? -1 : 0; s < states; ++s) {
      inputs.push_back({value(parameter.elements, kept)});
      outputs.push_back({value(parameter.elements, kept)});
    }
    Operator& op = add(kind, std::move(inputs), std::move(outputs));
    op.dtype = DType::kFp32;
    op.flops = static_cast<double>(parameter.elements) * (2 + 4 * states);
  }
}

}  // namespace syncline::operators
