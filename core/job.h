// The model as the network sees it: gradient tensors in backward order with the time until each is
// ready. Start here for the computation and the communication of a training step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/shared.h"
#include "core/base/units.h"
#include "core/job/dtype.h"
#include "core/job/parallel.h"

namespace syncline {

// The operators of a model's layers: the kernels that a framework launches in one training step, in
// order, with the values that they read and write. Compute fusion rewrites this list (core/plan);
// its cost (cost.h) gives the forward time, each gradient's wait and the update time. Kinds bear
// Paddle's operator names (conv2d, batch_norm, relu, elementwise_add, matmul_v2, ..., suffix
// _grad), because its fusion passes use these.

enum class StepPart { kForward, kBackward, kUpdate };

enum class Layout { kNchw, kNhwc };

struct Value {
  std::string name;  // may be empty; a parameter's gradient is called NAME@GRAD
  Bytes bytes = 0;
};

// A value and the number of times that the operator passes over it in memory. Batch normalisation,
// for one, reads its input twice: for the statistics, and to normalise. An output with 0 passes
// reuses an input's memory.
struct Operand {
  int value = 0;
  int passes = 1;
};

struct Operator {
  std::string kind;
  StepPart part = StepPart::kForward;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  double matrix_flops = 0;  // in matrix products, which tensor cores run if the dtype allows
  double flops = 0;         // all others
  DType dtype = DType::kFp32;
  bool rounded = false;  // products run in TF32 instead of fp32, in FP8 instead of half precision
  Layout layout = Layout::kNchw;
  int kernels = 1;           // launches: a convolution's gradient takes two
  std::int64_t columns = 0;  // of the weight of a matrix product: cublasLt's guard
};

struct OperatorList {
  std::vector<Value> values;
  std::vector<Operator> operators;  // in the order of launch: forward, backward, update
  std::vector<int> gradients;       // value of each of the workload's gradients, in its order

  bool empty() const { return operators.empty(); }
};

// Returns the bytes that the operator moves through memory.
double traffic(const OperatorList& list, const Operator& op);

// Counts the operators of one kind.
int count_of(const OperatorList& list, const std::string& kind);

// Returns the FLOPs of one stage, matrix products and all others.
double flops_of(const OperatorList& list, StepPart part);

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  DType dtype = DType::kFp32;

  // A sparse gradient touches `sparse_rows` rows of the first dimension per rank and step. It is
  // exchanged as (row index, row) and never fused.
  bool sparse = false;
  std::int64_t sparse_rows = 0;

  // Index of its parameter in the model's order of registration; -1: unknown.
  int registered = -1;

  // Time on the compute stream from the previous gradient's readiness to this one's.
  Seconds backward = 0;
  // Weight of its part of the forward pass relative to other tensors; 0 everywhere: as in backward.
  Seconds forward = 0;
  // Measured time of the compute stream to copy it into its bucket and back; used with
  // Workload::copies_measured.
  Seconds copy_in = 0;
  Seconds copy_out = 0;

  // In a model-parallel job (parallel.h): the part of the model that it belongs to, in the model's
  // order, and if it belongs to an expert that ranks share.
  int part = 0;
  bool expert = false;

  // A parameter without a gradient: computed with, gathered if ranks hold shards of it, never
  // summed or updated.
  bool frozen = false;

  Bytes bytes() const { return elements * size_of(dtype); }
};

struct Workload {
  std::string name;
  std::string source;       // where shapes and times come from
  std::int64_t batch = 1;   // samples per rank and micro-batch
  bool batch_given = true;  // false: unknown, so there is no throughput in samples
  std::int64_t tokens = 0;  // per sample; 0: unknown
  // Version of the framework that the job trains with, "2.7"; readers and writers of its
  // configurations follow it. Empty: unknown.
  std::string framework_version;
  // Forward and backward passes per step: gradients accumulate over them and are exchanged during
  // the last backward pass. All times are those of one micro-batch.
  std::int64_t micro_batches = 1;
  // Model parallelism. With a pipeline, tensors and times are those of a rank that held all its
  // parts.
  Parallel parallel;
  Seconds forward = 0;  // one forward pass
  Seconds update = 0;   // the optimiser over all parameters
  // fp32 values of optimiser state per parameter: SGD 0, momentum 1, Adam 2.
  int optimizer_states = 2;
  bool optimizer_given = false;  // false: unknown, Adam is assumed
  Seconds host_gap = 0;          // the device waits for the host before the update
  // Time before a step's first forward pass to broadcast rank 0's buffers (DDP's
  // broadcast_buffers). LocalSGD averages buffers instead, unless it is a hook of DDP's.
  Seconds buffer_broadcast = 0;
  std::vector<Tensor> tensors;  // gradients and frozen parameters, in backward (ready) order
  std::vector<Tensor>
      buffers;  // state without a gradient (batch-norm statistics): LocalSGD averages it too
  // Operators that the layers launch, if known. The times above are those without compute fusion;
  // make_plan reduces them by the gain of a strategy's compute_fusion (core/plan/compute_fusion.h).
  Shared<OperatorList> operators;
  bool rated_times = false;      // true: work / the device's rate, not measured
  bool copies_measured = false;  // true: the tensors' copy_in and copy_out are the cost of copies
  // Part of a step's copies during which the device copies. The rest is the host's, which a
  // profiler slows down. Negative: unknown.
  Seconds copy_kernels = -1;
  // Spread between recordings of the same job: the standard deviation of the logarithm of a
  // measured time. 0: unknown.
  double time_spread = 0;
  // The backward pass recomputes nothing, attention's scores (which flash attention never keeps),
  // every second product of a layer and all that is cheap (torchtitan's "op"), or all of each
  // layer.
  enum class Recompute { kNone, kSelective, kProducts, kFull } recompute = Recompute::kNone;
  int recompute_every = 1;  // kFull: 2 is every second layer
  // FP8 products use delayed scaling: ranks agree on the largest values in each pass, so each waits
  // for all.
  bool delayed_scaling = false;
  bool times_given = false;  // by the workload, although its operators would cost them too
};

// Returns the same model with all computation taking `factor` times as long.
Workload scale_computation(Workload workload, double factor);

// Returns the samples of a rank in one step, over all micro-batches.
inline std::int64_t samples_of(const Workload& workload) {
  return workload.batch * workload.micro_batches;
}

// Returns tensors in the model's order of registration, or in the reverse of the order of readiness
// if that is unknown.
std::vector<int> registered_order(const std::vector<Tensor>& tensors);

// Returns the tensors that travel apart from all others in a model-parallel job: those of each
// part, its experts' ones by themselves. Parts are in order, each list in backward order.
std::vector<std::vector<int>> separate_tensors(const Workload& workload);

// Returns the sum of the gradients' waits: the length of one backward pass.
Seconds backward_time(const Workload& workload);

// Returns the forward pass by tensor, in the tensors' (backward) order: weighted by their
// `forward`, else by `backward`, else by elements. Adds up to workload.forward.
std::vector<Seconds> forward_times(const Workload& workload);

// Returns the computation of a step before its last forward pass: that of the other micro-batches.
Seconds earlier_passes(const Workload& workload);

// Returns the bytes of all gradients in memory, sparse ones in full.
Bytes gradient_bytes(const Workload& workload);

// Returns the place of the last gradient: none after it is asked for.
int last_gradient(const Workload& workload);

// True if a gradient has fewer bits than fp32.
bool any_narrow(const Workload& workload);

// The evaluated step of a training, and the inputs of the adaptive rules.
struct Training {
  std::optional<std::int64_t> step;  // one step; without step and steps: long after all ramps
  std::int64_t from = 0;             // a run of `steps` steps, beginning here
  std::optional<std::int64_t> steps;
  struct LearningRate {
    double initial = 0.1;
    double final = 0;
    double power = 1;  // of a polynomial decay
    enum class Decay { kConstant, kPolynomial, kCosine } decay = Decay::kConstant;
    std::int64_t warmup = 0;            // steps in which it rises to `initial`
    std::optional<std::int64_t> steps;  // at which it is `final`; default: the run's
  } learning_rate;
  std::vector<std::pair<double, double>> loss;  // (step, value), linear in between
};

// Settings of the simulation.
struct Simulation {
  enum class Granularity { kMerged, kStep } granularity = Granularity::kMerged;
  bool fold = true;            // simulate one of many interchangeable links
  std::optional<int> periods;  // plan periods unrolled; default: enough for the jitter's mean
  std::optional<int> warmup;   // of these, dropped
};

// A training job as the engine evaluates it.
struct Job {
  Workload workload;
  Cluster cluster;
  Training training = {};
  Simulation simulation = {};
};

// Returns the cluster as seen by the ranks that sum a dense gradient: strategies are set for these.
inline Cluster exchanging(const Job& job) { return exchanging(job.cluster, job.workload.parallel); }

}  // namespace syncline
