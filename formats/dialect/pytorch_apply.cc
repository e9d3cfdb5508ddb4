#include "formats/dialect/pytorch_apply.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/algorithm.h"
#include "core/codec.h"
#include "core/collective/library.h"
#include "core/collective/nccl.h"
#include "core/communication.h"
#include "core/plan.h"
#include "formats/json/json.h"

namespace syncline::dialect {
namespace {

bool sends_blocks(const Strategy& strategy) {
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  return codec != nullptr && codec->block > 1;
}

std::string exchange_refusal(const Strategy& strategy) {
  if (strategy.exchange == Strategy::Exchange::kDecoupled) return "its all-reduces are split";
  if (strategy.exchange == Strategy::Exchange::kSharded) return "it shards the parameters";
  if (strategy.cross_step) return "its collectives reach into the next step";
  if (strategy.priority == Strategy::Priority::kLayer) return "it sends the first layers first";
  if (strategy.partition > 0) return "it cuts gradients into parts";
  if (strategy.fusion.cycle > 0) return "it releases gradients at ticks";
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  if (codec != nullptr && codec->low_rank && strategy.hierarchy.form != Hierarchy::Form::kFlat) {
    return "torch's powerSGD_hook, which sums the factors, knows no levels";
  }
  if (codec != nullptr && codec->whole_bucket) {
    return "its factors are of whole buckets, for which DistributedDataParallel has "
           "batched_powerSGD_hook";
  }
  if (sends_blocks(strategy) && strategy.hierarchy.form != Hierarchy::Form::kFlat) {
    return "it sums blocks with scales in two levels, torch sends them all to all";
  }
  const LocalSgd& local = strategy.local_sgd;
  if (codec != nullptr && local.enabled && !local.outer.any()) return "it rounds what it averages";
  if (local.outer.any() && strategy.hierarchy.form != Hierarchy::Form::kFlat) {
    return "its groups sum gradients in two levels";
  }
  if (strategy.graph_segments.size() > 1) {
    return "torch.compile cuts its graph for DistributedDataParallel alone";
  }
  if (strategy.fusion.sums_in_fp32()) return "it casts gradients to fp32 for the wire";
  if (strategy.fusion.sums_in_half()) return "it sums gradients in a half format without a hook";
  return {};
}

std::string averaging_refusal(const LocalSgd& local) {
  if (!local.enabled) return {};
  if (local.outer.any()) {
    return local.adaptive || local.warmup_gradients
               ? "its outer steps follow the loss, or gradients before them"
               : "";
  }
  if (local.fragments > 1 || local.delay > 0) {
    return "it averages by fragments without an outer step (optimizer sgd at rate 1 is the mean)";
  }
  if (local.subgroup > 1 || local.warmup_gradients) {
    return "it sums gradients besides the averaging, which DistributedDataParallel's "
           "post_localSGD_hook does";
  }
  return {};
}

// Returns a value as Python: its JSON, except true, false and null.
std::string literal(const Json& value) {
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [key, item] : value.items()) {
    if (!text.empty()) text += ", ";
    text += (value.is_object() ? Json(key).dump() + ": " : "") + literal(item);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

// Returns a list of entries, one per line.
std::string entries(const std::vector<Json>& list) {
  std::string text = "[\n";
  for (const Json& entry : list) text += "        " + literal(entry) + ",\n";
  return text + "    ]";
}

std::vector<Json> named_sizes(const std::vector<Tensor>& tensors) {
  std::vector<Json> list;
  for (const Tensor& tensor : tensors) list.push_back({tensor.name, tensor.elements});
  return list;
}

Json entry_of(const plan::Bucket& bucket) {
  Json entry{{"places", bucket.tensors}};
  // torch's hook itself finds the matrices to compress.
  const bool own = bucket.codec != nullptr && !bucket.codec->low_rank;
  if (own) entry["codec"] = std::string(bucket.codec->name);
  return entry;
}

// Returns entries for buckets, or for objects with one bucket each.
template <typename List, typename Bucket = std::identity>
std::vector<Json> entries_of(const List& list, Bucket bucket = {}) {
  std::vector<Json> all;
  for (const auto& each : list) all.push_back(entry_of(std::invoke(bucket, each)));
  return all;
}

// Returns the averaged buckets, each with its fragment.
std::vector<Json> fragments_of(const std::vector<std::vector<plan::BucketExchange>>& fragments) {
  std::vector<Json> list;
  for (std::size_t f = 0; f < fragments.size(); ++f) {
    for (const plan::BucketExchange& exchange : fragments[f]) {
      list.push_back(entry_of(exchange.bucket));
      list.back()["fragment"] = f;
    }
  }
  return list;
}

Json outer_of(const Outer& outer) {
  Json json{{"optimizer", "sgd"}, {"rate", outer.rate}};
  if (outer.optimizer == Outer::Optimizer::kNesterov) {
    json["optimizer"] = "nesterov";
    json["momentum"] = outer.momentum;
  }
  if (outer.mix > 0) json["mix"] = outer.mix;
  return json;
}

Json periods_of(const LocalSgd& local) {
  if (local.outer.any()) {
    Json periods{{"period", local.period},
                 {"begin_step", local.begin_step},
                 {"delay", local.delay},
                 {"group", local.subgroup},
                 {"outer", outer_of(local.outer)}};
    if (!local.periods.empty()) periods["periods"] = local.periods;
    return periods;
  }
  if (!local.adaptive) return {{"period", local.period}, {"begin_step", local.begin_step}};
  return {{"adaptive", 1},
          {"init_period", local.init_period},
          {"max_period", local.max_period},
          {"begin_step", local.begin_step}};
}

Json levels_of(const Hierarchy& hierarchy) {
  const bool leaders = hierarchy.form == Hierarchy::Form::kLeaders;
  Json levels{{"form", leaders ? "leaders" : "sharded"}, {"group_size", hierarchy.group_size}};
  if (leaders && hierarchy.first_all_reduce) levels["first_all_reduce"] = 1;
  return levels;
}

}  // namespace

std::string torch_refusal(const std::string& codec, const Workload& workload,
                          const Cluster& cluster, const TorchVersion& torch) {
  bool bf16 = codec == "bf16";
  for (const Tensor& tensor : workload.tensors) {
    bf16 |= codec != "fp16" && tensor.dtype == DType::kBf16;
    if (codec == "powersgd" && tensor.shape.empty()) {
      return "powerSGD_hook asks for the first dimension of " + tensor.name +
             ", which has none (IndexError)";
    }
  }
  if (bf16 && cluster.library == Library::kGloo && torch < kGlooBf16) {
    return "Gloo of torch " + std::to_string(torch.major) + "." + std::to_string(torch.minor) +
           " sums no bf16 (RuntimeError: Invalid scalar type)";
  }
  return {};
}

bool dgc_lacks_momentum(const Workload& workload) {
  constexpr int kAdam = 2;  // values that it keeps for each parameter
  return workload.optimizer_given && workload.optimizer_states == kAdam;
}

std::string apply_refusal(const Strategy& strategy, const Workload& workload,
                          const Cluster& cluster) {
  if (cluster.ranks() == 1) return "there is one rank, which has nothing to communicate";
  if (workload.parallel.whole_job()) {
    return "the job is cut by more than data parallelism, and each part wraps itself";
  }
  const auto known = collective::library_algorithms(cluster);
  for (const auto& name :
       {strategy.algorithm, strategy.hierarchy.inside, strategy.hierarchy.across}) {
    const bool runs = name.empty() || sends_blocks(strategy) ||
                      std::find(known.begin(), known.end(), name) != known.end();
    if (!runs) return "the cluster's library runs no " + name;
  }
  for (const Tensor& tensor : workload.tensors) {
    if (tensor.sparse) return "the gradient of " + tensor.name + " is sparse";
    if (tensor.frozen) {
      return tensor.name +
             " is frozen, and the hook knows gradients alone: take frozen parameters " +
             "out of workload.tensors";
    }
  }
  if (strategy.compression.codec == "dgc" && dgc_lacks_momentum(workload)) {
    return "DGC corrects the momentum of SGD, and the job trains by Adam";
  }
  if (strategy.compression.codec == "powersgd" && strategy.overlap &&
      cluster.library == Library::kNccl) {
    return "torch's powerSGD_hook waits for the device at each bucket, so nothing "
           "overlaps; set \"overlap\": false";
  }
  const std::string failure =
      torch_refusal(strategy.compression.codec, workload, cluster, torch_of(workload));
  if (!failure.empty()) return failure;
  const std::string exchange = exchange_refusal(strategy);
  return exchange.empty() ? averaging_refusal(strategy.local_sgd) : exchange;
}

std::string apply_line(const std::string& row) {
  const char* quote = row.find('\'') == std::string::npos ? "'" : "\"";
  return "model = apply(model, optimizer), from the file of --emit pytorch --python apply.py "
         "--take " +
         (quote + row + quote);
}

Strategy with_whole_graph(Strategy strategy) {
  if (strategy.graph_segments.size() > 1)
    strategy.graph_segments = {strategy.graph_segments.back()};
  return strategy;
}

Strategy as_applied(const Strategy& strategy) {
  Strategy applied = strategy;
  applied.fusion.align = 1;
  applied.bucket_copies = false;
  applied.host_sync = false;
  applied.update = Strategy::Update::kAfterAll;
  applied.compute_fusion = {};
  // No library sums blocks: the file uses all-to-all, as NCCL's strategies do.
  if (sends_blocks(strategy) && strategy.algorithm != collective::kNcclName) {
    applied.algorithm = collective::all_to_all()->name;
  }
  return applied;
}

std::string apply_table(const Strategy& strategy, const Workload& workload,
                        const Cluster& cluster) {
  const Strategy applied = as_applied(strategy);
  const LocalSgd& local = strategy.local_sgd;
  const Compression& compression = strategy.compression;
  std::string text = "{\n";
  const auto add = [&](const char* key, const std::string& value) {
    text += "    \"" + std::string(key) + "\": " + value + ",\n";
  };
  add("name", Json(strategy.name).dump());
  add("ranks", std::to_string(cluster.ranks()));
  add("streams", std::to_string(strategy.overlap ? strategy.streams : 1));
  if (!strategy.overlap) add("overlap", "0");
  if (!strategy.traits.broadcast_buffers) add("broadcast_buffers", "0");
  if (strategy.hierarchy.form != Hierarchy::Form::kFlat) {
    add("hierarchy", literal(levels_of(strategy.hierarchy)));
  }
  if (compression.codec == "dgc" && !local.enabled) {
    add("dgc", literal(Json{{"sparsity", compression.sparsity},
                            {"rampup_begin_step", compression.rampup_begin_step},
                            {"rampup_step", compression.rampup_step}}));
  }
  if (compression.codec == "powersgd") {
    add("powersgd", literal(Json{{"matrix_approximation_rank", compression.rank},
                                 {"start_powerSGD_iter",
                                  std::max<std::int64_t>(2, compression.rampup_begin_step)},
                                 {"min_compression_rate", compression.min_rate}}));
  }
  if (local.enabled) {
    add("local_sgd", literal(periods_of(local)));
    const bool buffers = !workload.buffers.empty() && !local.outer.any();
    if (buffers) add("buffers", entries(named_sizes(workload.buffers)));
  }
  add("gradients", entries(named_sizes(workload.tensors)));
  if (local.outer.any()) {
    add("buckets",
        entries(entries_of(plan::local_communication(workload, cluster, applied).gradients,
                           &plan::BucketExchange::bucket)));
    add("averaged", entries(fragments_of(plan::averaged_parameters(workload, cluster, applied))));
  } else {
    add("buckets", entries(entries_of(plan::exchange_plan(workload, cluster, applied).buckets)));
  }
  return text + "}";
}

}  // namespace syncline::dialect
