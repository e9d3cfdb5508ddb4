// The operators below a model's layers: what a framework launches in one training step, in order,
// with the values that they read and write. Compute fusion rewrites this list (core/plan); its
// cost (cost.h) gives the forward time, each gradient's wait and the update time.
// Kinds bear Paddle's operator names (conv2d, batch_norm, relu, elementwise_add, matmul_v2, ...,
// with _grad behind them), because its fusion passes are written in these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/scenario/dtype.h"
#include "core/units.h"

namespace syncline {

enum class StepPart { kForward, kBackward, kUpdate };

enum class Layout { kNchw, kNhwc };

struct Value {
  std::string name;  // may be empty; a parameter's gradient is called NAME@GRAD
  Bytes bytes = 0;
};

// A value with how often the operator passes over it in memory. Batch normalisation, for one,
// reads its input twice: for the statistics, and to normalise. An output with 0 passes takes over
// an input's memory.
struct Operand {
  int value = 0;
  int passes = 1;
};

struct Operator {
  std::string kind;
  StepPart part = StepPart::kForward;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  double matrix_flops = 0;  // in matrix products, which tensor cores take where the dtype allows
  double flops = 0;         // all others
  DType dtype = DType::kFp32;
  bool rounded = false;  // products take fp32 in TF32, half precision in FP8
  Layout layout = Layout::kNchw;
  int kernels = 1;           // launches: a convolution's gradient takes two
  std::int64_t columns = 0;  // of the weight, where a matrix product has one: cublasLt's guard
};

struct OperatorList {
  std::vector<Value> values;
  std::vector<Operator> operators;  // in the order of launch: forward, backward, update
  std::vector<int> gradients;       // value of each of the workload's gradients, in its order

  bool empty() const { return operators.empty(); }
};

// Bytes that the operator moves through memory.
double traffic(const OperatorList& list, const Operator& op);

// Operators of one kind.
int count_of(const OperatorList& list, const std::string& kind);

// FLOPs of one stage, matrix products and all others.
double flops_of(const OperatorList& list, StepPart part);

}  // namespace syncline
