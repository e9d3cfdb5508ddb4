#include "imports/scenario_of.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/executor.h"
#include "core/metrics.h"
#include "formats/dialect/ddp_buckets.h"
#include "formats/input/document.h"
#include "formats/input/scenario_json.h"
#include "formats/text/digits.h"
#include "imports/bucket_rule.h"
#include "imports/cluster_of.h"
#include "imports/init.h"
#include "imports/whole_job.h"
#include "imports/workload_of.h"

namespace syncline::job {
namespace {

constexpr int kWrittenDigits = 14;  // more digits than any clock gives

std::string milliseconds_text(Seconds seconds) {
  return short_text(seconds / kMillisecond, 3) + " ms";
}

Json named(const Json& strategy, const std::string& name) {
  Json with_name{{"name", name}};
  with_name.update(strategy);
  return with_name;
}

Json ddp(const std::string& name, Json config) {
  return {{"name", name}, {"dialect", "pytorch"}, {"config", std::move(config)}};
}

// Returns the strategy as it ran, and the same with gradients as views if they were copied. Adds
// other settings of the buckets, each that gives another number of them.
Json strategies_of(const Observed& observed, const BucketRule& rule,
                   const std::vector<Tensor>& tensors) {
  const Json own = rule.strategy.is_null()
                       ? Json{{"dialect", "pytorch"}, {"config", Json::object()}}
                       : rule.strategy;
  Json list = Json::array({named(own, kAsItRan)});
  const bool in_torchs_words = own.contains("config");
  Json config = Json::object();
  if (observed.bucket_views) config["gradient_as_bucket_view"] = true;
  if (in_torchs_words && !observed.bucket_views) {
    Json views = own;
    views["config"]["gradient_as_bucket_view"] = true;
    list.push_back(named(views, "gradients as views"));
  }
  const auto torch = dialect::torch_version(rule.torch).value_or(dialect::kNewestTorch);
  const auto buckets_of = [&](std::optional<double> cap) {
    return dialect::ddp_buckets(tensors, dialect::ddp_limits(cap, torch)).size();
  };
  std::set<std::size_t> made;
  if (in_torchs_words && own["config"] == config) {
    made.insert(buckets_of(std::nullopt));
  } else if (made.insert(buckets_of(std::nullopt)).second) {
    list.push_back(ddp("DDP's default", config));
  }
  constexpr std::array kCaps{1, 8, 64, 1000};
  for (const int cap : kCaps) {
    if (!made.insert(buckets_of(cap)).second) continue;
    Json capped = config;
    capped["bucket_cap_mb"] = cap;
    list.push_back(ddp("bucket_cap_mb " + std::to_string(cap), std::move(capped)));
  }
  return list;
}

// Returns the job's strategy, and the same job with one bucket, with single gradients, or with
// parameters kept from the forward pass.
Json whole_strategies(const BucketRule& rule) {
  Json list = Json::array({named(rule.strategy, kAsItRan)});
  if (rule.strategy.contains("regather")) {
    Json kept = rule.strategy;
    kept.erase("regather");
    list.push_back(named(kept, "parameters kept"));
  }
  constexpr std::array kSizes{1, 25, 100, 400};
  for (const int size : kSizes) {
    Json sized = rule.strategy;
    Json fusion{{"rule", "size"}, {"size_mb", size}};
    if (rule.strategy["fusion"].contains("cast")) fusion["cast"] = rule.strategy["fusion"]["cast"];
    sized["fusion"] = fusion;
    sized.erase("gather_groups");
    list.push_back(named(sized, "buckets of " + std::to_string(size) + " MiB"));
  }
  return list;
}

// Returns strategies for training a model.
Json model_strategies() {
  Json list = Json::array({ddp("DDP's default", Json::object())});
  for (const int cap : {8, 100}) {
    list.push_back(ddp("bucket_cap_mb " + std::to_string(cap), {{"bucket_cap_mb", cap}}));
  }
  return list;
}

Json published_of(const Observed& observed, const Step& step) {
  Json row{{"strategy", kAsItRan}, {"step_time_s", std::round(step.gpu * 1e9) / 1e9}};
  row["source"] = source_of(observed, step) + ", on the GPU";
  return Json::array({row});
}

// Returns the cluster's device as an object, so that keys can override a named one's.
Json& device_of(Json& cluster) {
  Json& device = cluster["device"];
  if (device.is_string()) device = Json{{"base", device}};
  return device;
}

// Sets the slowdown by exchanges to 0: the observed waits already contain it.
void keep_waits(Json& cluster) {
  if (!cluster.is_object()) return;
  Json& device = device_of(cluster);
  if (!device.contains("overlap_slowdown")) device["overlap_slowdown"] = 0;
}

// Returns the time that the first strategy lacks to the measured step, at most its compute stream's
// waits for collectives and stages. Gathers that overlap with the waiting take several turns.
Seconds unexplained_waiting(Scenario scenario, const Step& step) {
  constexpr int kTurns = 4;
  constexpr double kClose = 0.001;
  constexpr Seconds kMax = 1000;  // more than that no scenario holds
  const Seconds waited = std::min(kMax, step.exposed + step.stages);
  Seconds waiting = 0;
  for (int turn = 0; turn < kTurns && waited > 0; ++turn) {
    scenario.cluster.device.data_parallel_overhead = waiting;
    const auto executor =
        run::make_model_executor({scenario.cluster, scenario.simulation, scenario.seed});
    collective::CostCache cache(scenario.cluster);
    const measure::Evaluated evaluated =
        measure::evaluate_strategy(scenario, scenario.strategies.front(), *executor, cache);
    const Seconds lacking = step.gpu - evaluated.metrics.step_time;
    if (turn > 0 && lacking < kClose * step.gpu) break;
    waiting = std::clamp(waiting + lacking, 0.0, waited);
  }
  return waiting;
}

// Adds the part of the step's waiting that no network explains, other ranks' lateness, to every
// strategy alike. The row is then no prediction.
void add_waiting(const Scenario& scenario, const Step& step, Json& json,
                 std::vector<std::string>& assumed) {
  constexpr double kLittle = 0.002;
  const Seconds waiting = unexplained_waiting(scenario, step);
  const Seconds waited = step.exposed + step.stages;
  if (waiting < kLittle * step.gpu) return;
  input::set_device_figure(device_of(json["cluster"]), &Device::data_parallel_overhead,
                           std::round(waiting * 1e9) / 1e9, kWrittenDigits);
  json["published"][0]["use"] = "calibrated";
  assumed.push_back("the step waits " + milliseconds_text(waited) + " for " +
                    (step.stages > 0 ? "collectives and other stages" : "collectives") +
                    ", the network explains all but " + milliseconds_text(waiting) +
                    ": taken as waiting for late ranks, with any strategy "
                    "(data_parallel_overhead_us)");
}

std::string about(const Observed& observed) { return "Imported from " + source_of(observed) + "."; }

// Returns an assumed machine: a model file names none, and its operators need one.
Json model_machine(std::vector<std::string>& assumed) {
  assumed.emplace_back(
      "one DGX H100: a model file tells no machine; --cluster FILE gives one, or `syncline init` "
      "makes the scenario");
  return {{"node", "dgx-h100"}, {"nodes", 1}};
}

// Returns true if the step was measured on the scenario's number of ranks.
bool same_ranks(const Cluster& cluster, const Observed& observed,
                std::vector<std::string>& assumed) {
  const int ranks = cluster.ranks();
  if (ranks == observed.world_size) return true;
  assumed.push_back("the job ran on " + std::to_string(observed.world_size) +
                    " ranks, the cluster has " + std::to_string(ranks) +
                    ": the measured step is in no row");
  return false;
}

Imported of_model(const Observed& observed, const ImportOptions& options) {
  Imported imported;
  Json workload = *observed.workload;
  if (options.batch > 1) set_batch(workload, options.batch);
  imported.scenario = {
      {"name", observed.name},
      {"about", about(observed)},
      {"workload", std::move(workload)},
      {"cluster", options.cluster ? *options.cluster : model_machine(imported.assumed)},
      {"strategies", model_strategies()}};
  return imported;
}

}  // namespace

Imported scenario_of(const Observed& observed, const ImportOptions& options) {
  if (observed.workload) return of_model(observed, options);
  if (observed.ranks.empty() || observed.ranks.front().steps.empty() ||
      typical_step(observed.ranks.front()).gradients.empty()) {
    throw InputError(observed.file + ": no gradient is known of this job");
  }
  Imported imported;
  std::vector<std::string>& assumed = imported.assumed;
  const Step& typical = typical_step(observed.ranks.front());
  const bool whole = observed.whole.has_value();
  const Step step = whole ? typical : with_all_that_is_sent(typical, assumed);
  imported.rule = whole ? whole_rule(observed) : bucket_rule(observed, step);
  Workload workload = workload_of(observed, step, options.batch, assumed);
  if (whole) cut_as_observed(observed, workload, assumed);
  workload.framework_version = imported.rule.torch;
  Json& json = imported.scenario;
  json = {{"name", observed.name}, {"about", about(observed)}};
  json["workload"] = input::workload_json(workload, kWrittenDigits);
  json["cluster"] = options.cluster ? *options.cluster : cluster_of(observed, assumed);
  keep_waits(json["cluster"]);
  json["strategies"] = whole ? whole_strategies(imported.rule)
                             : strategies_of(observed, imported.rule, workload.tensors);
  json["baseline"] = kAsItRan;
  if (step.gpu > 0) {
    const Scenario scenario =
        input::parse_scenario(input::document_of("the imported scenario", json));
    const bool other = options.cluster &&
                       rescale_times(observed, step, scenario.cluster.device, workload, assumed);
    if (other) json["workload"] = input::workload_json(workload, kWrittenDigits);
    const bool same = same_ranks(scenario.cluster, observed, assumed);
    if (same && !other) {
      json["published"] = published_of(observed, step);
      if (!options.cluster && observed.world_size > 1) add_waiting(scenario, step, json, assumed);
    }
  }
  if (options.batch == 0) {
    assumed.push_back(
        "the samples of a rank per step are not given, so there is no throughput: --batch says it");
  }
  // Notes that later commands repeat: uncertain inputs do not end with the import.
  for (const auto& sentences : {observed.warnings, assumed}) {
    for (const std::string& sentence : sentences) json["notes"].push_back(sentence);
  }
  return imported;
}

}  // namespace syncline::job
