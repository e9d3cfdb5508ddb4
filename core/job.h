// The model as the network sees it: gradient tensors in backward order with the time that passes
// until each is ready. Start here to know what a training step computes and what it must exchange.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "core/job/dtype.h"
#include "core/job/parallel.h"

namespace syncline {

// The operators below a model's layers: what a framework launches in one training step, in order,
// with the values that they read and write. Compute fusion rewrites this list (core/plan); its
// cost (cost.h) gives the forward time, each gradient's wait and the update time.
// Kinds bear Paddle's operator names (conv2d, batch_norm, relu, elementwise_add, matmul_v2, ...,
// with _grad behind them), because its fusion passes are written in these.

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

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  DType dtype = DType::kFp32;

  // A sparse gradient touches `sparse_rows` rows of the first dimension on each rank and step;
  // it is exchanged as (row index, row) and is never fused.
  bool sparse = false;
  std::int64_t sparse_rows = 0;

  // Its parameter's place in the order in which the model registered them; -1: nobody said.
  int registered = -1;

  // Time on the compute stream from the previous gradient's readiness to this one's.
  Seconds backward = 0;
  // Its part of the forward pass, relative to the other tensors'; 0 everywhere: as in backward.
  Seconds forward = 0;
  // Time of the compute stream while it is copied into its bucket and back out, as a job was seen
  // to take; used where Workload::copies_measured.
  Seconds copy_in = 0;
  Seconds copy_out = 0;

  // Where the job is cut (parallel.h): the part of the model that it belongs to, in the model's
  // order, and whether it is one of the experts that its ranks share.
  int part = 0;
  bool expert = false;

  Bytes bytes() const { return elements * size_of(dtype); }
};

struct Workload {
  std::string name;
  std::string source;       // where shapes and times come from
  std::int64_t batch = 1;   // samples a rank and micro-batch
  bool batch_given = true;  // false: nobody said how many, so there is no throughput in samples
  std::int64_t tokens = 0;  // a sample; 0: nobody said
  // The version of the framework that the job trains with, "2.7": readers and writers of its
  // configurations do as that version does. Empty: nobody said.
  std::string framework_version;
  // Forward and backward passes of a step: gradients add up over them (gradient accumulation), and
  // are exchanged beside the last backward pass. All times are those of one micro-batch.
  std::int64_t micro_batches = 1;
  // Where it cuts the model, tensors and times are what a rank would have if it held all parts of
  // the pipeline.
  Parallel parallel;
  Seconds forward = 0;  // one forward pass
  Seconds update = 0;   // the optimiser over all parameters
  // What the optimiser keeps beside each parameter, in fp32 values: SGD 0, momentum 1, Adam 2.
  int optimizer_states = 2;
  bool optimizer_given = false;  // false: nobody said, Adam is assumed
  Seconds host_gap = 0;          // the device waits for the host ahead of the update
  // Ahead of a step's first forward pass: rank 0's buffers come to all ranks (DDP's
  // broadcast_buffers). LocalSGD averages them instead, unless it is a hook of DDP's.
  Seconds buffer_broadcast = 0;
  std::vector<Tensor> tensors;  // gradients, in backward (ready) order
  std::vector<Tensor>
      buffers;  // state without a gradient (batch-norm statistics): LocalSGD averages it too
  // What the layers launch, where it is known. The times above are those without compute fusion;
  // make_plan changes them by what a strategy's compute_fusion saves (core/plan/compute_fusion.h).
  OperatorList operators;
  bool rated_times = false;      // work over the device's rate, not times that somebody measured
  bool copies_measured = false;  // the tensors' copy_in and copy_out say what copies cost
  // Of one step's copies, the part during which the device really copies: the rest is the host's,
  // which a profiler slows down. Negative: not known.
  Seconds copy_kernels = -1;
  // How far apart recordings of the same job lie: the standard deviation of the logarithm of a
  // time that was measured. 0: not known.
  double time_spread = 0;
  // What the backward pass computes again instead of keeping it: nothing, attention's scores (which
  // flash attention never keeps), or all of each layer.
  enum class Recompute { kNone, kSelective, kFull } recompute = Recompute::kNone;
  // FP8 products by delayed scaling: ranks agree on the largest values in each pass, so each waits
  // for all.
  bool delayed_scaling = false;
  bool times_given = false;  // by the workload itself, where its operators would cost them too
};

// The same model with all of its computation taking `factor` times as long.
Workload stretched(Workload workload, double factor);

// Samples that a rank handles in one step, all its micro-batches together.
inline std::int64_t samples_of(const Workload& workload) {
  return workload.batch * workload.micro_batches;
}

// Tensors in the order in which the model registered their parameters; the reverse of the order of
// readiness where nobody said.
std::vector<int> registered_order(const std::vector<Tensor>& tensors);

// Tensors that travel apart from all others, where the job is cut: those of one part, the experts'
// among them by themselves. In the order of the parts, each list in backward order.
std::vector<std::vector<int>> exchanged_apart(const Workload& workload);

// Sum of the gradients' waits: the length of one backward pass.
Seconds backward_time(const Workload& workload);

// Returns the forward pass by tensor, in the tensors' (backward) order: shared out by their
// `forward`, else by their `backward`, else by elements. Adds up to workload.forward.
std::vector<Seconds> forward_times(const Workload& workload);

// Computation of a step ahead of its last forward pass: that of the other micro-batches.
Seconds earlier_passes(const Workload& workload);

// Bytes of all gradients as they stand in memory, sparse ones in full.
Bytes gradient_bytes(const Workload& workload);

// Returns whether a gradient has fewer bits than fp32.
bool any_narrow(const Workload& workload);

// Which step of a training is evaluated, and what the adaptive rules need to know about the
// training.
struct Training {
  std::optional<std::int64_t> step;  // one step; neither step nor steps: long after all ramps
  std::int64_t from = 0;             // a run of `steps` steps, beginning here
  std::optional<std::int64_t> steps;
  struct LearningRate {
    double initial = 0.1;
    double final = 0;
    double power = 1;  // of a polynomial decay
    enum class Decay { kConstant, kPolynomial, kCosine } decay = Decay::kConstant;
    std::int64_t warmup = 0;            // steps in which it rises to initial
    std::optional<std::int64_t> steps;  // at which it is final; the run's if left out
  } learning_rate;
  std::vector<std::pair<double, double>> loss;  // (step, value), linear in between
};

// How the simulation is run.
struct Simulation {
  enum class Grain { kMerged, kStep } grain = Grain::kMerged;
  bool fold = true;            // simulate one of many interchangeable links
  std::optional<int> periods;  // plan periods unrolled; default: enough for the spread at hand
  std::optional<int> warmup;   // of these, dropped
};

// A training job as the engine evaluates it.
struct Job {
  Workload workload;
  Cluster cluster;
  Training training = {};
  Simulation simulation = {};
};

// Returns the cluster as the ranks see it that sum a dense gradient: strategies are set for these.
inline Cluster exchanging(const Job& job) { return exchanging(job.cluster, job.workload.parallel); }

}  // namespace syncline
