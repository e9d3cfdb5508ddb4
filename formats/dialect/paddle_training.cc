#include "formats/dialect/paddle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/codec.h"
#include "core/compress/dgc.h"
#include "formats/json/reader.h"

namespace syncline::dialect {
namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxPeriod = std::int64_t{1} << 20;

// DGCMomentumOptimizer._is_use_dgc: smaller tensors stay dense.
constexpr std::int64_t kMinElements = 16384;
// The library samples min(32, k / 2) candidates per block and divides by their number.
constexpr std::int64_t kMinKept = 2;
// Kernels on the compute stream per tensor: three of momentum and residual, ten of selection, mask
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
  // One kernel per rank adds its pairs, then the sum is scaled.
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
    if (sparsity == 1 || compress::kept_elements(least, sparsity) < kMinKept) {
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
    local.init_period = configs.integer_or("init_k_steps", 1, 1, kMaxPeriod);
  } else {
    local.period = configs.integer_or("k_steps", 1, 1, kMaxPeriod);
  }
  local.begin_step = configs.integer_or("begin_step", 1, 1, kInt32Max);
  configs.finish();
  return local;
}

void note_dgc(const Workload& workload, const Compression& dgc, std::vector<std::string>& notes) {
  const auto sent =
      std::count_if(workload.tensors.begin(), workload.tensors.end(), [&](const Tensor& tensor) {
        return !tensor.frozen && compress::find_codec("dgc")->applies(tensor, dgc.min_elements);
      });
  const auto all = std::ranges::count(workload.tensors, false, &Tensor::frozen);
  notes.push_back(
      "dgc switches fuse_all_reduce_ops off for the whole program: " + std::to_string(sent) +
      " gradients are compressed, " + std::to_string(all - sent) +
      " (below 16384 elements, sparse, or not FP32) stay dense, each travels alone");
}

// Protobuf's message for a number that its field cannot hold.
constexpr const char* kOutOfRange = ": Value out of range, expected an int32";

bool in_int32(double value) {
  return std::isfinite(value) && value >= std::numeric_limits<std::int32_t>::min() &&
         value <= std::numeric_limits<std::int32_t>::max();
}

void ignore(std::string_view key, const Json& value, const char* type, const Json& kept,
            std::vector<std::string>& notes) {
  notes.push_back(std::string(key) + " should have value of " + type + " type: " + describe(value) +
                  " is ignored with a warning, " + kept.dump() + " stays");
}

void check_range(const Reader& config, std::string_view key, const Json& value) {
  if (!in_int32(value.get<double>())) config.fail(key, "found " + describe(value) + kOutOfRange);
}

}  // namespace

void read_paddle_training(Reader& config, const Workload& workload, const Cluster& cluster,
                          Reading& reading) {
  std::vector<std::string>& notes = reading.notes;
  const bool dgc = paddle_flag(config, "dgc", false, notes);
  const bool fixed = paddle_flag(config, "localsgd", false, notes);
  const bool adaptive = paddle_flag(config, "adaptive_localsgd", false, notes);
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

  // The workload's dtypes express mixed precision, as do its gradients' sizes and times.
  const bool amp = paddle_flag(config, "amp", false, notes);
  note(notes, {{amp,
                "amp switches nothing here: gradients travel in the dtypes that the workload gives "
                "them"}});
  if (config.has("amp_configs")) config.object("amp_configs");

  // Configs are checked even if their switch is off.
  const auto configs = [&](const char* key, bool on) {
    note(notes, {{config.has(key) && !on, std::string(key) + " has no effect: its switch is off"}});
    return object_or_empty(config, key);
  };
  const Compression compression = read_dgc(configs("dgc_configs", dgc), workload, cluster);
  const LocalSgd every_k = read_local_sgd(configs("localsgd_configs", fixed), false);
  const LocalSgd by_loss = read_local_sgd(configs("adaptive_localsgd_configs", adaptive), true);

  const bool local = fixed || adaptive;
  if (cluster.ranks() <= 1) {
    note(notes, {{dgc, "dgc needs more than one worker: it is off"},
                 {local, "LocalSGD needs more than one worker: it is off"}});
    return;
  }
  if (dgc) {
    reading.strategy.compression = compression;
    note_dgc(workload, compression, notes);
  }
  if (local) reading.strategy.local_sgd = fixed ? every_k : by_loss;
  const std::string period = std::to_string(by_loss.init_period);
  note(notes,
       {{local, "LocalSGD sums " +
                    std::to_string(workload.tensors.size() + workload.buffers.size()) +
                    " tensors, batch-norm statistics among them, one by one on 2 rings: nothing is "
                    "fused"},
        {adaptive && by_loss.init_period > 1,
         "init_k_steps = " + period +
             " stands inside the square root: the period begins at ceil(sqrt(" + period + "))"}});
}

bool paddle_flag(Reader& config, std::string_view key, bool before,
                 std::vector<std::string>& notes) {
  const Json* value = config.find(key);
  if (value == nullptr) return before;
  if (value->is_boolean()) return value->get<bool>();
  ignore(key, *value, "bool", before, notes);
  return before;
}

std::int64_t paddle_integer(Reader& config, std::string_view key, std::int64_t before,
                            std::vector<std::string>& notes) {
  const Json* value = config.find(key);
  if (value == nullptr) return before;
  if (value->is_boolean()) return value->get<bool>() ? 1 : 0;
  if (!value->is_number_integer()) {
    ignore(key, *value, "int", before, notes);
    return before;
  }
  check_range(config, key, *value);
  return value->get<std::int64_t>();
}

double paddle_real(Reader& config, std::string_view key, double before,
                   std::vector<std::string>& notes) {
  const Json* value = config.find(key);
  if (value == nullptr) return before;
  if (!value->is_number_float()) {
    ignore(key, *value, "float", before, notes);
    return before;
  }
  check_range(config, key, *value);
  return value->get<double>();
}

}  // namespace syncline::dialect
