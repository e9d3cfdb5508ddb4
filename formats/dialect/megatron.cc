#include "formats/dialect/megatron.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <tuple>

#include "core/plan/fusion.h"
#include "formats/dialect/changes.h"
#include "formats/dialect/ddp_buckets.h"
#include "formats/dialect/schemes.h"
#include "formats/json/reader.h"

namespace syncline::dialect {
namespace {

constexpr std::int64_t kMinDefault = 40'000'000;
constexpr std::int64_t kDefaultARank = 1'000'000;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 50;
// Alignment of the distributed optimizer, in elements: of a parameter's begin, and of a bucket's
// end (also a multiple of the ranks). The larger one keeps messages even for NCCL's rings.
constexpr std::int64_t kParameterAlign = 64;
constexpr std::int64_t kBucketAlign = 128;
constexpr std::int64_t kEvenBucketAlign = 65536;

constexpr const char* kNoOverlap = "no-overlap-p2p-communication";
constexpr const char* kPipelineInside = "use-tp-pp-dp-mapping";
constexpr const char* kLayersFlag = "pipeline-model-parallel-layout";
constexpr const char* kOffload = "optimizer-cpu-offload";

constexpr std::array<LayoutFlag, 6> kLayout{
    {{"tensor-model-parallel-size", "tensor", &Parallel::tensor},
     {"pipeline-model-parallel-size", "pipeline", &Parallel::pipeline},
     {"num-virtual-stages-per-pipeline-rank", "virtual_stages", &Parallel::virtual_stages},
     {"context-parallel-size", "context", &Parallel::context},
     {"expert-model-parallel-size", "expert", &Parallel::expert},
     {"expert-tensor-parallel-size", "expert_tensor", &Parallel::expert_tensor}}};

// Returns a layout without repetitions: "tt|tt|" for "(tt|)*2". Moves `at` past it.
std::string written_out(std::string_view text, std::size_t& at) {
  constexpr int kMax = 1 << 12;  // layers, or stages
  std::string all;
  while (at < text.size() && text[at] != ')') {
    std::string part(1, text[at++]);
    if (part == ",") continue;
    if (part == "(") {
      part = written_out(text, at);
      if (at == text.size()) throw std::invalid_argument("'(' without ')'");
      ++at;
    }
    int times = 1;
    if (at < text.size() && text[at] == '*') {
      const auto [end, error] = std::from_chars(&text[at] + 1, text.data() + text.size(), times);
      if (error != std::errc() || times < 1 || times > kMax) {
        throw std::invalid_argument("'*' without a number of times");
      }
      at = static_cast<std::size_t>(end - text.data());
    }
    if (part.size() * static_cast<std::size_t>(times) > kMax) {
      throw std::invalid_argument("too many layers");
    }
    while (times-- > 0) all += part;
    if (all.size() > kMax) throw std::invalid_argument("too many layers");
  }
  return all;
}

bool any_bf16(const Workload& workload) {
  return std::ranges::find(workload.tensors, DType::kBf16, &Tensor::dtype) !=
         workload.tensors.end();
}

bool has_experts(const Workload& workload) {
  return std::ranges::any_of(workload.tensors, &Tensor::expert);
}

// Checks that a layout among the flags equals the workload's.
void read_layout(Reader& config, const Workload& workload, const Cluster& cluster,
                 std::vector<std::string>& notes) {
  const Parallel& parallel = workload.parallel;
  if (parallel.schedule == Schedule::kGpipe || parallel.schedule == Schedule::kZeroBubble) {
    notes.push_back(
        "Megatron's stages work by 1f1b, or interleaved: no flag says the workload's \"schedule\"");
  }
  const auto same = [&](const char* flag, std::int64_t given, std::int64_t own, const char* key) {
    if (given == own) return;
    config.fail(flag, "is " + std::to_string(given) + ", but the workload has \"parallel\": {\"" +
                          key + "\": " + std::to_string(own) + "}; write it there");
  };
  for (const auto& [flag, key, size] : megatron_layout()) {
    same(flag, config.integer_or(flag, parallel.*size, 1, 1 << 20), parallel.*size, key);
  }
  const auto same_word = [&](const char* flag, bool own, const char* key) {
    if (config.has(flag)) same(flag, config.boolean_or(flag, own) ? 1 : 0, own ? 1 : 0, key);
  };
  if (config.has(kLayersFlag) && megatron_layers(config) != parallel.layers) {
    config.fail(kLayersFlag,
                "does not have the layers of the workload's \"parallel\": {\"layers\": " +
                    Json(parallel.layers).dump() + "}; write them there");
  }
  same_word("sequence-parallel", parallel.sequence, "sequence");
  if (config.has("cp-comm-type")) {
    const std::string own = parallel.context_all_to_all ? "a2a" : "p2p";
    if (config.word_or("cp-comm-type", own, {"p2p", "a2a"}) != own) {
      config.fail("cp-comm-type", "the workload's \"context_exchange\" says " + own);
    }
  }
  same_word("tp-comm-overlap", parallel.overlap_tensor, "overlap_tensor");
  same_word("overlap-moe-expert-parallel-comm", parallel.overlap_expert, "overlap_expert");
  same_word(kNoOverlap, !parallel.overlap_sends, "overlap_sends");
  same_word(kPipelineInside, parallel.pipeline_inside, "order");
  refuse_unmodelled(config,
                    {{"num-experts", "a mixture of experts by its flags"},
                     {"num-layers-per-virtual-pipeline-stage", "a layout by its layers"},
                     {"hierarchical-context-parallel-sizes", "two-level context parallelism"},
                     {"use-torch-fsdp2", "FSDP inside Megatron"},
                     {"use-megatron-fsdp", "FSDP inside Megatron"}});
  const std::int64_t micro = config.integer_or("micro-batch-size", 0, 1, 1 << 30);
  const std::int64_t global = config.integer_or("global-batch-size", 0, 1, 1 << 30);
  if (micro == 0 || global == 0) return;
  const std::int64_t replicas = std::max(1, cluster.ranks() / parallel.context);
  const std::int64_t together = micro * replicas;
  if (global % together != 0) {
    config.fail("global-batch-size", "global batch size (" + std::to_string(global) +
                                         ") is not divisible by micro batch size (" +
                                         std::to_string(micro) + ") times data parallel size (" +
                                         std::to_string(replicas) + ")");
  }
  check_micro_batches(config, "global-batch-size", global / together, workload);
}

// A module's parameter, by the names of its parts in other models: `whole` holds all of `parts`.
struct Fused {
  std::string_view whole;
  std::array<std::string_view, 3> parts;
};
constexpr std::array<Fused, 4> kFused{{{"linear_qkv", {"q_proj", "k_proj", "v_proj"}},
                                       {"linear_qkv", {"query", "key", "value"}},
                                       {"linear_fc1", {"gate_proj", "up_proj", ""}},
                                       {"linear_fc1", {"w1", "w3", ""}}}};

// Returns "model.layers.0.mlp.linear_fc1.weight" for "model.layers.0.mlp.up_proj.weight".
std::string megatron_name(const std::string& tensor) {
  const std::size_t last = tensor.rfind('.');
  if (last == tensor.npos) return tensor;
  const std::size_t first = tensor.rfind('.', last - 1) + 1;  // npos + 1 is the begin
  const std::string_view module = std::string_view(tensor).substr(first, last - first);
  for (const Fused& fused : kFused) {
    if (module.empty() || std::ranges::find(fused.parts, module) == fused.parts.end()) continue;
    return tensor.substr(0, first) + std::string(fused.whole) + tensor.substr(last);
  }
  return tensor;
}

// Returns true for an attention's projection: it is registered ahead of its layer's others.
bool is_projection(std::string_view name) {
  return name.find(".self_attn.o_proj.") != name.npos || name.find(".attn.c_proj.") != name.npos ||
         name.find(".attention.output.dense.") != name.npos;
}

// Returns "model.layers.0.", the prefix of all parameters of a layer.
std::string_view layer_of(std::string_view name) {
  const std::size_t number = name.find_first_of("0123456789");
  const std::size_t dot = name.find('.', number);
  return number == name.npos || dot == name.npos ? std::string_view() : name.substr(0, dot + 1);
}

// Returns Megatron's parameters in reverse order of registration. Gate and up are one (linear_fc1).
// Queries, keys and values are another (linear_qkv), registered after the projection.
std::vector<std::vector<int>> parameters_of(const std::vector<Tensor>& tensors) {
  std::vector<int> order = registered_order(tensors);
  std::reverse(order.begin(), order.end());
  const auto name = [&](int t) -> const std::string& {
    return tensors[static_cast<std::size_t>(t)].name;
  };
  for (auto begin = order.begin(); begin != order.end();) {
    const std::string_view layer = layer_of(name(*begin));
    const auto end =
        std::find_if(begin, order.end(), [&](int t) { return layer_of(name(t)) != layer; });
    std::stable_partition(begin, end, [&](int t) { return !is_projection(name(t)); });
    begin = end;
  }
  std::vector<std::vector<int>> parameters;
  std::map<std::string, std::size_t> fused;
  for (const int t : order) {
    const std::string whole = megatron_name(name(t));
    std::size_t at = parameters.size();
    if (whole != name(t)) at = fused.try_emplace(whole, at).first->second;
    if (at == parameters.size()) parameters.emplace_back();
    parameters[at].push_back(t);
  }
  return parameters;
}

// Returns the embedding that the first and the last stage share, if this part has it.
std::vector<int> shared_embedding(const Workload& workload) {
  const Parallel& parallel = workload.parallel;
  const Tensor& first = workload.tensors.front();
  const Tensor& last = workload.tensors.back();
  const auto shared = [&](const Tensor& tensor) {
    return parallel.pipeline > 1 && parallel.tied > 0 && tensor.bytes() == parallel.tied;
  };
  if (first.part == parallel.parts() - 1 && shared(first)) return {0};
  const bool begin = last.part == 0 && shared(last);
  return begin ? std::vector{static_cast<int>(workload.tensors.size()) - 1} : std::vector<int>();
}

// Returns buckets as DistributedDataParallel lists them: buffer by buffer, by the registration of
// each format's first parameter. A buffer's buckets stay as they were filled.
std::vector<std::vector<int>> in_buffer_order(std::vector<std::vector<int>> buckets,
                                              const std::vector<Tensor>& tensors,
                                              const ElementRule& rule) {
  const auto buffer_of = [&](int t) {
    const Tensor& tensor = tensors[static_cast<std::size_t>(t)];
    return std::pair(tensor.dtype, rule.fp8_apart && plan::layer_matrix(tensor));
  };
  std::map<std::pair<DType, bool>, int> registered;  // the first parameter of each buffer
  std::map<int, int> filled;
  int place = 0;
  for (const auto& parameter : rule.parameters) {
    registered[buffer_of(parameter.front())] = -place;
    filled[parameter.front()] = place++;
  }
  std::ranges::stable_sort(buckets, {}, [&](const std::vector<int>& bucket) {
    return std::pair(registered.at(buffer_of(bucket.front())), filled.at(bucket.front()));
  });
  return buckets;
}

// Reads the size or number of buckets; both have no effect without the overlap. Only the first part
// has buckets: on later stages, and in later chunks, the step does not wait for the exchange.
std::int64_t read_size(Reader& config, bool overlap, const Workload& workload,
                       const Cluster& cluster, std::vector<std::string>& notes) {
  const bool given = config.has("ddp-bucket-size") || config.has("ddp-num-buckets");
  std::int64_t size = config.integer_or(
      "ddp-bucket-size", std::max(kMinDefault, kDefaultARank * cluster.ranks()), 1, kMaxElements);
  if (config.has("ddp-num-buckets")) {
    if (config.has("ddp-bucket-size")) {
      config.fail("ddp-num-buckets", "does not go with ddp-bucket-size: give one of the two");
    }
    const std::int64_t count = config.integer("ddp-num-buckets", 1, kMaxElements);
    std::int64_t parameters = 0;
    for (const auto& tensor : workload.tensors) parameters += tensor.elements;
    size = std::max<std::int64_t>(1, parameters / count);
  }
  if (overlap) return workload.tensors.front().part > 0 ? kAnyElements : size;
  note(notes, {{given,
                "ddp-bucket-size and ddp-num-buckets have no effect without overlap-grad-reduce: "
                "one bucket a buffer, after the backward pass"}});
  return kAnyElements;
}

// Returns true if gradients are reduced in fp32: bf16 ones are unless that is turned off.
bool reduces_in_fp32(Reader& config, const Workload& workload, std::vector<std::string>& notes) {
  const bool in_fp32 = config.boolean_or("accumulate-allreduce-grads-in-fp32", false);
  const bool in_bf16 = config.boolean_or("grad-reduce-in-bf16", false);
  const bool half = config.boolean_or("bf16", false);
  const bool any = any_bf16(workload);
  note(notes,
       {{half && !any,
         "bf16 is given, but no gradient of the workload is: they are predicted as they stand"},
        {!in_bf16 && any && !in_fp32,
         "bf16 gradients are accumulated and reduced in fp32, twice the bytes: grad-reduce-in-bf16 "
         "turns that off"}});
  if (in_bf16) return false;
  return in_fp32 ? any_narrow(workload) : any;
}

// Returns the number of ranks, neighbours, that share one copy of the optimizer's states: all ranks
// divided by the instances.
int read_shards(Reader& config, bool sharded, const Cluster& cluster) {
  const char* key = "num-distributed-optimizer-instances";
  const auto instances = static_cast<int>(config.integer_or(key, 1, 1, 1 << 20));
  if (instances == 1) return cluster.ranks();
  if (!sharded) config.fail(key, "cannot be above 1 without use-distributed-optimizer");
  if (config.boolean_or("reduce-scatter-with-fp32-accumulation", false)) {
    config.fail(key, "above 1 does not go with reduce-scatter-with-fp32-accumulation");
  }
  if (cluster.ranks() % instances != 0) {
    config.fail(key, "the data parallel size (" + std::to_string(cluster.ranks()) +
                         ") is not divisible by " + std::to_string(instances));
  }
  if (instances == cluster.ranks()) {
    config.fail(key, "an instance of one rank is not modelled yet: it shards nothing");
  }
  return cluster.ranks() / instances;
}

// Returns the bytes that a parameter is gathered in; 0: its own. FP8 products are the workload's.
int read_fp8(Reader& config, bool sharded, const Workload& workload) {
  bool fp8 = false;
  for (const char* key : {"fp8", "fp8-format"}) {
    fp8 |= config.word_or(key, "none", {"none", "e4m3", "hybrid"}) != "none";
  }
  const std::string recipe =
      config.word_or("fp8-recipe", "delayed", {"delayed", "tensorwise", "blockwise", "mxfp8"});
  if (fp8 && (recipe == "delayed") != workload.delayed_scaling) {
    config.fail(config.has("fp8-recipe") ? "fp8-recipe" : "fp8-format",
                "scales FP8 " + recipe + ", so the workload needs \"delayed_scaling\": " +
                    (recipe == "delayed" ? "true" : "false"));
  }
  if (!config.boolean_or("fp8-param-gather", false)) return 0;
  if (!fp8) config.fail("fp8-param-gather", "only supported with fp8-format");
  if (!sharded) config.fail("fp8-param-gather", "needs use-distributed-optimizer");
  return 1;
}

// Shards optimizer states among `shards` ranks (an instance). The all-reduce across the instances
// shares the reduce-scatter's stream.
void shard_inside(Strategy& strategy, int shards, const Cluster& cluster,
                  std::vector<std::string>& notes) {
  if (shards == cluster.ranks()) return;
  strategy.hierarchy.form = Hierarchy::Form::kSharded;
  strategy.hierarchy.group_size = shards;
  notes.push_back("optimizer states lie in shards among " + std::to_string(shards) +
                  " ranks; there are " + std::to_string(cluster.ranks() / shards) +
                  " replicas: a bucket's all-reduce across them delays the next bucket");
}

Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool) {
  Reading reading;
  Strategy& strategy = reading.strategy;
  read_layout(config, workload, cluster, reading.notes);
  const bool overlap = config.boolean_or("overlap-grad-reduce", false);
  const bool sharded = config.boolean_or("use-distributed-optimizer", false);
  const int shards = read_shards(config, sharded, cluster);
  const bool gathers_late = config.boolean_or("overlap-param-gather", false);
  const bool even = config.boolean_or("ddp-pad-buckets-for-high-nccl-busbw", false);
  if (gathers_late && !sharded) {
    config.fail("overlap-param-gather", "only supported with use-distributed-optimizer");
  }
  if (gathers_late && !overlap) {
    config.fail("overlap-param-gather", "needs overlap-grad-reduce too");
  }
  ElementRule rule;
  rule.size = read_size(config, overlap, workload, cluster, reading.notes);
  if (config.has("ddp-bucket-size") && overlap) {
    suspect_elements("ddp-bucket-size", rule.size, workload, strategy);
  }
  rule.parameters = parameters_of(workload.tensors);
  if (sharded) rule.align = kParameterAlign;
  if (sharded) rule.alone = shared_embedding(workload);
  if (reduces_in_fp32(config, workload, reading.notes)) {
    strategy.fusion.sum_format = DType::kFp32;
  }
  strategy.traits.fp32_copies = true;
  strategy.traits.gather_bytes = read_fp8(config, sharded, workload);
  rule.fp8_apart = strategy.traits.gather_bytes == 1;
  if (config.boolean_or(kOffload, false)) strategy.offload = Strategy::Offload::kOptimizer;
  for (const char* key : {"ddp-average-in-collective", "use-nccl-ub", "fp16",
                          "reduce-scatter-with-fp32-accumulation"}) {
    config.boolean_or(key, false);  // nothing of it is evaluated
  }
  config.finish();

  strategy.fusion.rule = Fusion::Rule::kGroups;
  strategy.fusion.groups = buckets_by_elements(workload.tensors, rule);
  strategy.after_passes = !overlap;
  const auto listed = in_buffer_order(strategy.fusion.groups, workload.tensors, rule);
  if (!overlap) strategy.fusion.groups = listed;
  if (sharded) {
    strategy.exchange = Strategy::Exchange::kSharded;
    strategy.cross_step = gathers_late;
    strategy.traits.buckets.align_elements = kParameterAlign;
    strategy.traits.buckets.pad_elements =
        std::lcm<std::int64_t>(shards, even ? kEvenBucketAlign : kBucketAlign);
    shard_inside(strategy, shards, cluster, reading.notes);
    // Parameters are gathered in their own format; after the update, in the order of the buffers.
    const auto& gathered = gathers_late ? strategy.fusion.groups : listed;
    const bool apart =
        gathered != strategy.fusion.groups || (!gathers_late && workload.parallel.expert > 1);
    if (apart || strategy.fusion.sums_in_fp32()) strategy.gather_groups = gathered;
  }
  const bool several = cluster.ranks() > 1;
  note(reading.notes,
       {{even && !sharded,
         "ddp-pad-buckets-for-high-nccl-busbw has no effect without use-distributed-optimizer"},
        {several && !overlap,
         "overlap-grad-reduce is off: nothing is sent before the backward pass is over"},
        {several && overlap,
         "the first batch of a training sends nothing before its backward pass is over: measure "
         "the ones after it"},
        {several && sharded && !gathers_late,
         "overlap-param-gather is off: the next step waits for all parameters"}});
  return reading;
}

// Adds the number of copies of the shards, if there are several.
void add_instances(Json& config, const Strategy& strategy, const Cluster& cluster) {
  const int shards = shard_ranks(strategy, cluster.ranks());
  if (strategy.exchange != Strategy::Exchange::kSharded || shards == 0) return;
  if (shards == cluster.ranks()) return;
  config["num-distributed-optimizer-instances"] = cluster.ranks() / shards;
}

// Returns "Ett|tt|ttL".
std::string layout_text(const std::vector<int>& layers) {
  std::string text = "E";
  for (std::size_t part = 0; part < layers.size(); ++part) {
    text += (part > 0 ? "|" : "") + std::string(static_cast<std::size_t>(layers[part]), 't');
  }
  return text + "L";
}

// Adds the flags of the layout; plain data parallelism has none.
void add_layout(Json& config, const Workload& workload, const Cluster& cluster) {
  const Parallel& parallel = workload.parallel;
  for (const auto& [flag, key, size] : kLayout) {
    // The default of expert-tensor-parallel-size is the tensor size.
    const bool experts = size == &Parallel::expert_tensor;
    const int usual = experts ? parallel.tensor : 1;
    if (parallel.*size != usual && (!experts || has_experts(workload))) {
      config[flag] = parallel.*size;
    }
  }
  if (!parallel.layers.empty()) config[kLayersFlag] = layout_text(parallel.layers);
  if (parallel.sequence) config["sequence-parallel"] = true;
  if (parallel.context_all_to_all) config["cp-comm-type"] = "a2a";
  if (parallel.overlap_tensor) config["tp-comm-overlap"] = true;
  if (parallel.overlap_expert) config["overlap-moe-expert-parallel-comm"] = true;
  if (parallel.virtual_stages > 1 && !parallel.overlap_sends) config[kNoOverlap] = true;
  if (parallel.pipeline_inside) config[kPipelineInside] = true;
  if (workload.micro_batches == 1 && !parallel.whole_job()) return;
  config["micro-batch-size"] = workload.batch;
  config["global-batch-size"] =
      workload.batch * workload.micro_batches * cluster.ranks() / parallel.context;
}

// Returns the spans of the first part's buckets, without each buffer's last one: it holds the
// remainder. Parameters that are gathered by themselves come after their gradients.
std::vector<std::int64_t> closed_spans(const std::vector<plan::Bucket>& buckets,
                                       const Workload& workload, std::int64_t align, bool fp8) {
  std::map<std::tuple<bool, DType, bool>, std::vector<std::int64_t>> buffers;
  std::set<int> seen;
  for (const plan::Bucket& bucket : buckets) {
    const int front = bucket.tensors.front();
    const Tensor& tensor = workload.tensors[static_cast<std::size_t>(front)];
    if (tensor.part != 0 || !seen.insert(front).second) continue;
    const bool apart = fp8 && plan::layer_matrix(tensor);
    buffers[{tensor.expert, tensor.dtype, apart}].push_back(span_of(bucket, workload, align));
  }
  std::vector<std::int64_t> closed;
  for (const auto& [buffer, spans] : buffers) {
    closed.insert(closed.end(), spans.begin(), spans.end() - 1);
  }
  return closed;
}

std::vector<Json> suggest(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                          const Workload& workload, const Cluster& cluster) {
  Json base = Json::object();
  const bool sharded = strategy.exchange == Strategy::Exchange::kSharded;
  add_layout(base, workload, cluster);
  if (sharded) base["use-distributed-optimizer"] = true;
  if (strategy.offload != Strategy::Offload::kNone) base[kOffload] = true;
  add_instances(base, strategy, cluster);
  if (sharded && strategy.traits.buckets.pad_elements % kEvenBucketAlign == 0) {
    base["ddp-pad-buckets-for-high-nccl-busbw"] = true;
  }
  if (any_narrow(workload)) {
    base[strategy.fusion.sums_in_fp32() ? "accumulate-allreduce-grads-in-fp32"
                                        : "grad-reduce-in-bf16"] = true;
  }
  if (workload.delayed_scaling || strategy.traits.gather_bytes == 1) base["fp8-format"] = "hybrid";
  if (strategy.traits.gather_bytes == 1) {
    if (!workload.delayed_scaling) base["fp8-recipe"] = "tensorwise";
    base["fp8-param-gather"] = true;
  }
  Json overlapped = base;
  overlapped["overlap-grad-reduce"] = true;
  if (sharded && strategy.cross_step) overlapped["overlap-param-gather"] = true;
  const auto closed = closed_spans(buckets, workload, sharded ? kParameterAlign : 1,
                                   strategy.traits.gather_bytes == 1);
  std::vector<Json> configs{overlapped};
  if (closed.empty() && !strategy.cross_step) {
    // One bucket overlaps nothing; large jobs are given the flag all the same.
    configs.insert(workload.parallel.whole_job() ? configs.end() : configs.begin(), base);
  }
  configs.push_back(overlapped);
  const auto least = std::ranges::min_element(closed);
  configs.back()["ddp-bucket-size"] = least == closed.end() ? kMaxElements : *least;
  return configs;
}

// Returns the patch that sums gradients whole. Keys that need shards go with them.
Json whole_optimizer() {
  Json whole{{"use-distributed-optimizer", false}};
  for (const char* key : {"overlap-param-gather", "num-distributed-optimizer-instances",
                          "fp8-param-gather", "ddp-pad-buckets-for-high-nccl-busbw"}) {
    whole[key] = nullptr;
  }
  return whole;
}

Changes changes(const Json& config, const Cluster& cluster) {
  Changes changes;
  const auto add = [&](ChangeKind kind, const Json& patch) { changes.push_back({kind, patch}); };
  add(ChangeKind::kStreams, {{"overlap-grad-reduce", true}});
  add(ChangeKind::kStreams, {{"overlap-grad-reduce", false}, {"overlap-param-gather", false}});
  if (config.value("use-distributed-optimizer", false)) {
    add(ChangeKind::kStreams, {{"overlap-grad-reduce", true}, {"overlap-param-gather", true}});
    add(ChangeKind::kStreams, {{"overlap-param-gather", false}});
    add(ChangeKind::kAlgorithm, whole_optimizer());
    for (const bool even : {true, false}) {
      add(ChangeKind::kFusion, {{"ddp-pad-buckets-for-high-nccl-busbw", even}});
    }
    add(ChangeKind::kHierarchy, {{"num-distributed-optimizer-instances", nullptr}});
    for (const std::int64_t shards : groups_below(cluster)) {
      add(ChangeKind::kHierarchy,
          {{"num-distributed-optimizer-instances", cluster.ranks() / shards}});
    }
  } else {
    add(ChangeKind::kAlgorithm, {{"use-distributed-optimizer", true}});
    add(ChangeKind::kAlgorithm, {{"use-distributed-optimizer", true},
                                 {"overlap-grad-reduce", true},
                                 {"overlap-param-gather", true}});
  }
  for (const std::int64_t millions : {1, 2, 5, 10, 20, 40, 80, 160, 320}) {
    changes.push_back({ChangeKind::kFusion,
                       {{"overlap-grad-reduce", true}, {"ddp-bucket-size", millions * 1'000'000}}});
  }
  return changes;
}

// Tries every size that makes other buckets, in elements of the widest format.
std::vector<Json> candidates(const Strategy& winner, const Workload& workload,
                             const Cluster& cluster, const Partitions& partitions) {
  return for_each_size(partitions, Fusion::Close::kAfter, [&](Bytes size, Bytes) {
    Json config{{"overlap-grad-reduce", true},
                {"ddp-bucket-size", std::max<std::int64_t>(1, size / size_of(DType::kFp32))}};
    if (any_narrow(workload) && !winner.fusion.sums_in_fp32()) config["grad-reduce-in-bf16"] = true;
    std::vector<Json> configs{config};
    if (winner.exchange == Strategy::Exchange::kSharded) {
      config["use-distributed-optimizer"] = true;
      config["overlap-param-gather"] = winner.cross_step;
      add_instances(config, winner, cluster);
      configs.push_back(std::move(config));
    }
    return configs;
  });
}

// Returns "--overlap-grad-reduce --ddp-bucket-size 40000000". Leaves out flags that are off, and
// quotes values that a shell would split.
std::string flag_line(const Json& config) {
  std::string line;
  for (const auto& [flag, value] : config.items()) {
    if (value == false) continue;
    line += (line.empty() ? "--" : " --") + flag;
    if (value == true) continue;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    line += text.find('|') == std::string::npos ? " " + text : " '" + text + "'";
  }
  return line;
}

}  // namespace

std::span<const LayoutFlag> megatron_layout() { return kLayout; }

std::vector<int> megatron_layers(Reader& flags) {
  const std::string text = flags.text(kLayersFlag);
  try {
    if (text.size() > 4096) throw std::invalid_argument("too long");
    std::size_t at = 0;
    const std::string all = written_out(text, at);
    if (at < text.size()) throw std::invalid_argument("')' without '('");
    std::vector<int> layers(1, 0);
    for (const char letter : all) {
      if (letter == '|') layers.push_back(0);
      if (letter == 't') ++layers.back();
      if (letter == 'm')
        throw std::invalid_argument("layers that predict further are not modelled");
      if (std::string_view("Et|Lm").find(letter) == std::string_view::npos) {
        throw std::invalid_argument(std::string("'") + letter + "' is none of E, t, m, L and |");
      }
    }
    return layers;
  } catch (const std::invalid_argument& error) {
    flags.fail(kLayersFlag, "found '" + text + "': " + error.what());
  }
}

namespace {

// Returns the distributed optimizer and the whole one. A job without settings overlaps.
std::vector<Scheme> optimizers(const Json& config, const Workload&, const Cluster&) {
  const Json overlapped = {{"overlap-grad-reduce", true}, {"overlap-param-gather", true}};
  const Json& own = config.is_object() ? config : overlapped;
  return {{"Megatron, distributed optimizer", "megatron",
           patched_config(own, {{"use-distributed-optimizer", true}})},
          {"Megatron, whole optimizer", "megatron", patched_config(own, whole_optimizer())}};
}

}  // namespace

Dialect megatron_dialect() {
  return {.name = "megatron",
          .summary = "Megatron-Core: ddp-bucket-size, overlap flags, distributed optimizer",
          .read = read,
          .suggest = suggest,
          .changes = changes,
          .defaults = {{"ddp-bucket-size", kMinDefault},
                       {"overlap-grad-reduce", false},
                       {"overlap-param-gather", false},
                       {"use-distributed-optimizer", false}},
          .candidates = candidates,
          .schemes = optimizers,
          .kernels = "megatron",
          // vocab_parallel_cross_entropy of megatron-core 0.16, its storages counted.
          .loss_bytes = 6,
          .cut_loss_bytes = 6,
          .cuts_jobs = true,
          .code = flag_line,
          .group_keys = {"num-distributed-optimizer-instances"}};
}

}  // namespace syncline::dialect
