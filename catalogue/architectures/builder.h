// Builds an operator list the way a framework does: the forward operators are laid down one by
// one, each leaves on a tape what its backward pass will launch, and `backward` walks the tape in
// reverse. Gradients of a value with several readers are added up by a `sum`; parameters become
// the workload's gradients in the order in which theirs are complete.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/job.h"

namespace syncline::operators {

inline double real(std::int64_t count) { return static_cast<double>(count); }

enum class Optimizer { kSgd, kMomentum, kAdam };

// Values that it keeps beside each parameter.
inline int states_of(Optimizer optimizer) { return static_cast<int>(optimizer); }

class GraphBuilder {
 public:
  // `fp32_gradients`: the parameters' gradients are cast to fp32 as soon as they are complete, as
  // under torch.autocast.
  GraphBuilder(DType dtype, Layout layout, bool fp32_gradients = false)
      : dtype_(dtype), layout_(layout), fp32_gradients_(fp32_gradients) {}

  // Returns a value of so many elements in the graph's dtype, or of another one.
  int activation(std::int64_t elements) { return value(elements, dtype_); }
  int value(std::int64_t elements, DType dtype);
  int raw_value(std::string name, Bytes bytes);

  // Returns the value that a forward operator reads for this parameter. A parameter that is asked
  // for twice is shared, and its gradients are added. `cast` parameters are read in the graph's
  // dtype.
  int parameter(const std::string& name, const std::vector<std::int64_t>& shape, bool cast);
  void buffer(const std::string& name, std::int64_t elements);

  // Appends an operator to the stage under way; the reference holds until the next one.
  Operator& add(const std::string& kind, std::vector<Operand> inputs, std::vector<Operand> outputs);

  // What the backward pass does about the operator just added.
  void on_backward(std::function<void()> step) { tape_.push_back({prefix_, std::move(step)}); }

  // Kinds of the operators that follow, and of their gradients, begin with this: the kernels of
  // one fused operator bear its name, and no fusion pattern takes them for operators.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  // Returns the gradient of a value as its readers have left it; their sum where there are several.
  int gradient(int value);
  // Returns a new value with the size of `value`: one reader's gradient of it.
  int contribute(int value);
  // The same for the parameter that `parameter` gave this value for.
  int contribute_parameter(int value);
  // True for values that no parameter stands behind (the model's input): they need no gradient.
  bool is_constant(int value) const { return constants_.contains(value); }
  void mark_constant(int value) { constants_[value] = true; }

  void backward();
  // `copies`: of parameters in half precision the update keeps copies in fp32, as large models are
  // trained; else its values are in the parameters' format, as torch.optim has them.
  void update(Optimizer optimizer, bool copies = true);

  // What was built. `tensors` are the gradients in backward order.
  OperatorList list;
  std::vector<Tensor> tensors;
  std::vector<Tensor> buffers;

 private:
  struct Parameter {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t elements = 0;
    int master = 0;  // the fp32 parameter
    int read = 0;    // what operators read: the parameter itself, or its cast
    DType dtype = DType::kFp32;
    int uses = 0;
    std::vector<int> gradients;
  };

  // Returns a copy in another dtype, by no fused operator.
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
  std::map<int, std::vector<int>> gradients_;
  std::map<int, bool> constants_;
  std::vector<Parameter> parameters_;
  std::map<std::string, std::size_t> by_name_;
  std::map<int, std::size_t> by_value_;
  std::map<int, std::size_t> owner_;  // parameter of each of its gradients' values
};

}  // namespace syncline::operators
