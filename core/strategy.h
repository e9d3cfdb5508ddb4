// A strategy of gradient synchronisation, in two parts: the knobs that people choose, and the
// traits of the framework that carries them out. core/plan turns a strategy into a plan; nothing
// else interprets these fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "core/job/dtype.h"

namespace syncline {

// Which gradients travel together. Buckets are runs of gradients in backward order.
struct Fusion {
  enum class Rule {
    kNone,    // each gradient alone
    kLayer,   // the gradients of one layer together
    kSize,    // until `size` bytes (and, if set, `count` tensors)
    kCount,   // until `count` tensors
    kIndex,   // explicit inclusive end indices
    kOne,     // all gradients in one bucket
    kGroups,  // explicit lists: what a dialect's own rule came to on this workload
    kMgWfbp,  // MG-WFBP's greedy merging by ready times and costs (core/plan/fusion.h)
  };
  Rule rule = Rule::kNone;
  Bytes size = 0;
  Bytes first_size = 0;  // limit of the first bucket, 0: like the others; a small one starts early
  std::int64_t count = 0;  // 0: no limit by count
  std::vector<std::int64_t> ends;
  // By tensor index, in the order in which the groups are exchanged once ready. Gradients that are
  // in no group travel alone.
  std::vector<std::vector<int>> groups;
  // kAfter: a bucket closes once it has reached the limit, so it overshoots (Paddle, DDP).
  // kBefore: it closes before the next tensor would exceed the limit (Horovod).
  enum class Close { kAfter, kBefore } close = Close::kAfter;
  bool by_layer = false;  // whole layers are added at a time (Paddle)
  // Layer of a tensor: its name up to the last dot (torch: "layer4.2.bn1.weight") or the first
  // (Paddle: "fc_0.w_0").
  enum class LayerKey { kLastDot, kFirstDot } layer_key = LayerKey::kLastDot;
  // The order in which kSize and kCount walk: backward (as gradients become ready) or forward,
  // first layer first, which leaves a small bucket with the last layers instead (DeAR).
  enum class Order { kBackward, kForward } order = Order::kBackward;
  // kSize: gradients are released at ticks, one every `cycle`, also while the network is busy; what
  // is ready at a tick is packed without waiting for more (Horovod). 0: released once ready.
  Seconds cycle = 0;
  // kMgWfbp: an open group of fewer elements takes the next gradient whatever the rule says.
  std::int64_t min_elements = 0;
  // kMgWfbp: what an all-reduce is taken to cost, by the number of ranks, as an implementation may
  // have it written down; empty: what this cluster's costs say.
  struct AssumedCost {
    int ranks = 0;
    Seconds latency = 0;
    double seconds_per_byte = 0;

    bool operator==(const AssumedCost&) const = default;
  };
  std::vector<AssumedCost> costs;
  // Format of a bucket's sums. kFp32: narrower gradients are cast to it in their bucket and back
  // (MindSpore). A half format: gradients leave the backward pass in it, narrower than their
  // parameters (FSDP's reduce_dtype). Nothing: the gradients' own.
  std::optional<DType> sum_format;
  Bytes align = 1;  // each tensor is padded to this many bytes on the wire (Paddle on GPUs: 256)

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
  int group_size = 0;             // ranks a group, at least 1; readers take the GPUs of a node
  bool first_all_reduce = false;  // kLeaders: the documents all-reduce inside first, Paddle reduces
  std::string inside;             // algorithm inside a group; empty: the strategy's
  std::string across;             // algorithm among leaders or shards; empty: the strategy's

  bool operator==(const Hierarchy&) const = default;
};

struct Compression {
  std::string codec;                    // empty: none; rows of core/codec.h
  std::vector<double> sparsity{0.999};  // ramp: share of the elements that stays at home
  std::int64_t rampup_begin_step = 0;   // dense before this step; powersgd's start likewise
  std::int64_t rampup_step = 1;         // the ramp's length, shared evenly by its sparsities
  std::int64_t min_elements = 16384;    // smaller tensors stay dense
  // powersgd: the rank of a matrix's two factors, and how many times smaller than the matrix they
  // must at least be together for it to be compressed.
  std::int64_t rank = 1;
  double min_rate = 2;
  // Kernel launches per bucket, of powersgd per matrix. One fused kernel each way is the least;
  // Paddle's DGC takes about 14 to encode, and one a rank and one more to decode.
  std::int64_t encode_launches = 1;
  std::int64_t decode_launches = 1;

  bool operator==(const Compression&) const = default;
};

// What becomes of averaged parameters (DiLoCo, Douillard et al. 2023). An optimizer takes the mean
// of how far ranks have come since its last step for a gradient, whose sign is turned.
struct Outer {
  enum class Optimizer { kNone, kSgd, kNesterov } optimizer = Optimizer::kNone;  // kNone: the mean
  double rate = 0.7;
  double momentum = 0.9;  // kNesterov
  double mix = 0;         // what a rank keeps of its own parameters, as a share

  bool any() const { return optimizer != Optimizer::kNone; }
  bool operator==(const Outer&) const = default;
};

struct LocalSgd {
  bool enabled = false;
  std::int64_t period = 1;  // steps from one averaging to the next
  // Likewise of each of so many equal blocks of ranks, whose mean `period` is; empty: all alike.
  std::vector<std::int64_t> periods;
  std::int64_t begin_step = 1;  // up to this step the parameters are averaged at each step
  bool adaptive = false;        // the period follows loss and learning rate
  std::int64_t init_period = 1;
  std::int64_t max_period = 16;
  // Ranks that exchange their gradients in each local step, by the strategy's other knobs; its
  // compression then is of what is averaged, in one bucket. Without `outer` all ranks take part in
  // that (PyTorch's post-local SGD), with it one of each group for each part. 1: none do.
  int subgroup = 1;
  Outer outer;
  int fragments = 1;       // parts of the parameters, averaged by turns, each once a period
  std::int64_t delay = 0;  // steps that go on while a fragment travels, before it is applied
  // Up to begin_step gradients are all-reduced among all ranks, instead of parameters averaged. All
  // of it then is a hook of DDP's: buffers are broadcast ahead of each step and never averaged.
  bool warmup_gradients = false;

  bool operator==(const LocalSgd&) const = default;
};

// Which operators of the workload become one, by the names of Paddle's build strategy. Nothing
// happens to a workload without operators.
struct ComputeFusion {
  bool fuse_relu_depthwise_conv = false;  // relu into the depthwise convolution behind it
  bool fuse_bn_act_ops = false;           // batch_norm + relu; fp16 with channels last only
  bool fuse_bn_add_act_ops = false;       // batch_norm + elementwise_add + relu; likewise
  bool fuse_gemm_epilogue = false;        // product + bias + activation, cublasLt
  bool fuse_elewise_add_act_ops = false;  // elementwise_add + activation
  bool fuse_all_optimizer_ops = false;    // one update operator, which waits for every gradient

  bool operator==(const ComputeFusion&) const = default;
};

// Details of a framework's buckets. An explicit fusion of another engine has none of them.
struct BucketTraits {
  // kGroups: each bucket waits for the buckets before it in the list (DDP). false: a bucket goes
  // once it is ready.
  bool in_turn = false;
  // Cuts of one gradient that is alone in its bucket, as the first element of each further part
  // (DeepSpeed cuts gradients above reduce_bucket_size).
  struct Cuts {
    int tensor = 0;
    std::vector<std::int64_t> at;

    bool operator==(const Cuts&) const = default;
  };
  std::vector<Cuts> cuts;
  // Multiples to which each tensor's place and each bucket's end are padded, in elements of the
  // bucket's format (Megatron's distributed optimizer: 64, and a multiple of the ranks and 128).
  std::int64_t align_elements = 1;
  std::int64_t pad_elements = 1;
  // Multiple to which each tensor's first dimension is padded, in rows (FSDP2: the ranks, each of
  // which holds the same number of rows).
  std::int64_t pad_rows = 1;
  // A bucket also waits for the gradient after its last one, because only a gradient that no
  // longer fits closes it (DeepSpeed).
  bool with_next = false;

  bool operator==(const BucketTraits&) const = default;
};

// Parameters that passes gather as they enter modules: those of the module itself, then those of
// the modules behind it (DeepSpeed's ZeRO-3). Sizes are in elements.
struct Fetches {
  std::int64_t live = 0;   // in place, from which on none are gathered ahead; 0: passes gather none
  std::int64_t ahead = 0;  // gathered ahead at each module, or more by the last parameter
  std::int64_t reuse = 0;  // to the parameters' next module, below which they stay in place

  bool any() const { return live > 0; }
  bool operator==(const Fetches&) const = default;
};

// How one framework's engine carries a strategy out. The reader of that framework's settings sets
// these fields; no search varies them. The defaults are those of an engine without such rules.
struct FrameworkTraits {
  BucketTraits buckets;
  // Hierarchy::Form::kSharded: the steps after the reduce-scatter have a stream of their own, and
  // the next bucket's reduce-scatter does not wait for them (FSDP).
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
  int kept_groups = 0;  // the number of gather_groups, from the first, that are not gathered again
  // Bytes of a parameter's element when it is gathered; 0: as its gradient. 1 (FP8) applies to
  // matrices of layers; other parameters then take 2 (Megatron's fp8-param-gather).
  int gather_bytes = 0;
  // With regather: the passes gather the parameters of no gather_groups, as they need them.
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
  std::string dialect;             // in which it was written; empty: Syncline's own keys
  std::vector<std::string> notes;  // what that framework silently does otherwise than it says
  std::vector<std::string>
      suspicious;       // what its configuration hardly means: another unit, no units
  bool overlap = true;  // false: computation and communication share one stream
  int streams = 1;      // communication streams, each with a communicator of its own
  std::string algorithm = "ring";
  Fusion fusion;
  Hierarchy hierarchy;
  Compression compression;
  LocalSgd local_sgd;
  ComputeFusion compute_fusion;
  // What carries a gradient to all ranks.
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
  // The last gradient of each piece that the backward pass runs in, whose gradients are all there
  // at its end (graphs of torch.compile); what is behind the last of them is a piece too. Empty:
  // each gradient is there once it is computed.
  std::vector<std::int64_t> pieces;
  // Gradients are exchanged in every micro-batch, not in the last alone.
  bool each_micro_batch = false;
  // Gradients are exchanged once all passes (in a pipeline: of their stage) are over, in the order
  // of the groups (Megatron without overlap-grad-reduce; FSDP2 in torch's stages).
  bool after_passes = false;
  // The next step's forward pass waits layer by layer for its parameters, instead of for all.
  bool cross_step = false;
  // kReady: buckets go in the order in which they become ready. kLayer: whenever the network is
  // free, the bucket that the next forward pass needs first goes first (ByteScheduler).
  enum class Priority { kReady, kLayer } priority = Priority::kReady;
  Bytes credit = 0;            // kLayer: bytes handed to the network at a time; 0: one bucket
  Bytes partition = 0;         // tensors above this travel in parts of it; 0: whole
  bool bucket_copies = false;  // gradients are copied into their buckets and back (DDP)
  bool host_sync = false;  // the host waits for each exchange before it issues the next (Paddle)
  // kAfterAll: one optimiser step once every collective is done. kPerBucket: each bucket's
  // parameters are updated when its collective is done, in order, after the backward pass.
  enum class Update { kAfterAll, kPerBucket } update = Update::kAfterAll;
  FrameworkTraits traits;
};

// Sets another fusion. The bucket rules of the framework do not apply to it.
inline void set_fusion(Strategy& strategy, Fusion fusion) {
  strategy.fusion = std::move(fusion);
  strategy.traits.buckets = {};
}

// Ranks that hold all shards of the parameters together: with the sharded hierarchy those of a
// group, whose replicas the other groups are (HSDP).
inline int shard_ranks(const Strategy& strategy, int ranks) {
  const bool groups = strategy.exchange != Strategy::Exchange::kShardedUpdate &&
                      strategy.hierarchy.form == Hierarchy::Form::kSharded;
  return groups ? strategy.hierarchy.group_size : ranks;
}

// Each rank updates a shard of the parameters, which are then all-gathered.
inline bool shards_update(const Strategy& strategy) {
  return strategy.exchange == Strategy::Exchange::kSharded ||
         strategy.exchange == Strategy::Exchange::kShardedUpdate;
}

// Between the passes a rank has no more than its shard of the parameters.
inline bool holds_shards(const Strategy& strategy) {
  return shards_update(strategy) &&
         (strategy.regather || strategy.traits.sharded == FrameworkTraits::Sharded::kParameters);
}

}  // namespace syncline
