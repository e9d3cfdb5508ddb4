#include "core/dialect/paddle_training.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/compress/codec.h"
#include "core/compress/dgc.h"
#include "core/json/reader.h"

namespace syncline::dialect {
namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostPeriod = std::int64_t{1} << 20;

// DGCMomentumOptimizer._is_use_dgc: smaller tensors stay dense.
constexpr std::int64_t kMinElements = 16384;
// The library samples min(32, k / 2) candidates a block and divides by their number.
constexpr std::int64_t kLeastKept = 2;
// Kernels on the compute stream a tensor: three of momentum and residual, ten of selection, mask
// and encoding, one that clears the gradient.
constexpr std::int64_t kEncodeLaunches = 14;

double checked_sparsity(Reader& configs, const Json& value, const std::string& place) {
  const double sparsity = checked_number(value, {-1e9, 1e9}, configs.file(), place);
  const float ratio = 1.0F - static_cast<float>(sparsity);
  const auto fail = [&](const char* rule) {
    configs.fail("sparsity", "found " + describe(value) + ": DGC sparsity ratio must " + rule +
                                 " (the ratio is 1 - sparsity, the share that is sent)");
  };
  if (ratio < 0) fail(">= 0");
  if (ratio >= 1) fail("< 1");
  return sparsity;
}

Compression read_dgc(Reader configs, const Workload& workload, const Cluster& cluster) {
  Compression dgc;
  dgc.codec = "dgc";
  dgc.min_elements = kMinElements;
  dgc.encode_launches = kEncodeLaunches;
  // Each rank's pairs are added by a kernel of its own, then the sum is scaled.
  dgc.decode_launches = cluster.ranks() + 1;
  dgc.rampup_begin_step = configs.integer_or("rampup_begin_step", 0, 0, kInt32Max);
  dgc.rampup_step = configs.integer_or("rampup_step", 1, 1, kInt32Max);
  const Json none = Json::array();
  if (const Json* one = configs.find("sparsity"); one != nullptr && one->is_number()) {
    const double found = one->get<double>();
    configs.fail("sparsity", "found " + describe(*one) +
                                 ", expected a list of shares below 1, such as [" +
                                 describe(found > 1 && found < 100 ? found / 100 : found) + "]");
  }
  const Json& ramp = configs.has("sparsity") ? configs.array("sparsity") : none;
  configs.finish();
  if (ramp.empty()) return dgc;  // [0.999]

  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const auto& tensor : workload.tensors) {
    if (compress::find_codec("dgc")->applies(tensor, kMinElements)) {
      least = std::min(least, tensor.elements);
    }
  }
  dgc.sparsity.clear();
  for (std::size_t i = 0; i < ramp.size(); ++i) {
    const std::string place = configs.place_of("sparsity") + "[" + std::to_string(i) + "]";
    const double sparsity = checked_sparsity(configs, ramp[i], place);
    if (sparsity == 1 || compress::kept_elements(least, sparsity) < kLeastKept) {
      configs.fail("sparsity", "found " + describe(ramp[i]) +
                                   ": k_select needs k >= 2 elements of each gradient, of the "
                                   "smallest one fewer would be sent");
    }
    dgc.sparsity.push_back(sparsity);
  }
  return dgc;
}

LocalSgd read_local_sgd(Reader configs, bool adaptive) {
  LocalSgd local;
  local.enabled = true;
  local.adaptive = adaptive;
  if (adaptive) {
    local.init_period = configs.integer_or("init_k_steps", 1, 1, kMostPeriod);
  } else {
    local.period = configs.integer_or("k_steps", 1, 1, kMostPeriod);
  }
  local.begin_step = configs.integer_or("begin_step", 1, 1, kInt32Max);
  configs.finish();
  return local;
}

void note_dgc(const Workload& workload, const Compression& dgc, std::vector<std::string>& notes) {
  const auto sent =
      std::count_if(workload.tensors.begin(), workload.tensors.end(), [&](const Tensor& tensor) {
        return compress::find_codec("dgc")->applies(tensor, dgc.min_elements);
      });
  const auto all = static_cast<std::ptrdiff_t>(workload.tensors.size());
  notes.push_back(
      "dgc switches fuse_all_reduce_ops off for the whole program: " + std::to_string(sent) +
      " gradients are compressed, " + std::to_string(all - sent) +
      " (below 16384 elements, sparse, or not FP32) stay dense, each travels alone");
}

// Protobuf's own words for a number that its field cannot hold.
constexpr const char* kOutOfRange = ": Value out of range, expected an int32";

bool in_int32(double value) {
  return std::isfinite(value) && value >= std::numeric_limits<std::int32_t>::min() &&
         value <= std::numeric_limits<std::int32_t>::max();
}

constexpr const char* kKey = "hierarchical_allreduce_inter_nranks";

std::string number(std::int64_t value) { return std::to_string(value); }

// The documents take hierarchical_allreduce_inter_nranks for the number of leaders (here one a node
// unless given) and all-reduce inside the groups first.
Hierarchy documented_hierarchy(Reader& config, std::int64_t inter, const Cluster& cluster) {
  const int ranks = cluster.ranks();
  const std::int64_t leaders = config.has(kKey) ? inter : cluster.nodes;
  if (leaders < 1 || ranks % leaders != 0) {
    config.fail(kKey, "found " + number(leaders) + ", expected a divisor of the " + number(ranks) +
                          " workers: as the documents read it, the number of leaders");
  }
  Hierarchy hierarchy;
  hierarchy.form = Hierarchy::Form::kLeaders;
  hierarchy.group_size = ranks / static_cast<int>(leaders);
  hierarchy.first_all_reduce = true;
  return hierarchy;
}

// parallel_executor.cc, InitOrGetNCCLCommunicator and nccl_op_handle.h: reduce to the first rank of
// each group, all-reduce among those, broadcast.
Hierarchy hierarchy_of(Reader& config, std::int64_t inter, const Cluster& cluster,
                       std::vector<std::string>& notes) {
  const int ranks = cluster.ranks();
  if (inter <= 1) {
    config.fail(kKey, "The inter_nranks should be greater than 1, but received " + number(inter) +
                          (config.has(kKey) ? "" : ", its default") +
                          " (ranks a group; the nodes have " + number(cluster.gpus_per_node) + ")");
  }
  if (ranks % inter != 0) {
    config.fail(kKey, "num_trainers:" + number(ranks) + " mod inter_nranks:" + number(inter) +
                          " != 0, expected a divisor of the number of workers");
  }
  if (inter * inter != ranks) {
    notes.push_back(std::string(kKey) + " = " + number(inter) +
                    " is the number of ranks a group, " + number(ranks / inter) +
                    (ranks == inter ? " group" : " groups") +
                    "; the documents take it for the number of leaders");
  }
  notes.push_back(
      "hierarchical all-reduce begins with a reduce to each group's leader; the documents tell of "
      "an all-reduce inside the group");
  notes.push_back(
      "Fleet 2.0 and 2.1 hand the group size to gen_nccl_id under a misspelt name and may stop "
      "with 'inter_nranks -1 <= 1 while in hierarchical allreduce mode'");
  Hierarchy hierarchy;
  hierarchy.form = Hierarchy::Form::kLeaders;
  hierarchy.group_size = static_cast<int>(inter);
  return hierarchy;
}

}  // namespace

PaddleTraining read_paddle_training(Reader& config, const Workload& workload,
                                    const Cluster& cluster, std::vector<std::string>& notes) {
  PaddleSetters set(config, notes);
  const bool dgc = set.flag("dgc", false);
  const bool fixed = set.flag("localsgd", false);
  const bool adaptive = set.flag("adaptive_localsgd", false);
  if (fixed && adaptive) {
    config.fail("adaptive_localsgd",
                "cannot be combined with localsgd: LocalSGDOptimizer and "
                "AdaptiveLocalSGDOptimizer are in each other's meta_optimizers_black_list");
  }
  if (dgc && (fixed || adaptive)) {
    config.fail(fixed ? "localsgd" : "adaptive_localsgd",
                "cannot be combined with dgc: the meta optimizer of neither has the other's in "
                "its meta_optimizers_white_list");
  }

  // Mixed precision is in the workload's dtypes, where the gradients' sizes and times are.
  if (set.flag("amp", false)) {
    notes.push_back(
        "amp switches nothing here: gradients travel in the dtypes that the workload gives them");
  }
  if (config.has("amp_configs")) config.object("amp_configs");

  // Configs are judged even where the switch beside them is off.
  const Json none = Json::object();
  const auto configs = [&](const char* key, bool on) {
    if (!config.has(key)) return Reader(none, config.file(), config.place_of(key));
    if (!on) notes.push_back(std::string(key) + " has no effect: its switch is off");
    return config.object(key);
  };
  const Compression compression = read_dgc(configs("dgc_configs", dgc), workload, cluster);
  const LocalSgd every_k = read_local_sgd(configs("localsgd_configs", fixed), false);
  const LocalSgd by_loss = read_local_sgd(configs("adaptive_localsgd_configs", adaptive), true);

  if (cluster.ranks() <= 1) {
    if (dgc) notes.push_back("dgc needs more than one worker: it is off");
    if (fixed || adaptive) notes.push_back("LocalSGD needs more than one worker: it is off");
    return {};
  }
  PaddleTraining training;
  if (dgc) {
    training.compression = compression;
    note_dgc(workload, compression, notes);
  }
  if (fixed || adaptive) {
    training.local_sgd = fixed ? every_k : by_loss;
    notes.push_back("LocalSGD sums " +
                    std::to_string(workload.tensors.size() + workload.buffers.size()) +
                    " tensors, batch-norm statistics among them, one by one on 2 rings: nothing "
                    "is fused");
  }
  if (adaptive && by_loss.init_period > 1) {
    notes.push_back("init_k_steps = " + std::to_string(by_loss.init_period) +
                    " stands inside the square root: the period begins at ceil(sqrt(" +
                    std::to_string(by_loss.init_period) + "))");
  }
  return training;
}

bool PaddleSetters::flag(std::string_view key, bool before) {
  const Json* value = config_.find(key);
  if (value == nullptr) return before;
  if (value->is_boolean()) return value->get<bool>();
  ignored(key, *value, "bool", before);
  return before;
}

std::int64_t PaddleSetters::integer(std::string_view key, std::int64_t before) {
  const Json* value = config_.find(key);
  if (value == nullptr) return before;
  if (value->is_boolean()) return value->get<bool>() ? 1 : 0;
  if (!value->is_number_integer()) {
    ignored(key, *value, "int", before);
    return before;
  }
  if (!in_int32(value->get<double>())) config_.fail(key, "found " + describe(*value) + kOutOfRange);
  return value->get<std::int64_t>();
}

double PaddleSetters::real(std::string_view key, double before) {
  const Json* value = config_.find(key);
  if (value == nullptr) return before;
  if (!value->is_number_float()) {
    ignored(key, *value, "float", before);
    return before;
  }
  if (!in_int32(value->get<double>())) config_.fail(key, "found " + describe(*value) + kOutOfRange);
  return value->get<double>();
}

void PaddleSetters::ignored(std::string_view key, const Json& value, const char* type,
                            const Json& kept) {
  notes_.push_back(std::string(key) + " should have value of " + type + " type: " +
                   describe(value) + " is ignored with a warning, " + kept.dump() + " stays");
}

Hierarchy read_paddle_hierarchy(Reader& config, std::int64_t inter, const Cluster& cluster,
                                bool as_documents, std::vector<std::string>& notes) {
  return as_documents ? documented_hierarchy(config, inter, cluster)
                      : hierarchy_of(config, inter, cluster, notes);
}

}  // namespace syncline::dialect
