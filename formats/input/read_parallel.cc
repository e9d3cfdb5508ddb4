// A job that is partitioned further than by data parallelism: its layout, the parts of its model,
// and the time of the collectives inside its layers.
#include "formats/input/read_parallel.h"

#include <algorithm>
#include <array>

#include "catalogue/architectures/architecture.h"
#include "core/collective/library.h"
#include "core/collective/nccl.h"
#include "core/cost.h"
#include "core/plan/fusion.h"

namespace syncline::input {
namespace {

using collective::CollectiveKind;
using collective::Groups;

constexpr int kMaxRanks = 1 << 20;
constexpr const char* kInside = "tp-cp-ep-pp-dp";  // the pipeline's stages are neighbours
constexpr const char* kOutside = "tp-cp-ep-dp-pp";

struct Size {
  const char* key;
  int Parallel::*size;
};
constexpr std::array<Size, 6> kSizes{{{"tensor", &Parallel::tensor},
                                      {"context", &Parallel::context},
                                      {"pipeline", &Parallel::pipeline},
                                      {"virtual_stages", &Parallel::virtual_stages},
                                      {"expert", &Parallel::expert},
                                      {"expert_tensor", &Parallel::expert_tensor}}};

const std::vector<std::pair<std::string, Schedule>>& schedule_words() {
  static const std::vector<std::pair<std::string, Schedule>> words{
      {"gpipe", Schedule::kGpipe},
      {"1f1b", Schedule::k1F1B},
      {"interleaved", Schedule::kInterleaved},
      {"zero_bubble", Schedule::kZeroBubble}};
  return words;
}

std::string word_of(Schedule schedule) {
  const auto& words = schedule_words();
  return std::ranges::find(words, schedule, &std::pair<std::string, Schedule>::second)->first;
}

Schedule usual_schedule(const Parallel& parallel) {
  return parallel.virtual_stages > 1 ? Schedule::kInterleaved : Schedule::k1F1B;
}

// Multiplies in 64 bits: sizes may be mistakes of any magnitude until they are judged.
std::int64_t product(std::int64_t a, std::int64_t b, std::int64_t c = 1) { return a * b * c; }

std::int64_t model_ranks(const Parallel& parallel) {
  return product(parallel.tensor, parallel.context, parallel.pipeline);
}

std::string ranks_text(const Parallel& parallel) {
  return "tensor " + std::to_string(parallel.tensor) + " x context " +
         std::to_string(parallel.context) + " x pipeline " + std::to_string(parallel.pipeline) +
         " is " + std::to_string(model_ranks(parallel)) + " ranks";
}

// Returns the first size with which the product no longer divides the ranks.
const char* undivided_key(const Parallel& parallel, int ranks) {
  if (ranks % parallel.tensor != 0) return "tensor";
  return ranks % product(parallel.tensor, parallel.context) != 0 ? "context" : "pipeline";
}

// Returns true for whole groups on a node, or whole nodes in a group.
bool sits_evenly(int ranks, int gpus) { return gpus % ranks == 0 || ranks % gpus == 0; }

void judge(const Reader& reader, const Parallel& parallel, const Cluster& cluster) {
  const int ranks = cluster.ranks();
  if (ranks % model_ranks(parallel) != 0) {
    reader.fail(
        undivided_key(parallel, ranks),
        ranks_text(parallel) + ", which do not divide the cluster's " + std::to_string(ranks));
  }
  const int stage = ranks / parallel.pipeline;
  if (!sits_evenly(stage, cluster.gpus_per_node) ||
      !sits_evenly(parallel.tensor, cluster.gpus_per_node)) {
    reader.fail("tensor", "stages of " + std::to_string(stage) + " ranks, tensor groups of " +
                              std::to_string(parallel.tensor) +
                              ": expected so many a node, or whole nodes, of " +
                              std::to_string(cluster.gpus_per_node) + " GPUs");
  }
  if (product(parallel.pipeline, parallel.virtual_stages) > kMaxRanks) {
    reader.fail("virtual_stages", "so many a stage of " + std::to_string(parallel.pipeline) +
                                      " are more than any model has layers");
  }
  if (stage % product(parallel.expert, parallel.expert_tensor) != 0) {
    reader.fail("expert", "expert " + std::to_string(parallel.expert) + " x expert_tensor " +
                              std::to_string(parallel.expert_tensor) + " do not divide a stage's " +
                              std::to_string(stage) + " ranks");
  }
  if (parallel.expert_tensor > 1 && !parallel.whole_job()) {
    reader.fail("expert_tensor",
                "is not modelled yet where nothing else is cut: expected expert, tensor, context "
                "or pipeline above 1 too");
  }
  if (parallel.pipeline_inside && (parallel.context > 1 || parallel.expert > 1)) {
    reader.fail("order",
                "tp-cp-ep-pp-dp is possible with tensor and pipeline alone, not context or "
                "expert");
  }
}

Schedule read_schedule(Reader& reader, const Parallel& parallel) {
  std::vector<std::string> words;
  for (const auto& [word, schedule] : schedule_words()) words.push_back(word);
  const std::string given =
      reader.word_or("schedule", word_of(usual_schedule(parallel)), std::move(words));
  const bool interleaved = given == word_of(Schedule::kInterleaved);
  if (interleaved != (parallel.virtual_stages > 1)) {
    reader.fail("schedule", interleaved ? "interleaved needs virtual_stages of 2 or more"
                                        : "virtual_stages need the schedule 'interleaved'");
  }
  return std::ranges::find(schedule_words(), given, &std::pair<std::string, Schedule>::first)
      ->second;
}

// Gives each part of the pipeline its number of layers, by the numbers in the tensors' names.
void spread_as_given(const Reader& reader, Workload& workload) {
  std::vector<int> part_of;  // by layer
  for (std::size_t part = 0; part < workload.parallel.layers.size(); ++part) {
    part_of.insert(part_of.end(), static_cast<std::size_t>(workload.parallel.layers[part]),
                   static_cast<int>(part));
  }
  int last = -1;
  bool reached = false;  // backward order: the head comes first
  for (Tensor& tensor : workload.tensors) {
    const int layer = plan::layer_number(tensor.name);
    reached |= layer >= 0;
    last = std::max(last, layer);
    const bool known = layer >= 0 && layer < static_cast<int>(part_of.size());
    tensor.part = known     ? part_of[static_cast<std::size_t>(layer)]
                  : reached ? 0
                            : workload.parallel.parts() - 1;
  }
  if (last + 1 == static_cast<int>(part_of.size())) return;
  reader.fail("layers", std::to_string(part_of.size()) + " in all, where the model has " +
                            std::to_string(last + 1) + " by the numbers in the tensors' names");
}

// Spreads layers evenly, in the model's order. Tensors ahead of the first layer go with it, those
// after the last likewise. If only that makes it even, each of those two counts as a layer
// (Megatron's account_for_embedding_in_pipeline_split and _loss_).
void spread_layers(const Reader& reader, Workload& workload) {
  const int parts = workload.parallel.parts();
  if (!workload.parallel.layers.empty()) return spread_as_given(reader, workload);
  int layers = 0;
  for (const Tensor& tensor : workload.tensors)
    layers = std::max(layers, plan::layer_number(tensor.name) + 1);
  const bool ends = layers % parts != 0 && (layers + 2) % parts == 0;
  if (layers == 0 || (layers % parts != 0 && !ends)) {
    reader.fail("pipeline", std::to_string(layers) +
                                " layers, by the numbers in the tensors' names, "
                                "in " +
                                std::to_string(parts) +
                                " parts: expected a multiple, or 'part' "
                                "in each tensor");
  }
  const int each = (layers + (ends ? 2 : 0)) / parts;
  bool reached = false;  // backward order: the head comes first
  for (Tensor& tensor : workload.tensors) {
    const int layer = plan::layer_number(tensor.name);
    reached |= layer >= 0;
    tensor.part = layer >= 0 ? (layer + (ends ? 1 : 0)) / each : reached ? 0 : parts - 1;
  }
}

void judge_parts(const Reader& reader, const Workload& workload) {
  const int parts = workload.parallel.parts();
  std::vector<char> filled(static_cast<std::size_t>(parts), 0);
  int last = parts - 1;
  for (const Tensor& tensor : workload.tensors) {
    if (tensor.part < 0 || tensor.part >= parts || tensor.part > last) {
      reader.fail("pipeline", "the part of '" + tensor.name + "' is " +
                                  std::to_string(tensor.part) + ": expected 0 to " +
                                  std::to_string(parts - 1) +
                                  ", falling in the tensors' order, which is backward");
    }
    last = tensor.part;
    filled[static_cast<std::size_t>(tensor.part)] = 1;
  }
  const auto empty = std::ranges::find(filled, 0);
  if (empty != filled.end()) {
    reader.fail("pipeline", "part " + std::to_string(empty - filled.begin()) + " of " +
                                std::to_string(parts) + " has no tensors");
  }
}

// Returns the groups of one axis in the first stage. `stage`: ranks per stage.
Groups groups_of(operators::Inner::Axis axis, const Parallel& parallel, int stage) {
  using Axis = operators::Inner::Axis;
  Groups groups;
  groups.member_step = axis == Axis::kTensor    ? 1
                       : axis == Axis::kContext ? parallel.tensor
                                                : parallel.expert_tensor;
  groups.size = axis == Axis::kTensor    ? parallel.tensor
                : axis == Axis::kContext ? parallel.context
                                         : parallel.expert;
  const int block = groups.member_step * groups.size;
  groups.count = stage / groups.size;
  groups.group_step = groups.member_step == 1 ? block : 1;
  if (groups.member_step > 1) groups.run = groups.member_step;
  if (groups.member_step > 1) groups.run_step = block;
  return groups;
}

// Returns the time of an all-to-all of `bytes` per member. Every rank sends the same, so the port
// with the most traffic for its bandwidth decides.
Seconds all_to_all(const Groups& groups, double bytes, const Cluster& cluster) {
  const double each = bytes / groups.size;
  Seconds longest = 0, latency = 0;
  int unit = 1;
  for (const Tier& tier : cluster.tiers) {
    int outside = 0;  // members beyond the first one's port of this tier
    for (int m = 1; m < groups.size; ++m) {
      outside += groups.rank(0, m) / unit != groups.rank(0, 0) / unit ? 1 : 0;
    }
    longest = std::max(longest, each * outside * unit / tier.bandwidth);
    if (outside > 0) latency = std::max(latency, tier.latency);
    unit = tier.span;
  }
  return latency + longest;
}

// Returns the time of one inner collective alone on its links, all groups of a stage at once.
Seconds seconds_of(const operators::Inner& inner, const Groups& groups, const Cluster& cluster,
                   collective::CostCache& cache) {
  using Form = operators::Inner::Form;
  if (inner.form == Form::kAllToAll) {
    return cluster.collective_overhead +
           all_to_all(groups, static_cast<double>(inner.bytes), cluster);
  }
  collective::Collective one;
  one.groups = groups;
  one.unit = 1;
  one.elements = inner.bytes;
  one.kind = inner.form == Form::kAllReduce       ? CollectiveKind::kAllReduce
             : inner.form == Form::kReduceScatter ? CollectiveKind::kReduceScatter
                                                  : CollectiveKind::kAllGather;
  // A turn of a ring hands on each member's part of a gather.
  if (inner.form == Form::kRing) one.elements *= groups.size;
  collective::choose_algorithm(one, collective::library_algorithm(cluster), cluster);
  return cache.time(one);
}

// Adds a micro-batch's wait for inner collectives, all layers together: tensor parallelism in full,
// rings as far as the attention during each turn does not hide them.
void evaluate_inner(const std::vector<operators::Inner>& list, const Cluster& cluster,
                    Workload& workload) {
  using Axis = operators::Inner::Axis;
  Parallel& parallel = workload.parallel;
  collective::CostCache cache(cluster);
  for (const operators::Inner& inner : list) {
    const Groups groups = groups_of(inner.axis, parallel, cluster.ranks() / parallel.pipeline);
    const Seconds once = seconds_of(inner, groups, cluster, cache);
    const double rate = cluster.device.product_flops(DType::kBf16);
    const Seconds beside = rate > 0 ? inner.hidden_flops / rate : 0;
    const auto add = [&](Parallel::Exposed& exposed, std::int64_t count, Seconds hidden) {
      const Seconds all = static_cast<double>(count) * std::max(0.0, once - hidden);
      (inner.axis == Axis::kTensor    ? exposed.tensor
       : inner.axis == Axis::kContext ? exposed.context
                                      : exposed.expert) += all;
    };
    add(parallel.forward, inner.forward, beside);
    add(parallel.backward, inner.backward, beside);
  }
}

}  // namespace

Parallel read_parallel(Reader reader, const Cluster& cluster) {
  Parallel parallel;
  for (const auto& [key, size] : kSizes) {
    parallel.*size = static_cast<int>(reader.integer_or(key, 1, 1, kMaxRanks));
  }
  parallel.sequence = reader.boolean_or("sequence", false);
  parallel.pipeline_inside = reader.word_or("order", kOutside, {kOutside, kInside}) == kInside;
  if (parallel.pipeline == 1 && parallel.virtual_stages > 1) {
    reader.fail("virtual_stages", "needs a pipeline of 2 or more");
  }
  parallel.schedule = read_schedule(reader, parallel);
  if (reader.has("layers")) {
    for (const Json& layers : reader.array("layers")) {
      parallel.layers.push_back(static_cast<int>(
          checked_integer(layers, 0, kMaxRanks, reader.file(), reader.place_of("layers"))));
    }
    if (static_cast<int>(parallel.layers.size()) != parallel.parts()) {
      reader.fail("layers", std::to_string(parallel.layers.size()) + " numbers for " +
                                std::to_string(parallel.parts()) +
                                " parts, pipeline x virtual_stages");
    }
  }
  parallel.overlap_sends =
      reader.boolean_or("overlap_sends", parallel.schedule == Schedule::kInterleaved);
  parallel.overlap_tensor = reader.boolean_or("overlap_tensor", false);
  if (parallel.overlap_tensor && !parallel.sequence) {
    reader.fail("overlap_tensor", "needs \"sequence\": true, whose gathers and sums it hides");
  }
  parallel.context_all_to_all =
      reader.word_or("context_exchange", "ring", {"ring", "all_to_all"}) == "all_to_all";
  parallel.overlap_expert = reader.boolean_or("overlap_expert", false);
  parallel.activation = reader.integer_or("activation_bytes", 0, 0, std::int64_t{1} << 40);
  parallel.tied = reader.integer_or("tied_bytes", 0, 0, std::int64_t{1} << 40);
  judge(reader, parallel, cluster);
  reader.finish();
  return parallel;
}

Json parallel_json(const Parallel& parallel) {
  Json json = Json::object();
  for (const auto& [key, size] : kSizes) {
    if (parallel.*size != 1) json[key] = parallel.*size;
  }
  if (parallel.sequence) json["sequence"] = true;
  if (parallel.pipeline_inside) json["order"] = kInside;
  if (!parallel.layers.empty()) json["layers"] = parallel.layers;
  if (parallel.schedule != usual_schedule(parallel)) json["schedule"] = word_of(parallel.schedule);
  if (parallel.overlap_sends != (parallel.schedule == Schedule::kInterleaved)) {
    json["overlap_sends"] = parallel.overlap_sends;
  }
  if (parallel.overlap_tensor) json["overlap_tensor"] = true;
  if (parallel.overlap_expert) json["overlap_expert"] = true;
  if (parallel.context_all_to_all) json["context_exchange"] = "all_to_all";
  if (parallel.activation > 0) json["activation_bytes"] = parallel.activation;
  if (parallel.tied > 0) json["tied_bytes"] = parallel.tied;
  return json;
}

void cut_workload(const Reader& reader, bool parts_given, const operators::Generated* generated,
                  const Cluster& cluster, Workload& workload) {
  Parallel& parallel = workload.parallel;
  if (parallel.pipeline > 1 && !parts_given) spread_layers(reader, workload);
  judge_parts(reader, workload);
  if (generated == nullptr) return;
  const Json& given = reader.json().at("parallel");
  if (!given.contains("activation_bytes")) parallel.activation = generated->activation;
  if (!given.contains("tied_bytes")) parallel.tied = generated->tied;
  if (workload.times_given) return;  // measured on this layout: its collectives are in them
  evaluate_inner(generated->inner, cluster, workload);
  const auto sum = [](const Parallel::Exposed& exposed) {
    return exposed.tensor + exposed.context + exposed.expert;
  };
  if (workload.recompute == Workload::Recompute::kProducts) {
    // Attention and sums across ranks are kept, so half of a tensor group's collectives return.
    parallel.backward.tensor += parallel.forward.tensor / 2;
    parallel.backward.expert += parallel.forward.expert;
  }
  if (workload.recompute == Workload::Recompute::kFull) {
    const double again = 1.0 / workload.recompute_every;
    parallel.backward.tensor += again * parallel.forward.tensor;
    parallel.backward.context += again * parallel.forward.context;
    parallel.backward.expert += again * parallel.forward.expert;
  }
  const Seconds backward = backward_time(workload);
  const double longer = backward > 0 ? 1 + sum(parallel.backward) / backward : 1;
  workload.forward += sum(parallel.forward);
  for (Tensor& tensor : workload.tensors) tensor.backward *= longer;
}

}  // namespace syncline::input
