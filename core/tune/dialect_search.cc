#include "core/tune/dialect_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/dialect/write.h"
#include "core/json/reader.h"
#include "core/measure/study.h"
#include "core/plan/planner.h"
#include "core/tune/arm.h"
#include "core/tune/rules.h"
#include "core/tune/thresholds.h"

namespace syncline {
namespace {

struct Gradients {
  std::vector<const Tensor*> tensors;
  std::vector<int> candidates;
};

Gradients gradients_of(const Workload& workload) {
  Gradients gradients;
  for (const auto& tensor : workload.tensors) {
    gradients.candidates.push_back(static_cast<int>(gradients.tensors.size()));
    gradients.tensors.push_back(&tensor);
  }
  return gradients;
}

double in_mebibytes(Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); }

// The number of mebibytes with the fewest decimals that comes to at least `least` bytes and fewer
// than `end`.
double round_mebibytes(Bytes least, Bytes end) {
  const double low = in_mebibytes(std::max<Bytes>(1, least));
  constexpr int kMostDecimals = 5;
  for (int decimals = 0; decimals <= kMostDecimals; ++decimals) {
    const double unit = std::pow(10.0, decimals);
    const double size = std::ceil(low * unit) / unit;
    const auto bytes = static_cast<Bytes>(size * static_cast<double>(kMiB));
    if (bytes >= least && bytes < end) return size;
  }
  return low;
}

// DDP: one cap, behind a first bucket of 1 MiB, and a hook.
std::vector<Json> pytorch_configs(const Strategy& winner, const Scenario& scenario) {
  const Gradients gradients = gradients_of(scenario.workload);
  std::vector<Json> configs;
  const Fusion form = by_size(0, Fusion::Close::kAfter, kMiB);
  const auto thresholds = size_thresholds(gradients.tensors, gradients.candidates, form);
  for (std::size_t i = 0; i < thresholds.size(); ++i) {
    const Bytes end =
        i + 1 < thresholds.size() ? thresholds[i + 1].value : std::numeric_limits<Bytes>::max();
    Json config{{"bucket_cap_mb", round_mebibytes(thresholds[i].value, end)}};
    if (winner.compression.codec == "fp16") config["comm_hook"] = "fp16_compress_hook";
    configs.push_back(std::move(config));
  }
  return configs;
}

// Horovod: a threshold in bytes, a cycle time, hierarchy by a switch, streams. Larger cycles let
// more gradients meet at a tick.
std::vector<Json> horovod_configs(const Strategy& winner, const Scenario& scenario) {
  const Gradients gradients = gradients_of(scenario.workload);
  const bool levels = scenario.cluster.nodes > 1 && scenario.cluster.gpus_per_node > 1;
  std::vector<Json> configs;
  const Fusion form = by_size(0, Fusion::Close::kBefore);
  const auto thresholds = size_thresholds(gradients.tensors, gradients.candidates, form);
  for (const double cycle : {1.0, 2.5, 5.0, 10.0, 25.0}) {
    for (const auto& threshold : thresholds) {
      for (const bool hierarchical : {false, true}) {
        if (hierarchical && !levels) continue;
        Json config{{"HOROVOD_FUSION_THRESHOLD", threshold.value}, {"HOROVOD_CYCLE_TIME", cycle}};
        if (hierarchical) config["HOROVOD_HIERARCHICAL_ALLREDUCE"] = 1;
        if (winner.streams > 1) config["HOROVOD_NUM_NCCL_STREAMS"] = winner.streams;
        if (winner.compression.codec == "fp16") config["compression"] = "fp16";
        configs.push_back(std::move(config));
      }
    }
  }
  return configs;
}

// Paddle: whole mebibytes, at most 50 gradients or as many as there are, communicators, leaders.
std::vector<Json> paddle_configs(const Scenario& scenario) {
  const Gradients gradients = gradients_of(scenario.workload);
  const bool levels = scenario.cluster.nodes > 1 && scenario.cluster.gpus_per_node > 1;
  Fusion form = by_size(0, Fusion::Close::kAfter);
  form.by_layer = true;
  form.layer_key = Fusion::LayerKey::kFirstDot;
  std::set<Bytes> sizes;
  for (const auto& threshold : size_thresholds(gradients.tensors, gradients.candidates, form)) {
    sizes.insert(std::max<Bytes>(1, (threshold.value + kMiB - 1) / kMiB));
  }
  std::vector<Json> fusions{{{"fuse_all_reduce_ops", false}}};
  for (const Bytes size : sizes) {
    for (const double count : {50.0, 1e6}) {
      fusions.push_back({{"fuse_grad_size_in_MB", size}, {"_fuse_grad_size_in_TFLOPS", count}});
    }
  }
  std::vector<Json> configs;
  for (const bool leaders : {false, true}) {
    if (leaders && !levels) continue;
    for (const int communicators : {1, 2, 3, 4}) {
      for (Json config : fusions) {
        if (communicators > 1) {
          config["nccl_comm_num"] = communicators;
          config["sync_nccl_allreduce"] = false;
        }
        if (leaders) {
          config["use_hierarchical_allreduce"] = true;
          config["hierarchical_allreduce_inter_nranks"] = scenario.cluster.gpus_per_node;
        }
        configs.push_back(std::move(config));
      }
    }
  }
  return configs;
}

// MindSpore says any buckets by their end indices, on one flat ring: the optimum there.
std::vector<Json> mindspore_configs(const Dialect& dialect, const Scenario& scenario,
                                    PriceBook& book) {
  const Json plain{{"parallel_mode", "data_parallel"}};
  Strategy strategy =
      dialect.read(Reader(plain, "mindspore", ""), scenario.workload, scenario.cluster, false)
          .strategy;
  const Arm arm(scenario, strategy, book);
  strategy.fusion = by_ends(arm.optimum().ends);
  const Plan plan = make_plan(scenario.workload, scenario.cluster, strategy);
  std::vector<Json> configs{plain};
  for (auto& config :
       dialect.suggest(strategy, plan.buckets, scenario.workload, scenario.cluster)) {
    configs.push_back(std::move(config));
  }
  return configs;
}

std::vector<Json> configs_of(const Dialect& dialect, const Strategy& winner,
                             const Scenario& scenario, PriceBook& book) {
  if (dialect.name == "pytorch") return pytorch_configs(winner, scenario);
  if (dialect.name == "horovod") return horovod_configs(winner, scenario);
  if (dialect.name == "paddle") return paddle_configs(scenario);
  if (dialect.name == "mindspore") return mindspore_configs(dialect, scenario, book);
  return {Json::object()};
}

// What decides the plan of a strategy as dialects read it; two alike need not both be priced.
std::string plan_key(const Scenario& scenario, const Strategy& strategy) {
  std::string key = std::to_string(strategy.streams) + "," +
                    std::to_string(static_cast<int>(strategy.hierarchy.form)) + "," +
                    std::to_string(strategy.fusion.cycle) + ",";
  const Plan plan = make_plan(scenario.workload, scenario.cluster, strategy);
  for (const auto& bucket : plan.buckets) {
    key += std::to_string(bucket.ready) + ":" + std::to_string(bucket.tensors.size()) + " ";
  }
  return key;
}

// What trains differently is said before what only moves differently.
std::string difference(const Strategy& wanted, const Strategy& found, const Scenario& scenario) {
  if (wanted.local_sgd.enabled != found.local_sgd.enabled) {
    return found.local_sgd.enabled ? "it averages parameters"
                                   : "it exchanges gradients at every step instead of averaging "
                                     "parameters";
  }
  if (wanted.compression.codec != found.compression.codec) {
    const auto name = [](const Strategy& s) {
      return s.compression.codec.empty() ? std::string("uncompressed")
                                         : "by " + s.compression.codec;
    };
    return "gradients travel " + name(found) + " instead of " + name(wanted);
  }
  return plan_difference(make_plan(scenario.workload, scenario.cluster, wanted),
                         make_plan(scenario.workload, scenario.cluster, found));
}

}  // namespace

Emitted best_config(const Dialect& dialect, const Strategy& winner, const Scenario& scenario,
                    Executor& executor, PriceBook& book) {
  const auto step_of = [&](const Strategy& strategy) {
    return price_strategy(scenario, strategy, executor, book).metrics.step_time;
  };
  std::vector<Json> configs;
  const auto written = write_config(dialect, winner, scenario.workload, scenario.cluster);
  if (written) {
    Emitted emitted{written->config, written->strategy,   step_of(written->strategy),
                    written->exact,  written->difference, 1};
    if (emitted.exact) return emitted;
    configs.push_back(written->config);
  }
  // Sparse or rare exchange: the switches decide, and fusion hardly matters.
  const bool switches_only = winner.local_sgd.enabled || winner.compression.codec == "dgc";
  if (!switches_only || configs.empty()) {
    for (auto& config : configs_of(dialect, winner, scenario, book)) {
      configs.push_back(std::move(config));
    }
  }

  Emitted best;
  std::set<std::string> seen;
  for (const Json& config : configs) {
    Strategy strategy = dialect
                            .read(Reader(config, std::string(dialect.name), ""), scenario.workload,
                                  scenario.cluster, false)
                            .strategy;
    strategy.name = dialect.name;
    if (!seen.insert(plan_key(scenario, strategy)).second) continue;
    const Seconds step = step_of(strategy);
    ++best.searched;
    if (best.searched > 1 && step >= best.step_time * (1 - 1e-9)) continue;
    best.config = config;
    best.strategy = std::move(strategy);
    best.step_time = step;
  }
  best.difference = difference(winner, best.strategy, scenario);
  best.exact = best.difference.empty();
  return best;
}

}  // namespace syncline
