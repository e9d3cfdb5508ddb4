#include "formats/input/knobs.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/codec.h"
#include "formats/input/spellings.h"

namespace syncline::input {

const std::vector<CodecWords>& codec_words() {
  static const std::vector<CodecWords> words{
      {{"dgc"},
       "deep gradient compression, only the largest elements are sent and the rest waits for "
       "later steps."},
      {{"fp16", "bf16"}, "gradients travel as 16-bit numbers."},
      {{"powersgd"}, "matrices travel as two factors of low rank."},
      {{"batched_powersgd"}, "each bucket does, as one square matrix."},
      {{"int8", "int4", "fp8", "fp8_e5m2"},
       "blocks of 128 values with a scale, summed in fp32 (fp8 is E4M3). By the algorithms "
       "all_to_all and nccl each rank gets its part of all ranks' blocks, rounds their sum once, "
       "and the library gathers the sums; other algorithms round in each round."}};
  return words;
}

namespace {

Spelling<std::vector<double>> shares_below_one() {
  auto spelling = list_of(number<double>({0, 1}, 1), "at least one value");
  spelling.schema["items"] = {{"type", "number"}, {"minimum", 0}, {"exclusiveMaximum", 1}};
  spelling.read = [read = spelling.read](const Entry& entry) {
    if (entry.value.is_number()) {
      const double found = entry.value.get<double>();
      const Json share = found > 1 && found < 100 ? found / 100 : found;
      entry.fail("found " + describe(entry.value) +
                 ", expected a list of shares below 1, such as [" + describe(share) + "]");
    }
    auto shares = read(entry);
    if (std::find(shares.begin(), shares.end(), 1) != shares.end()) {
      entry.fail("found 1, expected numbers below 1");
    }
    return shares;
  };
  return spelling;
}

bool is_sparse(const Compression& compression) {
  const compress::Codec* codec = compress::find_codec(compression.codec);
  return codec != nullptr && codec->sparse;
}

// Returns the keys that each codec takes, by its row of the table.
std::vector<Brings> brought_by_codecs() {
  std::vector<Brings> rows;
  for (const compress::Codec& codec : compress::codecs()) {
    std::vector<std::string> brings;
    const auto add = [&](bool takes, std::vector<std::string> keys) {
      if (takes) brings.insert(brings.end(), keys.begin(), keys.end());
    };
    add(codec.sparse || codec.low_rank, {"rampup_begin_step"});
    add(codec.sparse, {"sparsity", "rampup_step", "min_elements"});
    add(codec.low_rank, {"rank"});
    add(codec.low_rank && !codec.whole_bucket, {"min_compression_rate"});
    rows.push_back({Json(codec.name), brings});
  }
  return rows;
}

// Describes every codec: in the order of the table of words, then those that were handed in.
std::string codecs_meaning() {
  std::string meaning;
  std::vector<std::string> described;
  for (const CodecWords& words : codec_words()) {
    for (std::size_t i = 0; i < words.names.size(); ++i) {
      const bool last = i + 1 == words.names.size();
      meaning += (i == 0 ? "" : last ? " and " : ", ") + words.names[i];
    }
    meaning += ": " + words.meaning + " ";
    described.insert(described.end(), words.names.begin(), words.names.end());
  }
  for (const compress::Codec& codec : compress::codecs()) {
    if (std::ranges::find(described, codec.name) != described.end()) continue;
    meaning += std::string(codec.name) + ": " + std::string(codec.summary) + ". ";
  }
  return meaning;
}

// Returns a percentage in eight significant digits, which tell 99.999 % from all.
std::string percent(double share) {
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof text, 100 * share, std::chars_format::general, 8);
  return {text, end.ptr};
}

// Returns "by 75, 93.75, 99.9": a ramp's sparsities in percent.
std::string ramp_words(const Compression& compression) {
  std::string text;
  if (compression.sparsity.size() < 2) return text;
  for (const double share : compression.sparsity) {
    text += (text.empty() ? "by " : ", ") + percent(share);
  }
  return text;
}

// Words for the names of `tune`'s candidates.

std::string stream_words(const Strategy& strategy) {
  return std::to_string(strategy.streams) + (strategy.streams == 1 ? " stream" : " streams");
}

std::string hierarchy_words(const Strategy& strategy) {
  const Hierarchy& hierarchy = strategy.hierarchy;
  if (hierarchy.form == Hierarchy::Form::kFlat) return "flat";
  std::string words = hierarchy.form == Hierarchy::Form::kSharded ? "sharded" : "leaders";
  if (hierarchy.first_all_reduce) words += " (all-reduce first)";
  return words + " in groups of " + std::to_string(hierarchy.group_size) +
         moved_knobs(hierarchy_knobs(), strategy);
}

std::string compression_words(const Strategy& strategy) {
  const Compression& compression = strategy.compression;
  if (compression.codec.empty()) return "uncompressed";
  std::string words = compression.codec;
  if (is_sparse(compression)) words += " at " + percent(compression.sparsity.back()) + " %";
  return words + moved_knobs(compression_knobs(), compression);
}

std::string averaging_words(const Strategy& strategy) {
  const LocalSgd& local = strategy.local_sgd;
  if (!local.enabled) return "gradients at every step";
  const std::string words = local.adaptive ? "adaptive LocalSGD"
                                           : "LocalSGD every " + std::to_string(local.period) +
                                                 (local.period == 1 ? " step" : " steps");
  return words + moved_knobs(local_sgd_knobs(), local);
}

std::string exchange_words(const Strategy& strategy) {
  if (strategy.exchange == Strategy::Exchange::kDecoupled) return "decoupled";
  if (strategy.exchange == Strategy::Exchange::kShardedUpdate) {
    return "all-reduced, sharded update";
  }
  return strategy.exchange == Strategy::Exchange::kSharded ? "sharded update"
                                                           : "all-reduced in one go";
}

std::string compute_fusion_words(const Strategy& strategy) {
  std::string words;
  for (const auto& knob : compute_fusion_knobs().knobs) {
    if (knob.at_rest(strategy.compute_fusion)) continue;
    words += (words.empty() ? "operators fused: " : " + ") + knob.words(strategy.compute_fusion);
  }
  return words.empty() ? "operators unfused" : words;
}

}  // namespace

namespace {

std::vector<Knob<Hierarchy>> group_knobs() {
  using Form = Hierarchy::Form;
  return {
      knob("form", &Hierarchy::form,
           words<Form>({{"leaders", Form::kLeaders}, {"sharded", Form::kSharded}}),
           "leaders: each group sums at its first rank, the leaders all-reduce, and the result is "
           "broadcast inside the groups. sharded: reduce-scatter inside, all-reduce of each shard "
           "across, all-gather inside.")
          .with(kDecides | kWritten)
          .enable({{"leaders", {"first"}}, {"sharded", {"across_stream"}}})
          .describe(""),
      knob("group_size", &Hierarchy::group_size, ranks_in_a_group(),
           "Consecutive ranks in a group; leaf: as many as share a leaf of the fabric in every "
           "group, "
           "as the nodes are placed. Default: gpus_per_node, a group is a node.")
          .patch_schema({{"minimum", 2}})
          .describe(""),
      knob("first", &Hierarchy::first_all_reduce,
           words<bool>({{"reduce", false}, {"all_reduce", true}}),
           "For the form \"leaders\": how a group sums. reduce: at its leader only. all_reduce: "
           "at all its ranks. Default reduce.")
          .describe(""),
      knob("inside", &Hierarchy::inside, algorithm(),
           "Algorithm of the collectives inside a group. Default: the strategy's algorithm.")
          .describe("% inside"),
      knob("across", &Hierarchy::across, algorithm(),
           "Algorithm of the collectives across groups. Default: the strategy's algorithm.")
          .describe("% across")};
}

std::vector<Knob<FrameworkTraits>> across_knobs() {
  return {
      knob("across_stream", &FrameworkTraits::across_stream, yes_or_no(),
           "For the form \"sharded\": whether what follows the reduce-scatter has a stream of its "
           "own, so that the next bucket's reduce-scatter need not wait for it (FSDP). Default "
           "false.")
          .describe("stream of its own across"),
      knob("across_last", &FrameworkTraits::across_last, yes_or_no(),
           "Whether groups communicate in the last micro-batch alone (MiCS), which says something "
           "with each_micro_batch. Default false.")
          .describe("across in the last micro-batch")};
}

}  // namespace

const KnobTable<Strategy>& hierarchy_knobs() {
  static const KnobTable<Strategy> table{"hierarchy",
                                         [](const Setting& setting, Strategy& strategy) {
                                           strategy.hierarchy = {};
                                           strategy.hierarchy.form = Hierarchy::Form::kLeaders;
                                           strategy.hierarchy.group_size =
                                               setting.cluster.gpus_per_node;
                                           strategy.traits.across_stream = false;
                                           strategy.traits.across_last = false;
                                         },
                                         join_knobs(of_member(&Strategy::hierarchy, group_knobs()),
                                                    of_member(&Strategy::traits, across_knobs()))};
  return table;
}

const KnobTable<Compression>& compression_knobs() {
  using C = Compression;
  static const KnobTable<C> table{
      "compression",
      [](const Setting&, C& compression) { compression.codec = "dgc"; },
      {knob("codec", &C::codec, one_of(compress::codec_names()),
            codecs_meaning() + "With local_sgd the codec is of what is averaged.")
           .with(kDecides | kWritten)
           .enable(brought_by_codecs())
           .describe(""),
       knob("sparsity", &C::sparsity, shares_below_one(),
            "Share of elements that dgc keeps back, at least 0 and below 1: 0.999 sends one in a "
            "thousand. Several values are the stages of the ramp, the last one stays. Default "
            "[0.999].")
           .with(kWritten)
           .describe(ramp_words),
       knob("rampup_begin_step", &C::rampup_begin_step, whole<std::int64_t>(0, kMaxSteps),
            "First step that dgc or powersgd compresses; before it gradients travel in full. "
            "Default "
            "0.")
           .with(kWritten)
           .describe("from step %"),
       knob("rampup_step", &C::rampup_step, whole<std::int64_t>(1, kMaxSteps),
            "Steps over which the sparsity values are passed through, in equal parts. Default 1.")
           .with(kWritten)
           .describe("a ramp of % steps"),
       knob("min_elements", &C::min_elements, whole<std::int64_t>(0, kMaxSteps),
            "Tensors with fewer elements than this are never compressed by dgc. Default 16384.")
           .with(kWritten)
           .describe("tensors of % elements or more"),
       knob("rank", &C::rank, whole<std::int64_t>(1, 1 << 16),
            "Columns of powersgd's two factors; a matrix has as many as its smaller side at most. "
            "Default 1.")
           .with(kWritten)
           .describe("rank %"),
       knob("min_compression_rate", &C::min_rate, number<double>({0, 1e9}, 1),
            "How many times smaller than a matrix powersgd's two factors must be together; "
            "otherwise it travels whole, as vectors do. Default 2.")
           .with(kWritten)
           .describe("matrices % times smaller or more"),
       knob("encode_launches", &C::encode_launches, whole<std::int64_t>(0, 100000),
            "Kernels launched to encode one bucket, with powersgd one matrix; each costs the "
            "device's launch_us. Default 1, one fused kernel. Paddle's dgc takes about 14.")
           .with(kWritten)
           .describe("% launches to encode"),
       knob("decode_launches", &C::decode_launches, whole<std::int64_t>(0, 100000),
            "Kernels launched to decode one bucket, or matrix. Default 1. Paddle's dgc takes one "
            "for each "
            "rank and one more.")
           .with(kWritten)
           .describe("% launches to decode")}};
  return table;
}

const KnobTable<Outer>& outer_knobs() {
  using Optimizer = Outer::Optimizer;
  static const KnobTable<Outer> table{
      "outer",
      [](const Setting&, Outer& outer) { outer.optimizer = Optimizer::kNesterov; },
      {knob("optimizer", &Outer::optimizer,
            words<Optimizer>({{"sgd", Optimizer::kSgd}, {"nesterov", Optimizer::kNesterov}}),
            "What steps with the mean of how far the ranks have come: sgd, or nesterov with "
            "momentum. Default nesterov.")
           .patch_schema({{"default", "nesterov"}})
           .with(kDecides | kWritten)
           .enable({{"nesterov", {"momentum"}}})
           .describe("%"),
       knob("rate", &Outer::rate, number<double>({0, 1e3, true}, 1),
            "Learning rate of the outer optimizer; 1 with sgd is the mean. Default 0.7.")
           .with(kWritten)
           .describe("rate %"),
       knob("momentum", &Outer::momentum, number<double>({0, 1}, 1),
            "Of nesterov, which keeps it in fp32. Default 0.9.")
           .with(kWritten)
           .describe("momentum %"),
       knob("mix", &Outer::mix, number<double>({0, 1}, 1),
            "Share of its own parameters that a rank keeps when it takes the new ones (torchft's "
            "fragment_update_alpha). Default 0.")
           .describe("mix %")}};
  return table;
}

const KnobTable<Fetches>& fetch_knobs() {
  constexpr std::int64_t kMax = std::int64_t{1} << 50;
  static const KnobTable<Fetches> table{
      "fetches",
      [](const Setting&, Fetches& fetches) { fetches.live = 1'000'000'000; },
      {knob("live_elements", &Fetches::live, whole<std::int64_t>(1, kMax),
            "Elements in place, from which on a module asks for its own parameters alone "
            "(stage3_max_live_parameters). Default 1000000000.")
           .patch_schema({{"default", 1'000'000'000}})
           .with(kWritten),
       knob("ahead_elements", &Fetches::ahead, whole<std::int64_t>(0, kMax),
            "Elements that each module asks for early, of the modules that come next "
            "(stage3_prefetch_bucket_size); more by the rest of the last parameter. Default 0.")
           .with(kWritten),
       knob("reuse_elements", &Fetches::reuse, whole<std::int64_t>(0, kMax),
            "Parameters stay in place if another module needs them before as many elements of "
            "other modules have passed (stage3_max_reuse_distance). Default 0.")
           .with(kWritten)}};
  return table;
}

const KnobTable<LocalSgd>& local_sgd_knobs() {
  using L = LocalSgd;
  constexpr std::int64_t kMaxPeriod = 1 << 20;
  static const KnobTable<L> table{
      "local_sgd",
      [](const Setting&, L& local) { local.enabled = true; },
      {knob("begin_step", &L::begin_step, whole<std::int64_t>(1, kMaxSteps),
            "Step from which ranks train on their own; before it gradients are summed in every "
            "step. Default 1.")
           .with(kWritten)
           .describe("from step %"),
       knob("subgroup", &L::subgroup, ranks_in_a_group(),
            "Ranks that sum their gradients in each local step, consecutive ones, by the "
            "strategy's other keys (PyTorch's post-local SGD: those of a node). Must divide the "
            "number of ranks; leaf as in hierarchy.group_size; fusion is the gradients', "
            "parameters are averaged in one bucket, "
            "compressed where the strategy says so. 1: none do. Default 1.")
           .describe("gradients all-reduced among %"),
       knob("outer", &L::outer, object_of(outer_knobs()), "")
           .rest_if([](const L& local) { return !local.outer.any(); })
           .describe([](const L& local) {
             return "outer step" + moved_knobs(outer_knobs(), local.outer);
           }),
       knob("fragments", &L::fragments, whole<int>(1, 1 << 16),
            "Parts of the parameters, first layers first, which are averaged by turns, each once a "
            "period, evenly apart (Streaming DiLoCo). Default 1.")
           .describe("% fragments"),
       knob("delay", &L::delay, whole<std::int64_t>(0, kMaxPeriod),
            "Steps that go on between sending a fragment and applying it. Less than period / "
            "fragments. Default 0.")
           .describe("applied % steps later"),
       knob("warmup", &L::warmup_gradients, words<bool>({{"average", false}, {"gradients", true}}),
            "What is summed in every step up to begin_step. average: parameters are averaged. "
            "gradients: gradients are all-reduced among all ranks. Default average.")
           .describe("gradients all-reduced before"),
       knob("period", &L::period, whole<std::int64_t>(1, kMaxPeriod),
            "Steps from one averaging to the next. A larger one communicates less and may cost "
            "accuracy.")
           .with(kWritten)
           .describe(""),
       knob("periods", &L::periods,
            list_of(whole<std::int64_t>(1, kMaxPeriod), "at least one period"),
            "Steps of each of so many equal blocks of ranks, the first ranks first, where some "
            "compute faster (cluster.speeds; torchft's sync_every of each group). period is their "
            "mean, a whole number. Default: all alike.")
           .describe("by block of ranks: %"),
       knob("adaptive", &L::adaptive, yes_or_no(),
            "Whether the period follows the loss and the learning rate (see training). Default "
            "false.")
           .with(kDecides)
           .enable({{false, {"period", "periods"}}, {true, {"init_period", "max_period"}}})
           .describe(""),
       knob("init_period", &L::init_period, whole<std::int64_t>(1, kMaxPeriod),
            "Period that adaptive LocalSGD begins with.")
           .with(kWritten)
           .describe("at first every %"),
       knob("max_period", &L::max_period, whole<std::int64_t>(1, kMaxPeriod),
            "Longest period that adaptive LocalSGD may choose. Default 16.")
           .with(kWritten)
           .describe("at most every %")}};
  return table;
}

const KnobTable<ComputeFusion>& compute_fusion_knobs() {
  using F = ComputeFusion;
  static const KnobTable<F> table{
      "compute_fusion",
      [](const Setting&, F& fusion) {
        fusion.fuse_bn_add_act_ops = true;  // as in Paddle one is on unless it is turned off
      },
      {knob("fuse_relu_depthwise_conv", &F::fuse_relu_depthwise_conv, yes_or_no(),
            "A relu goes into the depthwise convolution after it, forward and backward. Default "
            "false.")
           .describe("relu_depthwise_conv"),
       knob("fuse_bn_act_ops", &F::fuse_bn_act_ops, yes_or_no(),
            "batch_norm and relu. Matches in fp16 with NHWC only. Default false.")
           .describe("bn_act"),
       knob("fuse_bn_add_act_ops", &F::fuse_bn_add_act_ops, yes_or_no(),
            "batch_norm, elementwise_add and relu. Matches in fp16 with NHWC only. Default true, "
            "as in Paddle.")
           .describe("bn_add_act")
           .patch_schema({{"default", true}})
           .with(kWritten),
       knob("fuse_gemm_epilogue", &F::fuse_gemm_epilogue, yes_or_no(),
            "A product with a weight, its bias and, where the weight's columns are a multiple of "
            "128 (relu) or 8 (gelu), the activation; backward likewise. Paddle needs CUDA 11.6. "
            "Default false.")
           .describe("gemm_epilogue"),
       knob("fuse_elewise_add_act_ops", &F::fuse_elewise_add_act_ops, yes_or_no(),
            "elementwise_add and relu, scale or tanh; backward with relu only. Default false.")
           .describe("elewise_add_act"),
       knob("fuse_all_optimizer_ops", &F::fuse_all_optimizer_ops, yes_or_no(),
            "All update operators become one, if their gradients are dense and of one dtype. It "
            "waits for every gradient, so update must be after_all. Default false.")
           .describe("all_optimizer")}};
  return table;
}

namespace {

// Returns the knobs of transport: streams, collectives, buckets, and how often they are sent.
std::vector<Knob<Strategy>> transport_knobs() {
  using S = Strategy;
  return {
      knob("overlap", &S::overlap, yes_or_no(),
           "Whether communication overlaps the backward pass. Default true. false puts "
           "everything on the compute stream, one after the other.")
          .with(kExact)
          .enable({{true,
                    {"streams", "cross_step", "priority", "local_sgd.delay"},
                    "without overlap everything is on one stream"}}),
      knob("streams", &S::streams, streams(),
           "Communication streams, each with a communicator of its own, so that so many "
           "collectives can run at once. Default 1. Raise it when a single stream cannot fill the "
           "link.")
          .with(kExact)
          .name_axis(stream_words),
      knob("algorithm", &S::algorithm, algorithm(),
           "How collectives move their data: ring (least traffic); to_one (everyone to one rank "
           "and back); double_binary_tree (low latency on many ranks); halving_doubling (few "
           "rounds over pairs of ranks); nccl (as NCCL would choose for each payload); all_to_all "
           "(parts directly to the ranks that sum them, for low precision). Default: nccl where "
           "that is the cluster's library, else ring.")
          .with(kWritten | kExact)
          .name_axis([](const S& s) { return s.algorithm; }),
      part("fusion", fusion_knobs()).with(kWritten | kExact),
      part("hierarchy", hierarchy_knobs())
          .rest_if([](const S& s) { return s.hierarchy.form == Hierarchy::Form::kFlat; })
          .with(kExact)
          .name_axis(hierarchy_words),
      knob("compression", &S::compression, object_of(compression_knobs()), "")
          .rest_if([](const S& s) { return s.compression.codec.empty(); })
          .with(kExact | kChangesTraining)
          .name_axis(compression_words),
      knob("local_sgd", &S::local_sgd, object_of(local_sgd_knobs()), "")
          .rest_if([](const S& s) { return !s.local_sgd.enabled; })
          .with(kExact | kChangesTraining)
          .name_axis(averaging_words)};
}

// Returns the knobs of the collectives that exchange gradients and parameters.
std::vector<Knob<Strategy>> exchange_knobs() {
  using S = Strategy;
  return {
      knob("exchange", &S::exchange, exchanges(),
           "all_reduce: in one go. decoupled: a reduce-scatter in the backward pass and an "
           "all-gather after it, first layers first. sharded: gradients are reduce-scattered, each "
           "rank updates its shard of the parameters, which are all-gathered. sharded_update: "
           "likewise, "
           "but gradients are all-reduced. Default all_reduce.")
          .with(kDecides)
          .enable({{"sharded", {"gather_groups", "gather_format", "regather", "kept_in_step"}},
                   {"sharded_update", {"gather_groups", "gather_format"}}})
          .name_axis(exchange_words),
      knob("gather_groups", &S::gather_groups, groups(false),
           "With exchange sharded: the buckets in which updated parameters are gathered, as "
           "fusion.groups. Default: as the gradients were scattered."),
      knob(
          "regather", &S::regather, yes_or_no(),
          "With exchange sharded: whether parameters are gathered again for the backward pass, "
          "each bucket's while the backward pass of the one before runs. Without gather_groups all "
          "but the bucket that is ready last are (FSDP, whose root keeps its). Default false.")
          .with(kDecides)
          .enable({{true, {"regather_group", "kept_groups", "fetches"}}})};
}

// Returns the knobs of a framework that gathers sharded parameters.
std::vector<Knob<FrameworkTraits>> gather_knobs() {
  return {
      knob("regather_group", &FrameworkTraits::regather_group, ranks_in_a_group(0),
           "With regather: parameters are gathered again among so many neighbours, which keep a "
           "second copy of them in shards (FSDP2's reshard_after_forward as a number, DeepSpeed's "
           "zero_hpz_partition_size). 0: among those that keep the first. Default 0."),
      knob("kept_groups", &FrameworkTraits::kept_groups, whole<int>(0, 1 << 20),
           "With regather: how many of gather_groups, from the first on, are not gathered again "
           "(ZeRO-3's persistent parameters). Default 0."),
      knob(
          "kept_in_step", &FrameworkTraits::kept_in_step, yes_or_no(),
          "With shards of parameters and without each_micro_batch: whether parameters stay whole "
          "from a step's first micro-batch to its last, instead of being gathered in each (FSDP1's "
          "SHARD_GRAD_OP under no_sync). Default false."),
      knob("gather_format", &FrameworkTraits::gather_bytes,
           words<int>({{"own", 0}, {"fp8", 1}, {"bf16", 2}, {"fp32", 4}}),
           "Format that parameters are gathered in (FSDP's param_dtype, Megatron's "
           "fp8-param-gather). fp8: of the matrices of layers; the others travel in bf16. Default "
           "own, that of the gradients."),
      knob("fetches", &FrameworkTraits::fetches, object_of(fetch_knobs()), "")
          .rest_if([](const FrameworkTraits& traits) { return !traits.fetches.any(); })};
}

// Returns the knobs for the readiness and exchange of gradients.
std::vector<Knob<Strategy>> order_knobs() {
  using S = Strategy;
  return {
      knob("pieces", &S::graph_segments, rising_ends(),
           "Index of the last gradient of each piece that the backward pass runs in, whose "
           "gradients are all there at its end (graphs of torch.compile); what comes after the "
           "last of them is a piece too. Default: each gradient is there once it is computed.")
          .patch_schema({{"minItems", nullptr}, {"default", Json::array()}}),
      knob("each_micro_batch", &S::each_micro_batch, yes_or_no(),
           "Whether gradients are summed in every micro-batch of the workload instead of in the "
           "last alone (DDP without no_sync, DeepSpeed's ZeRO-2). Default false."),
      knob("after_passes", &S::after_passes, yes_or_no(),
           "Whether gradients are communicated once all passes are over (in a pipeline: of their "
           "stage), in the order of fusion.groups (Megatron without overlap-grad-reduce, FSDP2 in "
           "torch's stages), instead of once they are computed. Default false.")};
}

std::vector<Knob<FrameworkTraits>> flight_knobs() {
  return {
      knob("in_flight", &FrameworkTraits::in_flight, whole<int>(0, 1 << 20),
           "The backward pass goes on past a bucket only when all but so many collectives are done "
           "(DeepSpeed: 1). 0: it waits for none. Default 0.")};
}

// Returns the knobs for the order of exchanges.
std::vector<Knob<Strategy>> urgency_knobs() {
  using S = Strategy;
  return {
      knob("cross_step", &S::cross_step, yes_or_no(),
           "Whether the next step's forward pass waits layer by layer for its parameters, instead "
           "of for all of them. Each layer's update then comes before its forward pass. Default "
           "false.")
          .with(kDecides)
          .enable({{true, {"fetches"}}})
          .name_axis([](const S& s) {
            return std::string(s.cross_step ? "across steps" : "step by step");
          }),
      knob("priority", &S::priority, priorities(),
           "Which bucket goes when the network is free. ready: the one that was ready first. "
           "layer: the one that the next forward pass needs first. Default ready.")
          .with(kDecides)
          .enable({{"layer", {"credit_mb"}}})
          .name_axis([](const S& s) {
            return std::string(s.priority == S::Priority::kLayer ? "first layers first"
                                                                 : "in the order of readiness");
          }),
      knob("credit_mb", &S::credit, mebibytes(true),
           "With priority layer: MiB handed to the network at a time, which later buckets can no "
           "longer overtake. 0: one bucket. Default 0."),
      knob("partition_mb", &S::partition, mebibytes(true),
           "Gradients larger than this many MiB travel in parts of even size, each that has a "
           "bucket to itself and that no codec makes two factors of. 0: whole. Default 0.")
          .with(kExact)};
}

// Copies around the exchanges.
std::vector<Knob<Strategy>> copy_knobs() {
  using S = Strategy;
  return {
      knob("bucket_copies", &S::bucket_copies, yes_or_no(),
           "Whether gradients are copied into their bucket and back, a read and a write of each "
           "byte each way at device.memory_gbytes_per_s (DDP without gradient_as_bucket_view). "
           "Default false.")
          .name_axis([](const S& s) {
            return std::string(s.bucket_copies ? "copied into buckets" : "gradients as views");
          })};
}

std::vector<Knob<FrameworkTraits>> buffer_knobs() {
  return {
      knob("broadcast_buffers", &FrameworkTraits::broadcast_buffers, yes_or_no(),
           "Whether the buffers of rank 0, such as the statistics of batch norm, are sent to all "
           "ranks before each step, for the workload's buffer_broadcast_ms. LocalSGD averages them "
           "instead, unless it warms up with gradients, as DDP's hook does. Default true.")};
}

Spelling<Strategy::Offload> offloads() {
  using Offload = Strategy::Offload;
  return words<Offload>({{"none", Offload::kNone},
                         {"optimizer", Offload::kOptimizer},
                         {"parameters", Offload::kParameters},
                         {"all", Offload::kAll}});
}

// Returns the knobs for waits of the host and of the update.
std::vector<Knob<Strategy>> update_knobs() {
  using S = Strategy;
  return {
      knob("host_sync", &S::host_sync, yes_or_no(),
           "Whether the host waits for each collective before it issues the next on that stream, "
           "for device.host_sync_us (Paddle's sync_nccl_allreduce). Default false."),
      knob("update", &S::update,
           words<S::Update>(
               {{"after_all", S::Update::kAfterAll}, {"per_bucket", S::Update::kPerBucket}}),
           "When parameters are updated. after_all: once every gradient has arrived. per_bucket: "
           "each bucket's as soon as its gradients have arrived. Default after_all, with "
           "cross_step per_bucket.")
          .rest_if([](const S& s) { return s.update == usual_update(s); })
          .enable({{Json(), {"cross_step"}},
                   {"per_bucket",
                    {"cross_step"},
                    "each layer's parameters are updated before its forward pass"},
                   {"after_all",
                    {"compute_fusion.fuse_all_optimizer_ops"},
                    "the one operator waits for every gradient"}}),
      knob("offload", &S::offload, offloads(),
           "Contents of the host's memory. optimizer: its states, which the host's processors "
           "update in device.host_update_ns, with gradients and parameters over "
           "device.host_link_gbytes_per_s (DeepSpeed's offload_optimizer). parameters: shards, "
           "which come up for each gather (offload_param). all: both (FSDP's CPU offload). Default "
           "none.")
          .name_axis([](const S& s) {
            return std::string(s.offload == S::Offload::kNone ? "all on the device"
                                                              : "offload to the host");
          }),
      knob("compute_fusion", &S::compute_fusion, object_of(compute_fusion_knobs()), "")
          .with(kExact)
          .name_axis(compute_fusion_words)};
}

std::vector<Knob<Strategy>> all_knobs() {
  std::vector<Knob<Strategy>> all;
  const auto add = [&](std::vector<Knob<Strategy>> knobs) {
    all = join_knobs(std::move(all), knobs);
  };
  const auto add_traits = [&](std::vector<Knob<FrameworkTraits>> knobs) {
    add(of_member(&Strategy::traits, std::move(knobs)));
  };
  add(transport_knobs());
  add(exchange_knobs());
  add_traits(gather_knobs());
  add(order_knobs());
  add_traits(flight_knobs());
  add(urgency_knobs());
  add(copy_knobs());
  add_traits(buffer_knobs());
  add(update_knobs());
  return all;
}

}  // namespace

const KnobTable<Strategy>& strategy_knobs() {
  static const KnobTable<Strategy> table{"strategy", [](const Setting&, Strategy&) {}, all_knobs()};
  return table;
}

Strategy::Update usual_update(const Strategy& strategy) {
  const bool each = strategy.cross_step && !shards_update(strategy);
  return each ? Strategy::Update::kPerBucket : Strategy::Update::kAfterAll;
}

bool in_order_of_readiness(const Strategy& strategy) {
  return std::all_of(strategy_knobs().knobs.begin(), strategy_knobs().knobs.end(),
                     [&](const auto& knob) { return knob.is(kExact) || knob.at_rest(strategy); });
}

bool changes_training(const Strategy& strategy) {
  return std::any_of(
      strategy_knobs().knobs.begin(), strategy_knobs().knobs.end(),
      [&](const auto& knob) { return knob.is(kChangesTraining) && !knob.at_rest(strategy); });
}

std::string configuration_words(const Strategy& strategy, const Strategy& base) {
  std::string words;
  for (const auto& knob : strategy_knobs().knobs) {
    const auto value = [&](const Strategy& of) {
      return knob.at_rest(of) ? Json() : knob.write(of);
    };
    if (!knob.axis || value(strategy) == value(base)) continue;
    words += (words.empty() ? "" : ", ") + knob.axis(strategy);
  }
  return words;
}

}  // namespace syncline::input
