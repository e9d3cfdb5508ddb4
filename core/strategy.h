// A strategy of gradient synchronisation, in two parts: the knobs that people choose, and the
// traits of the framework that carries them out. core/plan turns a strategy into a plan; no other
// code interprets these fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "core/job/dtype.h"

namespace syncline {

// The rule by which gradients travel together. Buckets are runs of gradients in backward order.
struct Fusion {
  enum class Rule {
    kNone,    // each gradient by itself
    kLayer,   // the gradients of one layer together
    kSize,    // until `size` bytes (and, if set, `count` tensors)
    kCount,   // until `count` tensors
    kIndex,   // explicit inclusive end indices
    kOne,     // all gradients in one bucket
    kGroups,  // explicit lists: the result of a framework's own rule on this workload
    kMgWfbp,  // MG-WFBP's greedy merging by ready times and costs (core/plan/fusion.h)
  };
  Rule rule = Rule::kNone;
  Bytes size = 0;
  Bytes first_size = 0;  // limit of the first bucket, 0: like the others; a small one starts early
  std::int64_t count = 0;  // 0: no limit by count
  std::vector<std::int64_t> ends;
  // Tensor indices by group; ready groups are exchanged in this order. Gradients in no group travel
  // by themselves.
  std::vector<std::vector<int>> groups;
  // kAfter: a bucket closes once it has reached the limit, so it overshoots (Paddle, DDP). kBefore:
  // it closes before the next tensor would exceed the limit (Horovod).
  enum class Close { kAfter, kBefore } close = Close::kAfter;
  bool by_layer = false;  // whole layers are added at a time (Paddle)
  // Layer of a tensor: its name up to the last dot (torch: "layer4.2.bn1.weight") or the first
  // (Paddle: "fc_0.w_0").
  enum class LayerKey { kLastDot, kFirstDot } layer_key = LayerKey::kLastDot;
  // Direction of kSize and kCount: backward (as gradients become ready) or forward. Forward begins
  // with the first layer and leaves a small bucket with the last layers (DeAR).
  enum class Order { kBackward, kForward } order = Order::kBackward;
  // kSize: seconds between ticks that release gradients, also while the network is busy. Gradients
  // ready at a tick are packed without waiting for more (Horovod). 0: released once ready.
  Seconds cycle = 0;
  // kMgWfbp: an open group of fewer elements always takes the next gradient.
  std::int64_t min_elements = 0;
  // kMgWfbp: assumed cost of an all-reduce, by number of ranks, if an implementation has it
  // hard-coded. Empty: this cluster's costs.
  struct AssumedCost {
    int ranks = 0;
    Seconds latency = 0;
    double seconds_per_byte = 0;

    bool operator==(const AssumedCost&) const = default;
  };
  std::vector<AssumedCost> costs;
  // Format of a bucket's sums. kFp32: narrower gradients are cast to it in their bucket and back
  // (MindSpore). A half format: the backward pass produces gradients in it, narrower than their
  // parameters (FSDP's reduce_dtype). Empty: the gradients' own.
  std::optional<DType> sum_format;
  Bytes align = 1;  // each tensor is padded to this multiple on the wire (Paddle on GPUs: 256)

  bool sums_in_fp32() const { return sum_format == DType::kFp32; }
  bool sums_in_half() const { return sum_format && !sums_in_fp32(); }

  bool operator==(const Fusion&) const = default;
};

struct Hierarchy {
  enum class Form {
    kFlat,
    kLeaders,  // inside each group, among the leaders, back to the group
    kSharded,  // reduce-scatter inside, all-reduce of each shard across, all-gather inside
  };
  Form form = Form::kFlat;
  int group_size = 0;  // ranks per group, at least 1; readers default to a node's GPUs
  // kLeaders: a group first all-reduces (Paddle's documents); false: it reduces to its leader
  // (Paddle's code).
  bool first_all_reduce = false;
  std::string inside;  // algorithm inside a group; empty: the strategy's
  std::string across;  // algorithm among leaders or shards; empty: the strategy's

  bool operator==(const Hierarchy&) const = default;
};

struct Compression {
  std::string codec;                    // empty: none; rows of core/codec.h
  std::vector<double> sparsity{0.999};  // ramp: share of the elements that is not sent
  std::int64_t rampup_begin_step = 0;   // dense before this step; powersgd's start too
  std::int64_t rampup_step = 1;         // the ramp's length, shared evenly by its sparsities
  std::int64_t min_elements = 16384;    // smaller tensors stay dense
  // powersgd: rank of a matrix's two factors, and the minimum of matrix elements / factor elements
  // for a matrix to be compressed.
  std::int64_t rank = 1;
  double min_rate = 2;
  // Kernel launches per bucket, of powersgd per matrix. Minimum: one fused kernel each way.
  // Paddle's DGC takes about 14 to encode, and one per rank and one more to decode.
  std::int64_t encode_launches = 1;
  std::int64_t decode_launches = 1;

  bool operator==(const Compression&) const = default;
};

// Update by averaged parameters (DiLoCo, Douillard et al. 2023). An optimizer uses the mean change
// of the ranks' parameters since its last step, with its sign turned, as a gradient.
struct Outer {
  enum class Optimizer { kNone, kSgd, kNesterov } optimizer = Optimizer::kNone;  // kNone: the mean
  double rate = 0.7;
  double momentum = 0.9;  // kNesterov
  double mix = 0;         // share of its own parameters that a rank keeps

  bool any() const { return optimizer != Optimizer::kNone; }
  bool operator==(const Outer&) const = default;
};

struct LocalSgd {
  bool enabled = false;
  std::int64_t period = 1;  // steps from one averaging to the next
  // Periods of equal blocks of ranks, with mean `period`; empty: all alike.
  std::vector<std::int64_t> periods;
  std::int64_t begin_step = 1;  // up to this step the parameters are averaged at each step
  bool adaptive = false;        // true: the period follows loss and learning rate
  std::int64_t init_period = 1;
  std::int64_t max_period = 16;
  // Group size: ranks that all-reduce gradients in every local step, by the strategy's other knobs.
  // 1: none. The averaging then uses one bucket and the strategy's compression; all ranks take part
  // (PyTorch's post-local SGD), or with `outer` one rank per group and shard.
  int subgroup = 1;
  Outer outer;
  int fragments = 1;       // parts of the parameters, averaged by turns, each once per period
  std::int64_t delay = 0;  // steps from sending a fragment to applying it
  // Up to begin_step gradients are all-reduced among all ranks, instead of parameters averaged.
  // LocalSGD is a hook of DDP's then: buffers are broadcast before each step and never averaged.
  bool warmup_gradients = false;

  bool operator==(const LocalSgd&) const = default;
};

// Operators of the workload that become one, by the names of Paddle's build strategy. Without
// effect on a workload without operators.
struct ComputeFusion {
  bool fuse_relu_depthwise_conv = false;  // relu into the depthwise convolution after it
  bool fuse_bn_act_ops = false;           // batch_norm + relu; fp16 with channels last only
  bool fuse_bn_add_act_ops = false;       // batch_norm + elementwise_add + relu; as above
  bool fuse_gemm_epilogue = false;        // product + bias + activation, cublasLt
  bool fuse_elewise_add_act_ops = false;  // elementwise_add + activation
  bool fuse_all_optimizer_ops = false;    // one update operator, which waits for every gradient

  bool operator==(const ComputeFusion&) const = default;
};

// Details of a framework's buckets. With the defaults an engine has none of them.
struct BucketTraits {
  // kGroups: each bucket waits for the buckets before it in the list (DDP). false: a bucket goes
  // once it is ready.
  bool in_turn = false;
  // Cuts of one gradient that is the only one in its bucket, as the first element of each further
  // part (DeepSpeed cuts gradients above reduce_bucket_size).
  struct Cuts {
    int tensor = 0;
    std::vector<std::int64_t> at;

    bool operator==(const Cuts&) const = default;
  };
  std::vector<Cuts> cuts;
  // Multiples to which each tensor's offset and each bucket's end are padded, in elements of the
  // bucket's format (Megatron's distributed optimizer: 64, and a multiple of the ranks and 128).
  std::int64_t align_elements = 1;
  std::int64_t pad_elements = 1;
  // Multiple to which each tensor's first dimension is padded, in rows (FSDP2: the ranks, which all
  // hold the same number of rows).
  std::int64_t pad_rows = 1;
  // A bucket also waits for the gradient after its last one, because only a gradient that no
  // longer fits closes it (DeepSpeed).
  bool with_next = false;
  // Groups with a gradient are summed with room for their frozen parameters, and the backward pass
  // gathers no group ahead that it does not reach (FSDP1).
  bool sums_frozen = false;

  bool operator==(const BucketTraits&) const = default;
};

// Parameters that passes gather as they enter modules: those of the module itself, then those of
// the next modules (DeepSpeed's ZeRO-3). Sizes are in elements.
struct Fetches {
  std::int64_t live = 0;   // limit of elements in place for gathering ahead; 0: passes gather none
  std::int64_t ahead = 0;  // gathered ahead at each module; the last parameter may exceed it
  std::int64_t reuse = 0;  // parameters whose next module is nearer than this stay in place

  bool any() const { return live > 0; }
  bool operator==(const Fetches&) const = default;
};

// Rules by which one framework's engine carries a strategy out. The reader of that framework's
// settings sets them; no search varies them. Default: an engine without such rules.
struct FrameworkTraits {
  BucketTraits buckets;
  // Hierarchy::Form::kSharded: the steps after the reduce-scatter have their own stream, and the
  // next bucket's reduce-scatter does not wait for them (FSDP).
  bool across_stream = false;
  bool across_last = false;  // groups communicate only in the last micro-batch (MiCS)
  // The first step of the training exchanges all gradients of a format in one bucket, because the
  // framework does not know their order yet (DDP). Costs are those of the later steps.
  bool whole_first_step = false;
  // The part of a training state that each rank holds a shard of (ZeRO's stages 1 to 3), for a
  // sharded update. It changes memory, not time.
  enum class Sharded { kStates, kGradients, kParameters } sharded = Sharded::kStates;
  // The update reads an fp32 copy of narrower gradients, each rank of its shard (Megatron). It
  // changes memory, not time.
  bool fp32_copies = false;
  // Ranks in the groups that gather parameters for the backward pass; each group holds a second
  // copy in shards (FSDP2's reshard_after_forward as a number, hpZ). 0: the ranks that hold the
  // first copy.
  int regather_group = 0;
  int kept_groups = 0;  // number of gather_groups, from the first, that are not gathered again
  // Parameters in shards stay whole between micro-batches that exchange no gradients (FSDP1's
  // SHARD_GRAD_OP in no_sync). false: each micro-batch gathers them.
  bool kept_in_step = false;
  // Bytes per element when a parameter is gathered; 0: as its gradient. 1 (FP8) applies to matrices
  // of layers; other parameters then take 2 (Megatron's fp8-param-gather).
  int gather_bytes = 0;
  // For regather: passes gather the parameters in no gather_groups, as they need them.
  Fetches fetches;
  // Exchanges that may be unfinished when the backward pass continues past a bucket's exchange
  // (DeepSpeed: 1); 0: the backward pass waits for none.
  int in_flight = 0;
  // Buffers are broadcast before each step if the workload says how long that takes (DDP).
  bool broadcast_buffers = true;

  bool operator==(const FrameworkTraits&) const = default;
};

struct Strategy {
  std::string name;
  std::string about;
  std::string dialect;             // format in which it was written; empty: Syncline's own keys
  std::vector<std::string> notes;  // silent deviations of that framework from its settings
  std::vector<std::string>
      suspicious;       // likely mistakes in its configuration: another unit, no units
  bool overlap = true;  // false: computation and communication share one stream
  int streams = 1;      // communication streams, each with its own communicator
  std::string algorithm = "ring";
  Fusion fusion;
  Hierarchy hierarchy;
  Compression compression;
  LocalSgd local_sgd;
  ComputeFusion compute_fusion;
  // The collectives that carry a gradient to all ranks.
  //   kAllReduce  one all-reduce
  //   kDecoupled  its two halves: a reduce-scatter in the backward pass, an all-gather after it,
  //               first layers first (DeAR, Zhang et al. 2023)
  //   kSharded    gradients are reduce-scattered, each rank updates its shard of the parameters,
  //               which are all-gathered, first layers first (ZeRO; MindSpore's parallel optimizer)
  //   kShardedUpdate  gradients are all-reduced, the rest is as in kSharded (DeepSpeed's ZeRO-1)
  enum class Exchange {
    kAllReduce,
    kDecoupled,
    kSharded,
    kShardedUpdate
  } exchange = Exchange::kAllReduce;
  // Sharded: the parameters' own buckets; empty: gathered as the gradients were scattered. Without
  // cross_step they are gathered in this order.
  std::vector<std::vector<int>> gather_groups;
  // kSharded: parameters are gathered again for the backward pass, each bucket's while the backward
  // pass of the one before runs (FSDP).
  bool regather = false;
  // Segments of a torch.compile graph, by the index of their last gradient; the rest is one more
  // segment. All gradients of a segment are ready at its end. Empty: each is ready once computed.
  std::vector<std::int64_t> graph_segments;
  // Gradients are exchanged in every micro-batch, not only in the last.
  bool each_micro_batch = false;
  // Gradients are exchanged once all passes (in a pipeline: of their stage) are over, in the order
  // of the groups (Megatron without overlap-grad-reduce; FSDP2 in torch's stages).
  bool after_passes = false;
  // The next step's forward pass waits layer by layer for its parameters, instead of for all.
  bool cross_step = false;
  // kReady: buckets are sent as they become ready. kLayer: a free network takes the bucket that the
  // next forward pass needs first (ByteScheduler).
  enum class Priority { kReady, kLayer } priority = Priority::kReady;
  Bytes credit = 0;            // kLayer: bytes handed to the network at a time; 0: one bucket
  Bytes partition = 0;         // tensors above this size travel in parts of it; 0: whole
  bool bucket_copies = false;  // gradients are copied into their buckets and back (DDP)
  bool host_sync = false;  // the host waits for each exchange before it issues the next (Paddle)
  // kAfterAll: one optimiser step once every collective is done. kPerBucket: each bucket's
  // parameters are updated when its collective is done, in order, after the backward pass.
  enum class Update { kAfterAll, kPerBucket } update = Update::kAfterAll;
  // Contents of the host's memory (core/plan/offload.h). kOptimizer: the optimizer's states, which
  // the host's processors update (ZeRO-Offload). kParameters: parameters between the passes. kAll:
  // both.
  enum class Offload { kNone, kOptimizer, kParameters, kAll } offload = Offload::kNone;
  FrameworkTraits traits;
};

// Sets another fusion. The bucket rules of the framework do not apply to it.
inline void set_fusion(Strategy& strategy, Fusion fusion) {
  strategy.fusion = std::move(fusion);
  strategy.traits.buckets = {};
}

// Returns the number of ranks that together hold all shards of the parameters. With the sharded
// hierarchy this is one group; the other groups are replicas (HSDP).
inline int shard_ranks(const Strategy& strategy, int ranks) {
  const bool groups = strategy.exchange != Strategy::Exchange::kShardedUpdate &&
                      strategy.hierarchy.form == Hierarchy::Form::kSharded;
  return groups ? strategy.hierarchy.group_size : ranks;
}

// True if the host's processors update, in its memory.
inline bool states_on_host(const Strategy& strategy) {
  return strategy.offload == Strategy::Offload::kOptimizer ||
         strategy.offload == Strategy::Offload::kAll;
}

// True if the host's memory holds the parameters between the passes.
inline bool parameters_on_host(const Strategy& strategy) {
  return strategy.offload == Strategy::Offload::kParameters ||
         strategy.offload == Strategy::Offload::kAll;
}

// True if each rank updates a shard of the parameters, which are then all-gathered.
inline bool shards_update(const Strategy& strategy) {
  return strategy.exchange == Strategy::Exchange::kSharded ||
         strategy.exchange == Strategy::Exchange::kShardedUpdate;
}

// True if a rank holds only its shard of the parameters between the passes.
inline bool holds_shards(const Strategy& strategy) {
  return shards_update(strategy) &&
         (strategy.regather || strategy.traits.sharded == FrameworkTraits::Sharded::kParameters);
}

// True if each micro-batch gathers the parameters, even one that exchanges no gradients.
inline bool gathers_each_pass(const Strategy& strategy) {
  return holds_shards(strategy) && !strategy.traits.kept_in_step;
}

}  // namespace syncline
