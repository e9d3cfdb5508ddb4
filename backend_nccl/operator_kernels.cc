#include "backend_nccl/operator_kernels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/base/index.h"
#include "core/operators/evaluate.h"

namespace syncline::nccl_backend {
namespace {

using kernels::Activation;
using kernels::ElementType;
using Kind = OperatorKernel::Kind;

std::optional<ElementType> element_type(DType dtype) {
  if (dtype == DType::kFp32) return ElementType::kFp32;
  if (dtype == DType::kFp16) return ElementType::kFp16;
  if (dtype == DType::kBf16) return ElementType::kBf16;
  return std::nullopt;
}

// Reads operators by Paddle's kinds; a gradient's kind is its operator's with _grad.
class OperatorReader {
 public:
  OperatorReader(const Workload& workload, const Device& device)
      : list_(workload.operators), device_(device) {
    for (const auto& tensor : workload.tensors) elements_[tensor.name] = tensor.elements;
  }

  OperatorKernel kernel_of(const Operator& op) const {
    OperatorKernel kernel;
    const auto type = element_type(op.dtype);
    std::string_view kind = op.kind;
    if (kind.ends_with("_grad")) {
      kernel.gradient = true;
      kind.remove_suffix(5);
    }
    // A list written by a user may omit an operator's values.
    if (type && !op.inputs.empty() && !op.outputs.empty()) {
      kernel.type = *type;
      read(op, kind, kernel);
    }
    kernel.seconds = operators::kernel_time(list_, op, device_);
    kernel.launches = std::max(1, op.kernels);
    return kernel;
  }

 private:
  void read(const Operator& op, std::string_view kind, OperatorKernel& kernel) const {
    static const std::set<std::string_view> kNorms{"batch_norm", "fused_batch_norm_act",
                                                   "fused_bn_add_activation"};
    static const std::set<std::string_view> kSums{
        "elementwise_add", "relu", "gelu", "tanh", "scale", "sum", "fused_elemwise_add_activation"};
    static const std::map<std::string_view, int> kStates{{"sgd", 0}, {"momentum", 1}, {"adam", 2}};
    if (kNorms.contains(kind)) return read_norm(op, kind, kernel);
    if (kSums.contains(kind)) return read_sum(op, kind, kernel);
    if ((kind == "matmul_v2" || kind == "fused_gemm_epilogue") && op.columns > 0) {
      return read_product(op, kind, kernel);
    }
    if (kind.starts_with("fused_")) kind.remove_prefix(6);
    if (kStates.contains(kind)) read_update(op, kStates.at(kind), kernel);
  }

  Bytes bytes(int value) const { return list_.values[index(value)].bytes; }

  // Sets `to` to the first values of at least `least` bytes; repeats the first if they are fewer.
  template <std::size_t kCount>
  void place(const std::vector<Operand>& operands, Bytes least, std::array<int, kCount>& to) const {
    std::size_t found = 0;
    for (const auto& operand : operands) {
      if (found < kCount && bytes(operand.value) >= least) to[found++] = operand.value;
    }
    for (; found > 0 && found < kCount; ++found) to[found] = to[0];
  }

  // Reads a batch norm. Its scale is the smallest input.
  void read_norm(const Operator& op, std::string_view kind, OperatorKernel& kernel) const {
    const auto smaller = [&](const Operand& a, const Operand& b) {
      return bytes(a.value) < bytes(b.value);
    };
    const auto [small, large] = std::minmax_element(op.inputs.begin(), op.inputs.end(), smaller);
    const Value& scale = list_.values[index(small->value)];
    const auto named = elements_.find(scale.name);
    kernel.columns = named != elements_.end() ? named->second : scale.bytes / 4;
    const std::int64_t all = bytes(large->value) / size_of(op.dtype);
    if (kernel.columns <= 0 || all % kernel.columns != 0) return;
    kernel.kind = Kind::kNorm;
    kernel.rows = all / kernel.columns;
    kernel.added = kind == "fused_bn_add_activation";
    if (kind != "batch_norm") kernel.activation = Activation::kRelu;
    place(op.inputs, bytes(large->value), kernel.reads);
    place(op.outputs, bytes(large->value), kernel.writes);
  }

  // Reads an elementwise operator. Memory bounds these, so tanh and scale may run as relu's kernel.
  // A bias's gradient, a sum over rows, has no kernel.
  void read_sum(const Operator& op, std::string_view kind, OperatorKernel& kernel) const {
    const Bytes whole = bytes(op.outputs.back().value);
    const bool copies = kernel.gradient && kind == "elementwise_add";
    if (whole < bytes(op.inputs.front().value) || op.inputs.size() > (kernel.gradient ? 3 : 2)) {
      return;
    }
    kernel.kind = Kind::kSum;
    kernel.columns = whole / size_of(op.dtype);
    place(op.inputs, whole, kernel.reads);
    place(op.outputs, whole, kernel.writes);
    if (copies) {
      kernel.gradient = false;
      return;
    }
    const bool adds = kind != "relu" && kind != "gelu" && kind != "tanh" && kind != "scale";
    kernel.added = adds && !kernel.gradient && op.inputs.size() == 2 &&
                   bytes(op.inputs[1].value) == bytes(op.inputs[0].value);
    if (kind != "elementwise_add" && kind != "sum") kernel.activation = Activation::kRelu;
    if (kind == "gelu") kernel.activation = Activation::kGelu;
  }

  // Reads a product, rows x inner times inner x columns. A gradient's outputs give the inner
  // dimension: one has the elements of the weight. FLOPs beyond those of the products show a fused
  // activation; gelu's needs one value more than relu's.
  void read_product(const Operator& op, std::string_view kind, OperatorKernel& kernel) const {
    const int products = kernel.gradient ? std::max(1, op.kernels) : 1;
    const double flops = op.matrix_flops / products / 2;
    const std::int64_t columns = op.columns;
    const std::int64_t inputs = std::llround(flops / static_cast<double>(columns));
    kernel.inner = kernel.gradient ? inner_of(op, inputs)
                                   : inputs * columns * size_of(op.dtype) /
                                         std::max<Bytes>(1, bytes(op.outputs.back().value));
    if (kernel.inner <= 0 || inputs % kernel.inner != 0) return;
    kernel.rows = inputs / kernel.inner;
    kernel.columns = columns;
    kernel.kind = Kind::kProduct;
    kernel.inputs_too = products == 2;
    const std::int64_t x = inputs, w = kernel.inner * columns, y = kernel.rows * columns;
    kernel.reads = {of_size(op.inputs, x * size_of(op.dtype)),
                    of_size(op.inputs, w * size_of(op.dtype)),
                    of_size(op.inputs, y * size_of(op.dtype))};
    kernel.writes = {of_size(op.outputs, (kernel.gradient ? x : y) * size_of(op.dtype)),
                     of_size(op.outputs, w * size_of(op.dtype))};
    if (kind != "fused_gemm_epilogue") return;
    kernel.added = true;
    const double slopes = static_cast<double>(kernel.gradient ? x : y);
    if (op.flops - static_cast<double>(y) < 0.5 * slopes) return;
    const bool gelu = kernel.gradient ? op.inputs.size() > 3 : op.outputs.size() > 1;
    kernel.activation = gelu ? Activation::kGelu : Activation::kRelu;
  }

  std::int64_t inner_of(const Operator& op, std::int64_t inputs) const {
    std::int64_t inner = inputs % op.columns == 0 ? inputs / op.columns : 0;
    for (const auto& output : op.outputs) {
      const std::int64_t elements = bytes(output.value) / size_of(op.dtype);
      if (elements == inputs || elements <= op.columns || elements % op.columns != 0) continue;
      inner = elements / op.columns;
    }
    return inner;
  }

  int of_size(const std::vector<Operand>& operands, Bytes wanted) const {
    const auto found = std::find_if(operands.begin(), operands.end(), [&](const Operand& operand) {
      return bytes(operand.value) == wanted;
    });
    return found == operands.end() ? -1 : found->value;
  }

  // Reads an optimizer's update. One operator may update all parameters.
  void read_update(const Operator& op, int states, OperatorKernel& kernel) const {
    const auto elements = std::llround(op.flops / (2 + 4 * states));
    if (op.inputs.size() < index(2 + states)) return;
    Bytes weights = 0;
    for (std::size_t i = 0; i < op.inputs.size(); i += index(2 + states)) {
      weights += bytes(op.inputs[i].value);
    }
    if (elements <= 0 || weights != 4 * elements) return;  // its parameters are not in fp32
    kernel.kind = Kind::kUpdate;
    kernel.type = ElementType::kFp32;
    kernel.columns = elements;
    kernel.states = states;
    kernel.reads[0] = op.inputs[1].value;
  }

  const OperatorList& list_;
  const Device& device_;
  std::map<std::string_view, std::int64_t> elements_;
};

// The operators of a pass and the middle of each, as a share of the pass.
struct Pass {
  OperatorRange operators;
  std::vector<double> middles;
  Seconds planned = 0;  // planned by the workload
  Seconds at = 0;       // the plan's position in the pass
};

// Returns the operators of one part of a step, with the middle of each as a share of the part's
// time.
Pass pass_of(const Workload& workload, const std::vector<OperatorKernel>& kernels, StepPart part,
             Seconds planned) {
  const auto& list = workload.operators->operators;
  Pass pass;
  pass.planned = planned;
  while (pass.operators.first < list.size() && list[pass.operators.first].part != part) {
    ++pass.operators.first;
  }
  pass.operators.last = pass.operators.first;
  Seconds total = 0;
  for (; pass.operators.last < list.size() && list[pass.operators.last].part == part;
       ++pass.operators.last) {
    const Seconds one = kernels[pass.operators.last].seconds;
    pass.middles.push_back(total + one / 2);
    total += one;
  }
  for (double& middle : pass.middles) middle /= std::max(total, 1e-30);
  return pass;
}

// Returns the operators of the next `seconds` of a pass: those with their middle in it.
OperatorRange next_part(Pass& pass, Seconds seconds) {
  constexpr double kRounding = 1e-9;
  if (pass.at >= pass.planned * (1 - kRounding)) pass.at = 0;  // the next micro-batch begins
  const double from = pass.at / pass.planned - kRounding;
  pass.at += seconds;
  const double to = pass.at / pass.planned - kRounding;
  const auto place = [&](double share) {
    const auto found = std::lower_bound(pass.middles.begin(), pass.middles.end(), share);
    return pass.operators.first + static_cast<std::size_t>(found - pass.middles.begin());
  };
  return {place(from), to >= 1 - 2 * kRounding ? pass.operators.last : place(to)};
}

}  // namespace

std::vector<OperatorKernel> operator_kernels(const Workload& workload, const Device& device) {
  const OperatorReader reader(workload, device);
  std::vector<OperatorKernel> kernels;
  for (const auto& op : workload.operators->operators) kernels.push_back(reader.kernel_of(op));
  return kernels;
}

std::vector<std::vector<OperatorRange>> operators_by_operation(
    const plan::Plan& plan, const Workload& workload, const std::vector<OperatorKernel>& kernels) {
  Pass forward = pass_of(workload, kernels, StepPart::kForward, workload.forward);
  Pass backward = pass_of(workload, kernels, StepPart::kBackward, backward_time(workload));
  Pass update = pass_of(workload, kernels, StepPart::kUpdate, workload.update);
  const Seconds step = forward.planned + backward.planned + update.planned;
  std::vector<std::vector<OperatorRange>> ranges(plan.ops.size());
  int of_step = 0;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const plan::Op& op = plan.ops[i];
    if (op.step != of_step) forward.at = backward.at = update.at = 0;
    of_step = op.step;
    const auto* compute = std::get_if<plan::Compute>(&op.work);
    if (compute == nullptr || compute->phase == plan::Phase::kAverage) continue;
    Pass& pass = compute->phase == plan::Phase::kForward    ? forward
                 : compute->phase == plan::Phase::kBackward ? backward
                                                            : update;
    if (compute->seconds <= 0 || pass.planned <= 0) continue;
    if (compute->seconds > pass.planned * 1.001) {
      ranges[i].assign(index(std::max(1L, std::lround(compute->seconds / step))),
                       {0, workload.operators->operators.size()});
      continue;
    }
    ranges[i].push_back(next_part(pass, compute->seconds));
  }
  return ranges;
}

}  // namespace syncline::nccl_backend
