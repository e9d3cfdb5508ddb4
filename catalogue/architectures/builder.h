// Builds an operator list like a framework: forward operators are added one by one, and each puts
// its backward pass on a tape, which `backward` walks in reverse. Gradients of a value with several
// readers are added by a `sum`. Parameters become the workload's gradients in the order of
// completion.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/job.h"

namespace syncline::operators {

inline double real(std::int64_t count) { return static_cast<double>(count); }

enum class Optimizer { kSgd, kMomentum, kAdam };

// Returns the number of values that the optimizer stores per parameter.
inline int states_of(Optimizer optimizer) { return static_cast<int>(optimizer); }

class GraphBuilder {
 public:
  // Builds an empty graph. `fp32_gradients`: parameters' gradients are cast to fp32 as soon as they
  // are complete, as under torch.autocast.
  GraphBuilder(DType dtype, Layout layout, bool fp32_gradients = false)
      : dtype_(dtype), layout_(layout), fp32_gradients_(fp32_gradients) {}

  // Returns a new value of `elements` in the graph's dtype, or in `dtype`.
  int activation(std::int64_t elements) { return value(elements, dtype_); }
  int value(std::int64_t elements, DType dtype);
  int raw_value(std::string name, Bytes bytes);

  // Returns the value that a forward operator reads for this parameter. A repeated name shares the
  // parameter, and its gradients are added. `cast` parameters are read in the graph's dtype.
  int parameter(const std::string& name, const std::vector<std::int64_t>& shape, bool cast);
  void buffer(const std::string& name, std::int64_t elements);

  // Appends an operator to the current pass. The reference is valid until the next call.
  Operator& add(const std::string& kind, std::vector<Operand> inputs, std::vector<Operand> outputs);

  // Records the backward pass of the operator just added.
  void on_backward(std::function<void()> step) { tape_.push_back({prefix_, std::move(step)}); }

  // Sets the prefix of the kinds of the operators that follow, and of their gradients. A fused
  // operator's kernels have its name, and no fusion pattern matches them.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  // Returns the gradient of a value: its readers' contribution, or the sum of several.
  int gradient(int value);
  // Returns a new value with the size of `value`: one reader's gradient of it.
  int contribute(int value);
  // Returns a new gradient of a parameter. `value`: the result of parameter() for it.
  int contribute_parameter(int value);
  // Returns true for values that depend on no parameter (the model's input): they need no gradient.
  bool is_constant(int value) const { return constants_.contains(value); }
  void mark_constant(int value) { constants_[value] = true; }

  void backward();
  // Adds the update. `copies`: parameters in half precision have fp32 copies, as in training of
  // large models; otherwise the optimizer's values have the parameters' format, as in torch.optim.
  void update(Optimizer optimizer, bool copies = true);

  // The result. `tensors` are the gradients in backward order.
  OperatorList list;
  std::vector<Tensor> tensors;
  std::vector<Tensor> buffers;

 private:
  struct Parameter {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t elements = 0;
    int master = 0;  // the fp32 parameter
    int read = 0;    // operators' input: the parameter itself, or its cast
    DType dtype = DType::kFp32;
    int uses = 0;
    std::vector<int> gradients;
  };

  // Returns a copy in another dtype, outside of any fused operator.
  int cast_of(int from, std::int64_t elements, DType dtype);
  void complete(Parameter& parameter);
  bool narrow() const { return dtype_ == DType::kBf16 && !fp32_gradients_; }

  DType dtype_;
  Layout layout_;
  bool fp32_gradients_ = false;
  StepPart part_ = StepPart::kForward;
  struct Step {
    std::string prefix;
    std::function<void()> run;
  };
  std::string prefix_;
  std::vector<Step> tape_;
  std::unordered_map<int, std::vector<int>> gradients_;
  std::unordered_map<int, bool> constants_;
  std::vector<Parameter> parameters_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::unordered_map<int, std::size_t> by_value_;
  std::unordered_map<int, std::size_t> owner_;  // index of the parameter, by its gradients' values
};

}  // namespace syncline::operators
