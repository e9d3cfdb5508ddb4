#include "formats/dialect/dialects.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/plan/fusion.h"
#include "formats/dialect/changes.h"
#include "formats/dialect/ddp_buckets.h"
#include "formats/dialect/framework_keys.h"
#include "formats/dialect/pytorch_apply.h"
#include "formats/dialect/schemes.h"
#include "formats/dialect/write.h"
#include "formats/json/reader.h"

namespace syncline::dialect {
namespace {

// A cap in MiB that means one bucket.
constexpr double kMoreThanAnyModel = 1e6;

// Reads a limit for each bucket in turn, in MiB.
DdpLimits listed_limits(Reader& config, const TorchVersion& version) {
  if (config.has("bucket_cap_mb")) {
    config.fail("bucket_cap_mb_list", "stands next to bucket_cap_mb: give one of them");
  }
  if (version < kListedCaps) config.fail("bucket_cap_mb_list", "is known from torch 2.12 on");
  DdpLimits limits;
  const Json& caps = config.array("bucket_cap_mb_list");
  for (std::size_t i = 0; i < caps.size(); ++i) {
    const double cap =
        checked_number(caps[i], {0, 1e9, true}, config.file(),
                       config.place_of("bucket_cap_mb_list") + "[" + std::to_string(i) + "]");
    limits.push_back(static_cast<Bytes>(cap * static_cast<double>(kMiB)));
  }
  if (limits.empty()) config.fail("bucket_cap_mb_list", "empty, expected a list of limits in MiB");
  return limits;
}

DdpLimits limits_of(Reader& config, const TorchVersion& version, Bytes first) {
  if (config.has("bucket_cap_mb_list")) return listed_limits(config, version);
  std::optional<double> cap;
  // None means torch's default.
  const Json* given = config.find("bucket_cap_mb");
  if (given != nullptr && !given->is_null()) cap = config.number("bucket_cap_mb", {0, 1e9, true});
  return ddp_limits(cap, version, first);
}

// Reads PostLocalSGDState and PeriodicModelAverager. Gradients are all-reduced among all ranks up
// to start_localSGD_iter, then among those of a subgroup (a node). The averager takes the mean of
// the parameters, flattened into one tensor, every `period` steps.
LocalSgd read_post_local(Reader& config, const Cluster& cluster, std::vector<std::string>& notes) {
  LocalSgd local;
  local.enabled = true;
  local.warmup_gradients = true;
  Reader state = config.object("PostLocalSGDState");
  local.begin_step = state.integer("start_localSGD_iter", 0, std::int64_t{1} << 40);
  const int ranks = cluster.ranks();
  const auto size =
      static_cast<int>(state.integer_or("subgroup_size", cluster.gpus_per_node, 1, ranks));
  if (ranks % size != 0) {
    state.fail("subgroup_size", "ValueError: group_size must divide world_size evenly: found " +
                                    std::to_string(size) + " of " + std::to_string(ranks));
  }
  const bool inside = state.boolean_or("post_local_gradient_allreduce", true);
  state.finish();
  if (inside) local.subgroup = size;
  note(notes, {{inside && size == 1,
                "a subgroup of one rank: no gradients are summed between averagings"}});
  Reader averager = config.object("PeriodicModelAverager");
  local.period = averager.integer("period", 1, 1 << 20);
  const std::int64_t warm_up =
      averager.integer_or("warmup_steps", local.begin_step, 0, std::int64_t{1} << 40);
  averager.finish();
  note(notes,
       {{warm_up != local.begin_step, "PeriodicModelAverager.warmup_steps is " +
                                          std::to_string(warm_up) + " and start_localSGD_iter " +
                                          std::to_string(local.begin_step) +
                                          ": averaging is predicted from start_localSGD_iter on"},
        {local.period == 1,
         "When period is 1, no need to use model averaging: it costs no less than DDP's all-reduce "
         "of the gradients"}});
  return local;
}

// Returns torch._dynamo.config.optimize_ddp if the model is compiled, else nullopt.
std::optional<std::string> compiled_by(Reader& config) {
  const Json* compiled = config.find("torch_compile");
  if (compiled == nullptr || compiled->is_null()) return std::nullopt;
  constexpr const char* kSplits = "ddp_optimizer";
  if (compiled->is_boolean()) {
    if (!compiled->get<bool>()) return std::nullopt;
    return kSplits;
  }
  Reader own = config.object("torch_compile");
  const Json* mode = own.find("optimize_ddp");
  std::string word = kSplits;
  if (mode != nullptr && mode->is_boolean()) {
    word = mode->get<bool>() ? kSplits : "no_optimization";
  } else if (mode != nullptr) {
    word = own.word_or(
        "optimize_ddp", kSplits,
        {kSplits, "python_reducer", "python_reducer_without_compiled_forward", "no_optimization"});
  }
  own.finish();
  return word;
}

// Returns the pieces into which DDPOptimizer cuts the forward graph, from the last layer on. One
// ends with the layer that reaches its limit, the first one's or the cap. Each runs as one in the
// backward pass too.
std::vector<std::int64_t> pieces_of(const Workload& workload, Bytes first, Bytes cap) {
  std::vector<std::int64_t> ends;
  Bytes size = 0;
  const auto layer = [&](std::size_t t) {
    return plan::layer_of(workload.tensors[t].name, Fusion::LayerKey::kLastDot);
  };
  const std::size_t count = workload.tensors.size();
  for (std::size_t t = 0; t < count; ++t) {
    size += workload.tensors[t].frozen ? 0 : workload.tensors[t].bytes();
    const bool last = t + 1 == count;
    const bool full = size >= (ends.empty() ? first : cap) && !last && layer(t) != layer(t + 1);
    if (!full && !last) continue;
    ends.push_back(static_cast<std::int64_t>(t));
    size = 0;
  }
  return ends;
}

// Sets a compiled model's order of gradients, and its buckets. Source:
// torch/_dynamo/backends/distributed.py (DDPOptimizer), torch/_inductor/fx_passes/ddp_fusion.py.
void compile(const std::string& mode, Reader& config, Bytes first, const DdpLimits& limits,
             const Workload& workload, Reading& reading) {
  Strategy& strategy = reading.strategy;
  const Bytes cap = *std::max_element(limits.begin(), limits.end());
  if (mode == "ddp_optimizer") {
    if (first > cap) {
      config.fail("torch_compile",
                  "AssertionError: First bucket should be smaller/equal to other buckets to get "
                  "comms warmed up ASAP: the cap is below _DEFAULT_FIRST_BUCKET_BYTES");
    }
    strategy.graph_segments = pieces_of(workload, first, cap);
    reading.notes.push_back(
        "torch.compile: gradients are there piece by piece of the graph, which DDPOptimizer cuts "
        "at the buckets' sizes into " +
        std::to_string(strategy.graph_segments.size()));
    return;
  }
  if (mode == "no_optimization") {
    strategy.graph_segments = {static_cast<std::int64_t>(workload.tensors.size()) - 1};
    reading.notes.push_back(
        "torch.compile without optimize_ddp: the backward pass is one graph, so all gradients are "
        "ready at its end and nothing overlaps it");
    return;
  }
  // The compiler joins all-reduces of single gradients in their order, in any format, and the C++
  // reducer takes no part.
  strategy.fusion.groups =
      ddp_buckets(workload.tensors, {kDdpFirstBucket, cap}, DdpOrder::kRebuilt);
  strategy.traits.whole_first_step = false;
  strategy.bucket_copies = true;
  reading.notes.push_back(
      "python_reducer: the compiler joins all-reduces into a bucket of 1 MiB and others of the "
      "cap, by concatenation, whatever gradient_as_bucket_view says");
}

// Returns the kernels that make a factor's columns orthogonal: a column's norm and division, and
// four for the columns after it. From rank 3 on torch 1.12 calls torch.linalg.qr. A small factor
// then takes as long as 13 launches and one per column (pytorch/pytorch#173788, H100: 53 us at rank
// 4, 189 us at 32; #76673: 110 us at 4).
std::int64_t launches_to_orthogonalise(std::int64_t rank, const TorchVersion& torch) {
  if (rank > 2 && torch >= TorchVersion{1, 12}) return 13 + rank;
  return 2 * rank + 4 * (rank - 1);
}

// Reads PowerSGDState, with torch's defaults.
void read_power_sgd(Reader& config, const Cluster& cluster, const TorchVersion& torch, bool batched,
                    Reading& reading) {
  Reader state = object_or_empty(config, "PowerSGDState");
  Compression& compression = reading.strategy.compression;
  compression.codec = batched ? "batched_powersgd" : "powersgd";
  compression.rank = state.integer_or("matrix_approximation_rank", 1, 1, 1 << 16);
  constexpr std::int64_t kDefaultStart = 1000;
  compression.rampup_begin_step =
      state.integer_or("start_powerSGD_iter", kDefaultStart, 0, std::int64_t{1} << 40);
  const double min_rate = state.number_or("min_compression_rate", 2, {0, 1e9, true});
  if (!batched) compression.min_rate = min_rate;
  const bool feedback = state.boolean_or("use_error_feedback", true);
  const bool warm = state.boolean_or("warm_start", true);
  if ((feedback || warm) && compression.rampup_begin_step <= 1) {
    state.fail("start_powerSGD_iter",
               "ValueError: Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or "
               "`warm_start` is enabled, because PowerSGD can only be applied after the first two "
               "iterations in DDP.");
  }
  note(reading.notes,
       {{!feedback,
         "use_error_feedback is false: the time of its copies is predicted all the same"}});
  finish_keys(state, key_list("pytorch.PowerSGDState"), reading.notes);
  const std::int64_t columns = launches_to_orthogonalise(compression.rank, torch);
  compression.encode_launches = columns + 1;
  compression.decode_launches = columns + 2;
  if (cluster.library != Library::kNccl || cluster.ranks() == 1) return;
  reading.strategy.overlap = false;
  reading.notes.push_back(
      std::string(batched ? "batched_powerSGD_hook" : "powerSGD_hook") +
      " waits for the device at the end of each bucket (torch.cuda.synchronize): "
      "nothing overlaps the backward pass, in the steps before start_powerSGD_iter neither");
}

// Reads the communication hook, by its name in torch.distributed.algorithms.
void read_hook(Reader& config, const Workload& workload, const Cluster& cluster,
               const TorchVersion& torch, Reading& reading) {
  const std::string hook =
      config.word_or("comm_hook", "allreduce_hook",
                     {"allreduce_hook", "fp16_compress_hook", "bf16_compress_hook",
                      "post_localSGD_hook", "powerSGD_hook", "batched_powerSGD_hook"});
  if (hook == "post_localSGD_hook") {
    reading.strategy.local_sgd = read_post_local(config, cluster, reading.notes);
  }
  const bool batched = hook == "batched_powerSGD_hook";
  if (hook == "powerSGD_hook" || batched) read_power_sgd(config, cluster, torch, batched, reading);
  if (hook == "fp16_compress_hook") reading.strategy.compression.codec = "fp16";
  if (hook == "bf16_compress_hook") reading.strategy.compression.codec = "bf16";
  const std::string refusal =
      torch_refusal(reading.strategy.compression.codec, workload, cluster, torch);
  if (refusal.empty()) return;
  if (hook != "allreduce_hook") config.fail("comm_hook", "fails inside torch: " + refusal);
  reading.notes.push_back("the job fails inside torch: " + refusal);
}

// The keyword arguments and settings that the buckets follow from.
struct BucketWords {
  DdpLimits limits;
  Bytes first = 0;
  bool small_last = false;
  bool listed = false;
  bool stay = false;  // those of the first step
  bool no_sync = false;
  std::optional<std::string> compiled;
};

BucketWords read_words(Reader& config, const Workload& workload, const Cluster& cluster,
                       Reading& reading) {
  BucketWords words;
  const auto torch = torch_version(read_torch(config));
  note(reading.notes,
       {{torch && workload.framework_version.empty(),
         "torch is given for this configuration alone, and what tune and emit write is for the "
         "newest: \"torch\" in the workload makes it the job's"}});
  const TorchVersion version = torch.value_or(torch_of(workload));
  // A module's variable, to be set before the model is wrapped.
  words.first =
      config.integer_or("_DEFAULT_FIRST_BUCKET_BYTES", kDdpFirstBucket, 1, Bytes{1} << 50);
  words.limits = limits_of(config, version, words.first);
  words.small_last = config.integer_or("DDP_SET_LAST_BUCKET_CAP", 0, 0, 1) == 1;
  // Gradients that are views share their bucket's memory.
  reading.strategy.bucket_copies = !config.boolean_or("gradient_as_bucket_view", false);
  reading.strategy.traits.broadcast_buffers = config.boolean_or("broadcast_buffers", true);
  const bool static_graph = config.boolean_or("static_graph", false);
  words.stay = config.boolean_or("find_unused_parameters", false) && !static_graph;
  read_hook(config, workload, cluster, version, reading);
  words.compiled = compiled_by(config);
  words.no_sync = config.boolean_or("no_sync", false);
  words.listed = config.has("bucket_cap_mb_list");
  refuse_unmodelled(config, {{"device_mesh", "a mesh of ranks"},
                             {"mixed_precision", "training in another format than the parameters'"},
                             {"delay_all_reduce_named_params", "exchanging parameters later"}});
  // Keys of a run's construction, of parameters without a gradient and of how copies are launched:
  // a step's time as modelled here has none of these.
  for (const char* key : {"init_sync", "skip_all_reduce_unused_params", "batched_grad_copy"}) {
    config.boolean_or(key, false);
  }
  finish_keys(config, key_list("pytorch"), reading.notes);
  return words;
}

// Lays out the buckets. After the first step they are rebuilt in the gradients' order of arrival:
// ours. The first step's stay with find_unused_parameters and a graph that may change.
void lay_out_buckets(const BucketWords& words, const Workload& workload, Reading& reading) {
  Strategy& strategy = reading.strategy;
  strategy.traits.whole_first_step = !words.stay && !words.listed;
  strategy.fusion.rule = Fusion::Rule::kGroups;
  strategy.traits.buckets.in_turn =
      true;  // the reducer launches buckets in the order of their index
  // The groups say it all; the limit they came from is kept for who asks whether it was meant.
  strategy.fusion.size = *std::max_element(words.limits.begin(), words.limits.end());
  strategy.fusion.groups =
      ddp_buckets(workload.tensors, words.limits,
                  words.stay ? DdpOrder::kFirstStep : DdpOrder::kRebuilt, words.small_last);
  note(reading.notes,
       {{words.stay,
         "find_unused_parameters is true: the buckets of the first step stay, they are never "
         "rebuilt in the order in which gradients arrive"}});
}

// Notes the cost of copies, and too few buckets.
void note_losses(bool copied, const Cluster& cluster, Reading& reading) {
  if (cluster.ranks() <= 1) return;
  const Fusion& fusion = reading.strategy.fusion;
  const bool costs = cluster.device.memory > 0;
  const auto default_cap = static_cast<Bytes>(kDdpCapMb * static_cast<double>(kMiB));
  const std::size_t buckets = fusion.groups.size();
  note(reading.notes,
       {{copied && costs,
         "gradients are copied into the buckets and back; gradient_as_bucket_view avoids that"},
        {copied && !costs,
         "gradients are copied into the buckets and back (gradient_as_bucket_view is false), which "
         "costs nothing here: cluster.device.memory_gbytes_per_s is not given"},
        {fusion.size >= default_cap && buckets < 3,
         "all gradients fit into " +
             (buckets == 1 ? "one bucket" : std::to_string(buckets) + " buckets") +
             ": the backward pass can hide little communication"}});
}

// Reads the keyword arguments of DistributedDataParallel that decide the communication.
Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool) {
  Reading reading;
  Strategy& strategy = reading.strategy;
  const BucketWords words = read_words(config, workload, cluster, reading);
  // ProcessGroupGloo carries out collectives on two threads.
  if (cluster.library == Library::kGloo) strategy.streams = 2;
  strategy.each_micro_batch =
      sums_each_micro_batch(words.no_sync, workload, reading.notes) && workload.micro_batches > 1;
  note(reading.notes,
       {{strategy.each_micro_batch,
         "gradients are summed in every micro-batch: no_sync around all but the last saves " +
             std::to_string(workload.micro_batches - 1) +
             " all-reduces per step (\"no_sync\": true)"}});
  lay_out_buckets(words, workload, reading);
  if (words.compiled && !workload.tensors.empty()) {
    compile(*words.compiled, config, words.first, words.limits, workload, reading);
  }
  const bool joined_by_compiler = words.compiled && words.compiled->starts_with("python_reducer");
  note_losses(strategy.bucket_copies && !joined_by_compiler, cluster, reading);
  return reading;
}

// Returns mebibytes of at least `least` bytes and fewer than `end`: a number that people write,
// such as 64 KiB or 25 MiB, else the one with the fewest decimals.
double round_mebibytes(Bytes least, Bytes end) {
  constexpr auto kBytes = static_cast<double>(kMiB);
  for (const Bytes unit : {kMiB, kKiB}) {
    for (const Bytes size : {1, 2, 4, 8, 16, 25, 32, 50, 64, 100, 128, 200, 256, 400, 512, 800}) {
      if (size * unit < least || size * unit >= end) continue;
      return static_cast<double>(size * unit) / kBytes;
    }
  }
  const double low = static_cast<double>(std::max<Bytes>(1, least)) / kBytes;
  constexpr int kMaxDecimals = 5;
  for (int decimals = 0; decimals <= kMaxDecimals; ++decimals) {
    const double unit = std::pow(10.0, decimals);
    const double size = std::ceil(low * unit) / unit;
    const auto bytes = static_cast<Bytes>(size * kBytes);
    if (bytes >= least && bytes < end) return size;
  }
  return low;
}

// Returns a configuration with this cap (nullopt: torch's own), and a strategy's hook and views.
Json config_with(std::optional<double> cap, const Strategy& strategy) {
  Json config = Json::object();
  if (cap) config["bucket_cap_mb"] = *cap;
  const std::string& codec = strategy.compression.codec;
  if (!strategy.bucket_copies) config["gradient_as_bucket_view"] = true;
  if (!strategy.traits.broadcast_buffers) config["broadcast_buffers"] = false;
  if (codec == "fp16" || codec == "bf16") config["comm_hook"] = codec + "_compress_hook";
  if (codec == "powersgd" || codec == "batched_powersgd") {
    const bool batched = codec == "batched_powersgd";
    config["comm_hook"] = batched ? "batched_powerSGD_hook" : "powerSGD_hook";
    Json& state = config["PowerSGDState"];
    state["matrix_approximation_rank"] = strategy.compression.rank;
    state["start_powerSGD_iter"] =
        std::max<std::int64_t>(2, strategy.compression.rampup_begin_step);
    if (!batched) state["min_compression_rate"] = strategy.compression.min_rate;
  }
  if (strategy.local_sgd.enabled) {
    const LocalSgd& local = strategy.local_sgd;
    config["comm_hook"] = "post_localSGD_hook";
    config["PostLocalSGDState"] = {{"start_localSGD_iter", local.begin_step},
                                   {"subgroup_size", local.subgroup},
                                   {"post_local_gradient_allreduce", local.subgroup > 1}};
    config["PeriodicModelAverager"] = {{"period", local.period},
                                       {"warmup_steps", local.begin_step}};
  }
  return config;
}

// Returns a limit for each bucket; the last one takes the remainder. Returns nullopt if buckets are
// no runs of the gradients in their order. Any other grouping can be expressed like this.
std::optional<Json> listed_caps(std::vector<plan::Bucket> buckets, const Workload& workload,
                                DdpOrder order) {
  const int count = static_cast<int>(workload.tensors.size());
  const bool backwards = order == DdpOrder::kFirstStep;  // from the model's first parameter on
  if (backwards) std::reverse(buckets.begin(), buckets.end());
  Json caps = Json::array();
  int next = 0;
  for (auto& bucket : buckets) {
    std::sort(bucket.tensors.begin(), bucket.tensors.end());
    if (backwards) std::reverse(bucket.tensors.begin(), bucket.tensors.end());
    Bytes reached = 0;
    Bytes before = 0;  // without the last gradient
    for (const int tensor : bucket.tensors) {
      // Buckets of averaged parameters list buffers after the last parameter.
      const bool in_turn = tensor == (backwards ? count - 1 - next : next);
      if (!in_turn || next == count) return std::nullopt;
      ++next;
      before = reached;
      reached += workload.tensors[static_cast<std::size_t>(tensor)].bytes();
    }
    caps.push_back(round_mebibytes(before + 1, reached + 1));
  }
  return caps;
}

// Sets the same cap for the first bucket, which an old torch takes from a variable of its own.
Json from_the_first(Json config) {
  config["_DEFAULT_FIRST_BUCKET_BYTES"] =
      static_cast<std::int64_t>(config["bucket_cap_mb"].get<double>() * static_cast<double>(kMiB));
  return config;
}

// Returns the largest limit that a configuration gives, in MiB.
double cap_of(const Json& config) {
  double cap = config.value("bucket_cap_mb", kDdpCapMb);
  if (!config.contains("bucket_cap_mb_list")) return cap;
  cap = 0;
  for (const Json& limit : config["bucket_cap_mb_list"]) cap = std::max(cap, limit.get<double>());
  return cap;
}

// Returns the pieces of a compiled model that closed at the cap: all but the first, which has its
// own limit, and the last, the remainder.
std::vector<plan::Bucket> closed_pieces(const Strategy& strategy, const Workload& workload) {
  std::vector<plan::Bucket> list;
  for (std::size_t p = 1; p + 1 < strategy.graph_segments.size(); ++p) {
    plan::Bucket& piece = list.emplace_back();
    const auto end = std::min<std::size_t>(static_cast<std::size_t>(strategy.graph_segments[p]) + 1,
                                           workload.tensors.size());
    for (auto t = static_cast<std::size_t>(strategy.graph_segments[p - 1]) + 1; t < end; ++t) {
      piece.bytes += workload.tensors[t].bytes();
    }
  }
  return list;
}

// Returns the configurations with the model compiled, in each way that leaves it to DDP's reducer.
std::vector<Json> compiled_like(const std::vector<Json>& configs) {
  std::vector<Json> compiled;
  for (const bool split : {true, false}) {
    for (Json config : configs) {
      if (split && cap_of(config) < 1) continue;  // refused
      config["torch_compile"] = {{"optimize_ddp", split}};
      compiled.push_back(std::move(config));
    }
  }
  return compiled;
}

// Returns the buckets of one backward pass; others follow with micro-batches, and with local steps.
std::vector<plan::Bucket> of_one_pass(const std::vector<plan::Bucket>& all,
                                      const Workload& workload) {
  std::vector<plan::Bucket> buckets;
  std::size_t covered = 0;
  for (const auto& bucket : all) {
    if (covered >= workload.tensors.size()) break;
    covered += bucket.tensors.size();
    buckets.push_back(bucket);
  }
  return buckets;
}

std::vector<Json> suggest(const Strategy& strategy, const std::vector<plan::Bucket>& all,
                          const Workload& workload, const Cluster&) {
  const auto buckets = of_one_pass(all, workload);
  // The last bucket closes with the last gradient; of the buckets of the first step, the first one.
  const TorchVersion torch = torch_of(workload);
  const bool two_limits = torch < kExplicitFirst;
  std::vector<std::optional<double>> caps{std::nullopt};
  if (strategy.fusion.rule == Fusion::Rule::kSize && strategy.fusion.size > 0) {
    caps.emplace_back(static_cast<double>(strategy.fusion.size) / static_cast<double>(kMiB));
  }
  const auto add_caps = [&](std::vector<plan::Bucket> closed) {
    const auto pieces = closed_pieces(strategy, workload);
    closed.insert(closed.end(), pieces.begin(), pieces.end());
    for (const double cap : sizes_that_close(closed)) caps.emplace_back(cap);
  };
  if (buckets.size() > 1) {
    add_caps({buckets.begin(), buckets.end() - 1});
    add_caps({buckets.begin() + 1, buckets.end()});
  } else {
    add_caps({});
  }
  if (two_limits && buckets.size() > 2) add_caps({buckets.begin() + 1, buckets.end() - 1});
  caps.emplace_back(kMoreThanAnyModel);
  std::vector<Json> configs;
  for (const auto& cap : caps) configs.push_back(config_with(cap, strategy));
  if (two_limits) {
    for (const auto& cap : caps) {
      if (cap) configs.push_back(from_the_first(config_with(cap, strategy)));
    }
  }
  const std::size_t capped = configs.size();
  const auto add_list = [&](DdpOrder order) {
    const auto list = listed_caps(buckets, workload, order);
    if (!list || torch < kListedCaps) return;
    configs.push_back(config_with(std::nullopt, strategy));
    configs.back()["bucket_cap_mb_list"] = *list;
  };
  add_list(DdpOrder::kRebuilt);
  // The same with the buckets of the first step.
  const std::size_t rebuilt = configs.size();
  for (std::size_t i = 0; i < capped; ++i) configs.push_back(Json(configs[i]));
  add_list(DdpOrder::kFirstStep);
  for (std::size_t i = rebuilt; i < configs.size(); ++i)
    configs[i]["find_unused_parameters"] = true;
  for (auto& config : configs) {
    const bool staged = workload.parallel.pipeline > 1;
    if (workload.micro_batches > 1 && !staged) config["no_sync"] = !strategy.each_micro_batch;
  }
  return strategy.graph_segments.empty() ? configs : compiled_like(configs);
}

// Adds torch's own hooks that change the traffic. PowerSGD begins at torch's default, post-local
// SGD at the step of torch's example.
void add_hooks(Changes& changes, const Cluster& cluster) {
  constexpr int kRank = 4;
  constexpr int kPeriod = 4;
  constexpr int kWarmUp = 100;
  changes.push_back({ChangeKind::kRounding, {{"comm_hook", "fp16_compress_hook"}}});
  if (has_bf16(cluster)) {
    changes.push_back({ChangeKind::kRounding, {{"comm_hook", "bf16_compress_hook"}}});
  }
  // PowerSGD's products would be free if the device's rate is not known.
  if (cluster.device.flops > 0) {
    changes.push_back({ChangeKind::kCompression,
                       {{"comm_hook", "powerSGD_hook"},
                        {"PowerSGDState", {{"matrix_approximation_rank", kRank}}}}});
  }
  changes.push_back(
      {ChangeKind::kAveraging,
       {{"comm_hook", "post_localSGD_hook"},
        {"PostLocalSGDState",
         {{"start_localSGD_iter", kWarmUp}, {"post_local_gradient_allreduce", false}}},
        {"PeriodicModelAverager", {{"period", kPeriod}}}}});
}

Changes changes(const Json&, const Cluster& cluster) {
  Changes changes = accumulation_changes();
  for (const bool views : {true, false}) {
    changes.push_back({ChangeKind::kCopies, {{"gradient_as_bucket_view", views}}});
  }
  for (const int mebibytes : kTriedMebibytes) {
    changes.push_back({ChangeKind::kFusion, {{"bucket_cap_mb", mebibytes}}});
  }
  add_hooks(changes, cluster);
  return changes;
}

// Tries one cap for all buckets, or torch's own limits, and a hook.
std::vector<Json> candidates(const Strategy& winner, const Workload& workload, const Cluster&,
                             const Partitions& partitions) {
  const bool two_limits = torch_of(workload) < kExplicitFirst;
  std::vector<Json> configs =
      for_each_size(partitions, Fusion::Close::kAfter, [&](Bytes least, Bytes end) {
        std::vector<Json> tried{config_with(round_mebibytes(least, end), winner)};
        if (two_limits) tried.push_back(from_the_first(tried.front()));
        return tried;
      });
  configs.insert(configs.begin(), config_with(std::nullopt, winner));
  return configs;
}

// Returns PyTorch's schemes; DDP's own keys say nothing about FSDP.
std::vector<Scheme> schemes(const Json&, const Workload& workload, const Cluster& cluster) {
  return pytorch_schemes(nullptr, workload, cluster);
}

}  // namespace

Dialect pytorch_ddp_dialect() {
  return {.name = "pytorch",
          .summary = "DistributedDataParallel: bucket_cap_mb, copies, comm_hook",
          .read = read,
          .suggest = suggest,
          .changes = changes,
          .defaults = {{"bucket_cap_mb", nullptr},
                       {"comm_hook", "allreduce_hook"},
                       {"gradient_as_bucket_view", false},
                       {"no_sync", false}},
          .candidates = candidates,
          .schemes = schemes,
          .kernels = "pytorch",
          .one_bucket = static_cast<Bytes>(kMoreThanAnyModel) * kMiB,
          .cap_key = "bucket_cap_mb",
          .code = ddp_code,
          .apply_refusal = apply_refusal};
}

}  // namespace syncline::dialect
