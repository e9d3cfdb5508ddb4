#include "formats/dialect/dialects.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "core/plan/fusion.h"
#include "formats/dialect/changes.h"
#include "formats/dialect/ddp_buckets.h"
#include "formats/dialect/framework_keys.h"
#include "formats/dialect/schemes.h"
#include "formats/json/reader.h"

namespace syncline::dialect {
namespace {

constexpr std::int64_t kDefaultBucket = 500'000'000;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 50;

// Older keys, and the Trainer's, without effect on the exchange. DeepSpeed's own list lacks them.
constexpr std::initializer_list<const char*> kOlder{"comms_config", "monitor_config",
                                                    "load_universal_checkpoint",
                                                    "use_node_local_storage", "seed"};

// Sections that, if turned on, change the computation or the traffic of a step.
constexpr std::initializer_list<std::pair<const char*, const char*>> kSections{
    {"elasticity", "a batch that changes with the number of ranks"},
    {"progressive_layer_drop", "training without some of the layers"},
    {"hybrid_engine", "generation between steps"},
    {"quantize_training", "training with quantized weights"},
    {"compile", "DeepCompile"},
    {"domino", "Domino's overlap of tensor parallelism"},
    {"eigenvalue", "eigenvalues of the loss between steps"}};

void refuse_sections(Reader& config) {
  for (const auto& [key, what] : kSections) {
    const Json* section = config.find(key);
    if (section == nullptr || !section->is_object()) continue;
    if (section->value("enabled", Json()) != true && section->value("deepcompile", Json()) != true)
      continue;
    config.fail(key, std::string(what) + " is not modelled yet");
  }
}

// Refuses optimizers that compress gradients to one bit.
void refuse_compressed(Reader& config) {
  const Json* optimizer = config.find("optimizer");
  if (optimizer == nullptr || !optimizer->is_object()) return;
  const Json type = optimizer->value("type", Json());
  if (type != "OneBitAdam" && type != "OneBitLamb" && type != "ZeroOneAdam") return;
  config.fail("optimizer",
              type.get<std::string>() +
                  " communicates one bit a gradient, which is not modelled yet: expected "
                  "Adam or another whose gradients are summed");
}

// Returns true if the value is "auto": the Trainer fills it in, by default with 1.
bool is_auto(Reader& config, const char* key) {
  const Json* value = config.find(key);
  return value != nullptr && value->is_string() && *value == "auto";
}

// Returns a flag; "auto" counts as not given.
bool boolean_or_auto(Reader& config, const char* key, bool fallback) {
  const Json* value = config.find(key);
  if (value == nullptr || value->is_null() || is_auto(config, key)) return fallback;
  return config.boolean_or(key, fallback);
}

// Returns a number of elements, which people write as 5e8.
std::int64_t elements_or(Reader& config, const char* key, std::int64_t fallback,
                         std::int64_t least = 1) {
  if (!config.has(key)) return fallback;
  if (is_auto(config, key)) {
    // Keys that accelerate fills in (Accelerator._prepare_deepspeed); others count as not given.
    constexpr std::pair<std::string_view, const char*> kFilled[]{
        {"reduce_bucket_size", "the square of the model's hidden_size"},
        {"stage3_prefetch_bucket_size", "0.9 times the square of the model's hidden_size"},
        {"stage3_param_persistence_threshold", "10 times the model's hidden_size"}};
    for (const auto& [name, with] : kFilled) {
      if (name != key) continue;
      config.fail(key, "is 'auto', which the Trainer fills in with " + std::string(with) +
                           ": write the number");
    }
    return fallback;
  }
  const double number =
      config.number(key, {static_cast<double>(least), static_cast<double>(kMaxElements)});
  if (number != std::floor(number)) config.fail(key, "expected a whole number of elements");
  return static_cast<std::int64_t>(number);
}

// Passes over "_comment" and the like.
void pass_over_comments(Reader& config) {
  for (const auto& item : config.json().items()) {
    const std::string& key = item.key();
    if (key.starts_with("_") || key.starts_with("//") || key == "comment") config.find(key);
  }
}

// Reads the batch's three sizes: any two give the third.
void read_batches(Reader& config, const Workload& workload, const Cluster& cluster) {
  const auto given = [&](const char* key) -> std::int64_t {
    if (!config.has(key) || is_auto(config, key)) return 0;
    return config.integer(key, 1, std::int64_t{1} << 40);
  };
  const std::int64_t all = given("train_batch_size");
  const std::int64_t micro = given("train_micro_batch_size_per_gpu");
  const std::int64_t steps = given("gradient_accumulation_steps");
  const std::int64_t replicas = std::max(1, cluster.ranks() / workload.parallel.context);
  const std::int64_t together = micro * replicas;
  if (all > 0 && micro > 0 && (steps > 0 ? all != together * steps : all % together != 0)) {
    config.fail("train_batch_size",
                "is not equal to micro_batch_per_gpu * gradient_acc_step * world_size: " +
                    std::to_string(all) + " != " + std::to_string(micro) + " * " +
                    (steps > 0 ? std::to_string(steps) : "?") + " * " + std::to_string(replicas));
  }
  if (steps > 0) return check_micro_batches(config, "gradient_accumulation_steps", steps, workload);
  if (all > 0 && micro > 0)
    check_micro_batches(config, "train_batch_size", all / together, workload);
}

// Checks that a layout in the configuration equals the workload's.
void read_layout(Reader& config, const Workload& workload) {
  const Parallel& parallel = workload.parallel;
  const auto same = [](Reader& reader, const char* key, int own, const char* name) {
    if (!reader.has(key) || is_auto(reader, key)) return;
    const std::int64_t given = reader.integer_or(key, own, 0, 1 << 20);
    if (given == own || (given == 0 && own == 1)) return;
    reader.fail(key, "is " + std::to_string(given) + ", but the workload has \"parallel\": {\"" +
                         name + "\": " + std::to_string(own) + "}; write it there");
  };
  const Json* cut = config.find("tensor_parallel");
  if (cut != nullptr && cut->is_object()) {
    Reader tensor = config.object("tensor_parallel");
    same(tensor, "autotp_size", parallel.tensor, "tensor");
  }
  same(config, "sequence_parallel_size", parallel.context, "context");
  if (parallel.pipeline > 1) {
    config.find("pipeline");
  } else {
    refuse_unmodelled(config,
                      {{"pipeline",
                        "a pipeline whose stages only its script says (parallel.pipeline, or "
                        "--pp N of init, says them)"}});
  }
}

void read_format(Reader& config, const Workload& workload, Strategy& strategy) {
  skip_keys(config, {"fp16", "bf16", "bfloat16"});
  if (!config.has("communication_data_type")) return;
  const Json* value = config.find("communication_data_type");
  if (value->is_null() || is_auto(config, "communication_data_type")) return;
  const std::string word =
      config.word_or("communication_data_type", "", {"fp16", "fp32", "bf16", "bfp16"});
  if (word == "fp32") {
    if (any_narrow(workload)) strategy.fusion.sum_format = DType::kFp32;
    return;
  }
  strategy.compression.codec = word == "fp16" ? "fp16" : "bf16";
}

struct Zero {
  std::int64_t stage = 0;
  // Figures of stage 3, in elements.
  std::int64_t prefetch = 50'000'000;
  std::int64_t persistent = 100'000;  // a parameter's, at most
  std::int64_t all_persistent = kMaxElements;
  std::int64_t reuse = 1'000'000'000;
  std::int64_t live = 1'000'000'000;  // above which nothing is gathered ahead
  std::int64_t bucket = kDefaultBucket;
  bool bucket_given = false;
  bool gather_given = false;
  bool overlap = false;
  bool contiguous = true;
  bool scatter = true;
  std::int64_t secondary = 1;  // ranks of hpZ's second partition; 1: none
  std::int64_t shards = 0;     // ranks of a MiCS group; 0: no such groups
  bool many_ranks = true;      // a bucket of several ranks' gradients is all-reduced as one
  Strategy::Offload offload = Strategy::Offload::kNone;
};

// Reads a number of ranks that divides the cluster evenly. Null is the default.
std::int64_t read_group(Reader& reader, const char* key, std::int64_t off, const Cluster& cluster) {
  const Json* value = reader.find(key);
  if (value == nullptr || value->is_null()) return off;
  const std::int64_t size = reader.integer(key, -1, 1 << 20);
  if (size > 1 && cluster.ranks() % size != 0) {
    reader.fail(key, std::to_string(size) + " does not divide the " +
                         std::to_string(cluster.ranks()) + " ranks into groups of one size");
  }
  return size;
}

// Reads the groups of hpZ and MiCS. Stage 3 alone uses either.
void read_groups(Reader& reader, Zero& zero, const Cluster& cluster) {
  const std::int64_t secondary = read_group(reader, "zero_hpz_partition_size", 1, cluster);
  const std::int64_t shards = read_group(reader, "mics_shard_size", -1, cluster);
  if (zero.stage < 3) return;
  if (shards == 1 && cluster.ranks() > 1) {
    reader.fail("mics_shard_size", "a group of one rank is not modelled yet: it shards nothing");
  }
  if (shards > 0 && secondary > 1) {
    reader.fail("mics_shard_size", "together with zero_hpz_partition_size is not modelled yet");
  }
  zero.secondary = secondary;
  zero.shards = std::max<std::int64_t>(0, shards);
}

// Returns true if states or parameters go to the host's memory, by today's key or those of 2021.
bool goes_to_host(Reader& reader, const char* key, std::initializer_list<const char*> older) {
  bool goes = false;
  for (const char* old : older) goes |= boolean_or_auto(reader, old, false);
  const Json* value = reader.find(key);
  if (value == nullptr || value->is_null()) return goes;
  Reader section = reader.object(key);
  const std::string device = section.word_or("device", "none", {"none", "cpu", "nvme", "auto"});
  if (device == "nvme") {
    section.fail("device",
                 "nvme is not modelled yet: with \"cpu\" the rest is predicted, without the disk's "
                 "time");
  }
  return goes || device == "cpu";
}

// Reads what the host's memory holds.
void read_offload(Reader& reader, Zero& zero, std::vector<std::string>& notes) {
  const bool states = goes_to_host(reader, "offload_optimizer", {"cpu_offload"});
  const bool parameters =
      goes_to_host(reader, "offload_param", {"cpu_offload_param", "cpu_offload_params"});
  const Json* section = reader.find("offload_optimizer");
  const Json ratio =
      section != nullptr && section->is_object() ? section->value("ratio", Json(1)) : Json(1);
  note(notes,
       {{states && zero.stage == 0, "offload_optimizer has no effect at stage 0"},
        {states && ratio.is_number() && ratio < 1,
         "all states are on the host, whatever offload_optimizer.ratio leaves on the device"},
        {parameters && zero.stage < 3, "offload_param has no effect below stage 3"}});
  using Offload = Strategy::Offload;
  const bool shards = parameters && zero.stage == 3;
  if (states && zero.stage > 0) {
    zero.offload = shards ? Offload::kAll : Offload::kOptimizer;
  } else if (shards) {
    zero.offload = Offload::kParameters;
  }
}

Zero read_zero(Reader& config, const Cluster& cluster, std::vector<std::string>& notes) {
  Zero zero;
  if (!config.has("zero_optimization")) return zero;
  Reader reader = config.object("zero_optimization");
  zero.stage = reader.integer_or("stage", 0, 0, 3);
  read_offload(reader, zero, notes);
  zero.bucket_given = reader.has("reduce_bucket_size");
  zero.bucket = elements_or(reader, "reduce_bucket_size", kDefaultBucket);
  zero.gather_given = reader.has("allgather_bucket_size");
  elements_or(reader, "allgather_bucket_size", kDefaultBucket);
  zero.overlap = zero.stage == 3;
  zero.overlap = boolean_or_auto(reader, "overlap_comm", zero.overlap);
  zero.contiguous = boolean_or_auto(reader, "contiguous_gradients", true);
  zero.scatter = boolean_or_auto(reader, "reduce_scatter", true);
  zero.many_ranks = boolean_or_auto(reader, "use_multi_rank_bucket_allreduce", true);
  if (!boolean_or_auto(reader, "allgather_partitions", true)) {
    reader.fail("allgather_partitions",
                "false (broadcasts in place of the all-gather) is not modelled yet");
  }
  refuse_unmodelled(reader,
                    {{"zero_quantized_weights", "gathering parameters quantized"},
                     {"zero_quantized_nontrainable_weights", "gathering them quantized"},
                     {"zero_quantized_gradients", "exchanging gradients quantized"},
                     {"mics_hierarchical_params_gather", "gathering by levels (MiCS)"},
                     {"zeropp_loco_param", "LoCo's quantized exchange"},
                     {"stage3_use_all_reduce_for_fetch_params", "gathering parameters by sums"},
                     {"stage3_module_granularity_threshold", "gathering parameters by modules"},
                     {"zenflow", "ZenFlow"}});
  read_groups(reader, zero, cluster);
  constexpr std::string_view kStage3 = "stage3_";
  constexpr std::pair<const char*, std::int64_t Zero::*> kOfStage3[]{
      {"stage3_prefetch_bucket_size", &Zero::prefetch},
      {"stage3_param_persistence_threshold", &Zero::persistent},
      {"stage3_model_persistence_threshold", &Zero::all_persistent},
      {"stage3_max_reuse_distance", &Zero::reuse},
      {"stage3_max_live_parameters", &Zero::live}};
  for (const auto& [key, size] : kOfStage3) {
    // DeepSpeed takes them without the stage too.
    for (const char* name : {key + kStage3.size(), key}) {
      zero.*size = elements_or(reader, name, zero.*size, 0);
    }
  }
  skip_keys(reader, {"grad_hooks"});  // of earlier versions
  pass_over_comments(reader);
  finish_keys(reader, key_list("deepspeed.zero_optimization"), notes);
  return zero;
}

// Fills buckets by the rule; gradients share buckets if all travel in one format.
void fill_buckets(ElementRule rule, const Workload& workload, Strategy& strategy) {
  rule.one_format = strategy.fusion.sums_in_fp32();
  strategy.fusion.groups = buckets_by_elements(workload.tensors, rule);
}

// Fills them after the backward pass, as parameters were registered.
void fill_as_registered(ElementRule rule, const Workload& workload, Strategy& strategy) {
  for (const int t : registered_order(workload.tensors)) rule.parameters.push_back({t});
  rule.as_closed = true;
  fill_buckets(std::move(rule), workload, strategy);
  strategy.traits.buckets.in_turn = true;
}

// Flattens gradients, all-reduces them and copies them back after the backward pass
// (DeepSpeedEngine.buffered_allreduce_fallback).
void apply_stage_0(const Zero& zero, const Workload& workload, Reading& reading) {
  Strategy& strategy = reading.strategy;
  fill_as_registered({.size = kDefaultBucket, .close = ElementRule::Close::kExceeding}, workload,
                     strategy);
  strategy.overlap = false;
  strategy.bucket_copies = true;
  note(reading.notes,
       {{true,
         "stage 0 reduces after the backward pass, in buckets of 500000000 elements: no overlap"},
        {zero.bucket_given, "reduce_bucket_size has no effect at stage 0"}});
}

// Place of a parameter in the flat buffer of its format. Parameters lie there as they were
// registered. Partitions of even size, padded at the end, divide the buffer among the ranks.
struct Place {
  std::int64_t begin = 0;
  std::int64_t partition = 1;

  // Returns the end of the last partition that ends inside the parameter's first `elements`,
  // counted from its begin; 0: none does.
  std::int64_t last_end(std::int64_t elements) const {
    return std::max<std::int64_t>(0, (begin + elements - 1) / partition * partition - begin);
  }
};

std::vector<Place> places_of(const Workload& workload, int ranks) {
  constexpr std::int64_t kRankAlign = 2;  // nccl_start_alignment_factor
  std::vector<Place> places(workload.tensors.size());
  std::map<DType, std::int64_t> ends;
  for (const int t : registered_order(workload.tensors)) {
    const Tensor& tensor = workload.tensors[static_cast<std::size_t>(t)];
    if (tensor.frozen) continue;
    places[static_cast<std::size_t>(t)].begin = ends[tensor.dtype];
    ends[tensor.dtype] += tensor.elements;
  }
  const std::int64_t unit = kRankAlign * ranks;
  for (std::size_t t = 0; t < places.size(); ++t) {
    places[t].partition = (ends[workload.tensors[t].dtype] + unit - 1) / unit * kRankAlign;
  }
  return places;
}

// Cuts gradients above reduce_bucket_size at ranks' partitions: a part ends with the partition with
// which it holds more than that size (DeepSpeedZeroOptimizer.allreduce_and_scatter).
std::vector<BucketTraits::Cuts> cuts_of(const Zero& zero, const Workload& workload, int ranks) {
  std::vector<BucketTraits::Cuts> all;
  const auto places = places_of(workload, ranks);
  for (std::size_t t = 0; t < places.size(); ++t) {
    const std::int64_t elements = workload.tensors[t].elements;
    if (workload.tensors[t].frozen) continue;
    const auto [begin, partition] = places[t];
    std::vector<std::int64_t> at;
    std::int64_t part = 0;
    for (std::int64_t end = partition - begin % partition; end < elements; end += partition) {
      if (end - part > zero.bucket) at.push_back(part = end);
    }
    if (!at.empty()) all.push_back({static_cast<int>(t), std::move(at)});
  }
  return all;
}

void apply_partition(const Zero& zero, const Workload& workload, int ranks, Reading& reading) {
  Strategy& strategy = reading.strategy;
  const ElementRule rule{.size = zero.bucket, .close = ElementRule::Close::kBefore};
  // ZeroOptimizer.reduce_gradients goes through the parameters once the backward pass is over.
  const bool behind = zero.stage == 1 && !zero.overlap;
  (behind ? fill_as_registered : fill_buckets)(rule, workload, strategy);
  strategy.traits.buckets.with_next = zero.overlap;
  strategy.overlap = zero.overlap;
  strategy.traits.in_flight = zero.overlap ? 1 : 0;
  strategy.each_micro_batch = zero.stage == 2;
  strategy.bucket_copies = zero.contiguous;
  const bool whole = zero.many_ranks || !zero.scatter;
  strategy.exchange = whole ? Strategy::Exchange::kShardedUpdate : Strategy::Exchange::kSharded;
  if (zero.stage == 2) strategy.traits.sharded = FrameworkTraits::Sharded::kGradients;
  strategy.gather_groups = buckets_by_elements(workload.tensors, {});  // one a format
  const bool by_slices = zero.many_ranks && zero.scatter;
  note(reading.notes,
       {{!zero.overlap,
         "overlap_comm is off at stages 1 and 2 unless it is given: buckets are reduced on the "
         "stream that computes"},
        {behind,
         "stage 1 without overlap_comm fills buckets after the backward pass, as parameters were "
         "registered"},
        {zero.overlap,
         "overlap_comm: at most one bucket is under way, the backward pass waits for it when the "
         "next one is full"},
        {by_slices,
         "use_multi_rank_bucket_allreduce: buckets are all-reduced, not reduce-scattered, "
         "whatever reduce_scatter says"}});
  // Without contiguous_gradients a large one goes whole.
  if (by_slices && zero.contiguous && ranks > 1)
    strategy.traits.buckets.cuts = cuts_of(zero, workload, ranks);
  if (!strategy.traits.buckets.cuts.empty()) {
    const BucketTraits::Cuts& first = strategy.traits.buckets.cuts.front();
    reading.notes.push_back(workload.tensors[static_cast<std::size_t>(first.tensor)].name +
                            " is larger than reduce_bucket_size: it is all-reduced in " +
                            std::to_string(first.at.size() + 1) +
                            " parts, cut where partitions of ranks end");
  }
  note(reading.notes,
       {{!whole, "reductions to each owner are predicted as one reduce-scatter per bucket"},
        {zero.gather_given,
         "allgather_bucket_size has no effect where torch has all_gather_into_tensor: all "
         "parameters are gathered at once"},
        {zero.stage == 2 && workload.micro_batches > 1,
         "stage 2 reduces in every micro-batch: stage 1 reduces in the last alone"}});
}

// Keeps parameters of at most `zero.persistent` elements in place: each is gathered by itself after
// the update. Passes fetch the others (DeepSpeedZeRoOffload.mark_persistent_parameters).
void keep_persistent(const Zero& zero, const Workload& workload, Strategy& strategy) {
  std::int64_t held = 0;
  for (const int t : registered_order(workload.tensors)) {
    const Tensor& tensor = workload.tensors[static_cast<std::size_t>(t)];
    if (tensor.sparse || tensor.elements > zero.persistent) continue;
    if (held + tensor.elements > zero.all_persistent) continue;
    held += tensor.elements;
    strategy.gather_groups.push_back({t});
  }
  strategy.traits.kept_groups = static_cast<int>(strategy.gather_groups.size());
  strategy.regather = true;
  // Without room nothing is fetched ahead.
  const std::int64_t ahead = zero.live == 0 ? 0 : zero.prefetch;
  strategy.traits.fetches = {std::max<std::int64_t>(1, zero.live), ahead, zero.reuse};
}

// Applies MiCS: gradients are summed inside a group in each micro-batch, across groups in the last
// one. Applies hpZ: parameters are gathered again inside the second partition.
void apply_groups(const Zero& zero, int ranks, Reading& reading) {
  Strategy& strategy = reading.strategy;
  if (zero.shards > 0 && zero.shards < ranks) {
    strategy.hierarchy.form = Hierarchy::Form::kSharded;
    strategy.hierarchy.group_size = static_cast<int>(zero.shards);
    strategy.traits.across_last = strategy.each_micro_batch;
    reading.notes.push_back("MiCS: shards lie in groups of " + std::to_string(zero.shards) +
                            " ranks; there are " + std::to_string(ranks / zero.shards) +
                            " replicas, summed across in the last micro-batch");
  }
  if (zero.secondary <= 1) return;
  strategy.traits.regather_group = static_cast<int>(zero.secondary);
  reading.notes.push_back("hpZ: parameters are gathered again among " +
                          std::to_string(zero.secondary) +
                          " ranks, which keep a second copy in shards until the next step");
}

void apply_stage_3(const Zero& zero, const Workload& workload, int ranks, Reading& reading) {
  Strategy& strategy = reading.strategy;
  fill_buckets({.size = zero.bucket, .close = ElementRule::Close::kBefore}, workload, strategy);
  strategy.traits.buckets.with_next = true;
  strategy.overlap = zero.overlap;
  // DeepSpeedZeroOptimizer_Stage3.max_param_reduce_events is 2, and one more is under way before
  // the first of them is waited for.
  constexpr int kReduceEvents = 3;
  strategy.traits.in_flight = zero.overlap ? kReduceEvents : 0;
  strategy.each_micro_batch = workload.micro_batches > 1;
  strategy.bucket_copies = zero.contiguous;
  strategy.exchange = Strategy::Exchange::kSharded;
  strategy.traits.sharded = FrameworkTraits::Sharded::kParameters;
  strategy.cross_step = true;
  keep_persistent(zero, workload, strategy);
  apply_groups(zero, ranks, reading);
  note(reading.notes,
       {{true,
         "parameters are gathered as passes enter modules, and each module asks early for "
         "stage3_prefetch_bucket_size elements of the next ones; modules are known by the names of "
         "their parameters, those without parameters are not"},
        {!strategy.gather_groups.empty(),
         std::to_string(strategy.gather_groups.size()) +
             " parameters of at most stage3_param_persistence_threshold elements stay in place, "
             "gathered one by one after the update"},
        {strategy.traits.fetches.ahead == 0,
         "nothing is gathered early: each module waits for its own parameters"},
        {zero.gather_given, "allgather_bucket_size has no effect at stage 3"}});
}

Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool) {
  Reading reading;
  Strategy& strategy = reading.strategy;
  read_batches(config, workload, cluster);
  read_format(config, workload, strategy);
  read_layout(config, workload);
  const Zero zero = read_zero(config, cluster, reading.notes);
  if (zero.stage > 1 && workload.parallel.pipeline > 1) {
    config.fail("zero_optimization",
                "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism");
  }
  const bool experts =
      workload.parallel.whole_job() && std::ranges::any_of(workload.tensors, &Tensor::expert);
  if (zero.stage == 3 && experts && workload.parallel.expert == 1) {
    config.fail("zero_optimization",
                "stage 3 with experts is not modelled yet: expected stage 2 or less");
  }
  if (zero.stage == 3 && workload.parallel.expert > 1) {
    config.fail("zero_optimization",
                "MoE not supported with Stage 3, says DeepSpeed, where ranks share experts "
                "(workload.parallel.expert): expected stage 2 or less");
  }
  refuse_sections(config);
  refuse_compressed(config);
  skip_keys(config, kOlder);
  pass_over_comments(config);
  finish_keys(config, key_list("deepspeed"), reading.notes);
  strategy.fusion.rule = Fusion::Rule::kGroups;
  strategy.fusion.size = zero.bucket * size_of(DType::kFp32);
  if (zero.bucket_given && zero.stage > 0) {
    suspect_elements("reduce_bucket_size", zero.bucket, workload, strategy);
  }
  strategy.offload = zero.offload;
  if (zero.stage == 0) {
    apply_stage_0(zero, workload, reading);
  } else if (zero.stage == 3) {
    apply_stage_3(zero, workload, cluster.ranks(), reading);
  } else {
    apply_partition(zero, workload, cluster.ranks(), reading);
  }
  return reading;
}

// Returns stage 3's sizes. Requires a strategy that fetches.
Json stage_3_of(const Strategy& strategy, const Workload& workload) {
  const Fetches& fetches = strategy.traits.fetches;
  Json zero{{"stage", 3},
            {"overlap_comm", strategy.overlap},
            {"stage3_prefetch_bucket_size", fetches.ahead},
            {"stage3_max_live_parameters", fetches.live},
            {"stage3_max_reuse_distance", fetches.reuse}};
  if (strategy.traits.regather_group > 1)
    zero["zero_hpz_partition_size"] = strategy.traits.regather_group;
  if (strategy.hierarchy.form == Hierarchy::Form::kSharded && strategy.hierarchy.group_size > 1) {
    zero["mics_shard_size"] = strategy.hierarchy.group_size;
  }
  std::int64_t largest = 0;
  std::int64_t held = 0;
  std::set<int> kept;
  for (const auto& group : strategy.gather_groups) {
    for (const int t : group) {
      const std::int64_t own = workload.tensors[static_cast<std::size_t>(t)].elements;
      largest = std::max(largest, own);
      held += own;
      kept.insert(t);
    }
  }
  zero["stage3_param_persistence_threshold"] = largest;
  // If some of them do not stay there was no room.
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const Tensor& tensor = workload.tensors[t];
    const bool small = !tensor.sparse && tensor.elements <= largest;
    if (small && !kept.contains(static_cast<int>(t))) {
      zero["stage3_model_persistence_threshold"] = held;
    }
  }
  return zero;
}

// Returns the smallest reduce_bucket_size that leaves the end of each gradient's parts unchanged:
// the most elements of a part up to its last partition's end.
std::int64_t least_of_parts(std::span<const plan::Bucket> buckets, const Workload& workload,
                            int ranks) {
  std::int64_t least = 1;
  const auto places = places_of(workload, ranks);
  for (const auto& bucket : buckets) {
    if (bucket.tensors.size() != 1 || bucket.sparse) continue;
    const auto t = static_cast<std::size_t>(bucket.tensors.front());
    if (t >= places.size()) continue;
    const std::int64_t end = places[t].last_end(bucket.first + bucket.elements);
    least = std::max(least, end - bucket.first);
  }
  return least;
}

// Returns the buckets that a step sums first: each gradient's, without those of parameters.
std::vector<plan::Bucket> of_gradients(const std::vector<plan::Bucket>& buckets,
                                       const Workload& workload) {
  std::vector<std::int64_t> left;  // by tensor: elements of no bucket so far
  for (const Tensor& tensor : workload.tensors) left.push_back(tensor.elements);
  std::vector<plan::Bucket> list;
  for (const plan::Bucket& bucket : buckets) {
    const auto first = static_cast<std::size_t>(bucket.tensors.front());
    if (first >= left.size() || left[first] <= 0) continue;
    for (const int t : bucket.tensors) left[static_cast<std::size_t>(t)] -= bucket.elements;
    list.push_back(bucket);
  }
  return list;
}

std::vector<Json> suggest(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                          const Workload& workload, const Cluster& cluster) {
  Json base = Json::object();
  const Parallel& parallel = workload.parallel;
  if (parallel.tensor > 1) base["tensor_parallel"] = {{"autotp_size", parallel.tensor}};
  if (parallel.context > 1) base["sequence_parallel_size"] = parallel.context;
  if (parallel.whole_job()) base["train_micro_batch_size_per_gpu"] = workload.batch;
  if (workload.micro_batches > 1) base["gradient_accumulation_steps"] = workload.micro_batches;
  const std::string& codec = strategy.compression.codec;
  if (codec == "fp16" || codec == "bf16") base["communication_data_type"] = codec;
  if (strategy.fusion.sums_in_fp32()) base["communication_data_type"] = "fp32";
  Json zero{{"stage", strategy.each_micro_batch ? 2 : 1}, {"overlap_comm", strategy.overlap}};
  if (strategy.exchange == Strategy::Exchange::kSharded) {
    zero["use_multi_rank_bucket_allreduce"] = false;
  }
  if (!strategy.bucket_copies) zero["contiguous_gradients"] = false;
  if (states_on_host(strategy)) zero["offload_optimizer"] = {{"device", "cpu"}};
  // The largest bucket of several sets the size.
  const std::vector<plan::Bucket> gradients = of_gradients(buckets, workload);
  std::int64_t most = 1;
  for (const auto& bucket : gradients) {
    if (bucket.tensors.size() > 1) most = std::max(most, bucket.elements);
  }
  const auto with = [&](const Json& own) {
    Json config = base;
    config["zero_optimization"] = own;
    return config;
  };
  std::vector<Json> configs;
  if (strategy.traits.fetches.any()) {
    Json third = stage_3_of(strategy, workload);
    third["reduce_bucket_size"] = most;
    if (zero.contains("offload_optimizer")) third["offload_optimizer"] = zero["offload_optimizer"];
    if (parameters_on_host(strategy)) third["offload_param"] = {{"device", "cpu"}};
    if (!strategy.bucket_copies) third["contiguous_gradients"] = false;
    configs.push_back(with(third));
  }
  zero["reduce_bucket_size"] = most;
  Json uncut = zero;
  if (strategy.exchange == Strategy::Exchange::kShardedUpdate) {
    uncut["reduce_scatter"] = false;
    zero["reduce_bucket_size"] =
        std::max(most, least_of_parts(gradients, workload, cluster.ranks()));
  }
  const Json plain{{"stage", 0}};
  const bool shards = shards_update(strategy);
  configs.push_back(with(shards ? zero : plain));
  configs.push_back(with(shards ? plain : zero));
  if (uncut != zero) configs.push_back(with(uncut));
  return configs;
}

Changes changes(const Json& config, const Cluster& cluster) {
  const Json given = config.value("zero_optimization", Json::object());
  const std::int64_t stage = given.value("stage", 0);
  // DeepSpeed 0.19 refuses MiCS: only a job that has it, of an older version, is offered it.
  const bool mics = given.contains("mics_shard_size");
  Changes changes;
  if (stage == 0) {
    changes.push_back({ChangeKind::kRounding, {{"communication_data_type", "fp16"}}});
    if (has_bf16(cluster)) {
      changes.push_back({ChangeKind::kRounding, {{"communication_data_type", "bf16"}}});
    }
  }
  const auto add = [&](ChangeKind kind, const Json& zero) {
    changes.push_back({kind, {{"zero_optimization", zero}}});
  };
  for (const bool on : {true, false}) {
    if (stage == 0) break;
    add(ChangeKind::kStreams, {{"overlap_comm", on}});
    add(ChangeKind::kCopies, {{"contiguous_gradients", on}});
    if (stage == 3) continue;
    add(ChangeKind::kAlgorithm, {{"reduce_scatter", on}});
    add(ChangeKind::kAlgorithm, {{"use_multi_rank_bucket_allreduce", on}});
  }
  for (const std::int64_t other : {0, 1, 2, 3}) {
    if (other == stage) continue;
    for (const bool overlap : {true, false}) {
      Json zero{{"stage", other}, {"overlap_comm", overlap}};
      for (const char* own : {"zero_hpz_partition_size", "mics_shard_size"}) zero[own] = nullptr;
      add(ChangeKind::kAlgorithm, zero);
      if (other == 0) break;
    }
  }
  for (const char* group : {"zero_hpz_partition_size", "mics_shard_size"}) {
    if (given.contains(group)) add(ChangeKind::kHierarchy, {{group, nullptr}});
  }
  for (const std::int64_t group : groups_below(cluster)) {
    for (const bool hpz : {true, false}) {
      if (!hpz && !mics) continue;
      changes.push_back({ChangeKind::kHierarchy,
                         {{"zero_optimization",
                           {{"stage", 3},
                            {"overlap_comm", true},
                            {"zero_hpz_partition_size", hpz ? Json(group) : Json()},
                            {"mics_shard_size", hpz ? Json() : Json(group)}}}}});
    }
  }
  for (const std::int64_t millions : {0, 10, 50, 200, 1000}) {
    if (stage < 3) break;
    add(ChangeKind::kFusion, {{"stage3_prefetch_bucket_size", millions * 1'000'000}});
  }
  for (const std::int64_t elements : {0, 10'000, 100'000, 1'000'000}) {
    if (stage < 3) break;
    add(ChangeKind::kFusion, {{"stage3_param_persistence_threshold", elements}});
  }
  for (const std::int64_t millions : {1, 5, 20, 50, 100, 200, 500, 1000}) {
    if (stage == 0) break;
    add(ChangeKind::kFusion,
        {{"overlap_comm", true}, {"reduce_bucket_size", millions * 1'000'000}});
  }
  return changes;
}

std::vector<Json> candidates(const Strategy&, const Workload& workload, const Cluster&,
                             const Partitions& partitions) {
  const bool wide = std::ranges::any_of(
      workload.tensors, [](const Tensor& tensor) { return size_of(tensor.dtype) >= 4; });
  return for_each_size(partitions, Fusion::Close::kBefore, [&](Bytes size, Bytes) {
    Json config;
    config["zero_optimization"] = {
        {"stage", 1},
        {"overlap_comm", true},
        {"reduce_bucket_size", std::max<std::int64_t>(1, size / (wide ? 4 : 2))}};
    return std::vector{config};
  });
}

// Returns the stages with the other keys of a configuration.
std::vector<Scheme> stages(const Json& config, const Workload&, const Cluster& cluster) {
  std::vector<Scheme> list;
  const auto add = [&](const std::string& name, int stage, const Json& second) {
    const Json zero{
        {"stage", stage}, {"zero_hpz_partition_size", second}, {"mics_shard_size", nullptr}};
    list.push_back({name, "deepspeed", patched_config(config, {{"zero_optimization", zero}})});
  };
  for (const int stage : {0, 1, 2, 3}) add("ZeRO stage " + std::to_string(stage), stage, nullptr);
  if (has_levels(cluster)) add("ZeRO stage 3, hpZ inside nodes", 3, cluster.gpus_per_node);
  return list;
}

void set_samples(std::int64_t batch, std::int64_t micro_batches, Json& config) {
  const auto set = [&](const char* key, std::int64_t value) {
    if (config.contains(key) && config[key].is_number()) config[key] = value;
  };
  set("train_micro_batch_size_per_gpu", batch);
  set("gradient_accumulation_steps", micro_batches);
}

}  // namespace

Dialect deepspeed_dialect() {
  return {.name = "deepspeed",
          .summary = "DeepSpeed: ZeRO 0 to 3, reduce_bucket_size, overlap_comm",
          .read = read,
          .suggest = suggest,
          .changes = changes,
          .defaults =
              {{"zero_optimization",
                {{"stage", 0}, {"overlap_comm", nullptr}, {"reduce_bucket_size", kDefaultBucket}}}},
          .candidates = candidates,
          .schemes = stages,
          .set_batches = set_samples,
          .kernels = "pytorch",
          .host_share = kHooksOfPartitions,
          .host_per_layer = kHooksOfLayer};
}

}  // namespace syncline::dialect
