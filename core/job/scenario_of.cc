#include "core/job/scenario_of.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <optional>
#include <set>
#include <sstream>

#include "core/dialect/ddp_buckets.h"
#include "core/error.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/job/cluster_of.h"
#include "core/job/init.h"
#include "core/job/other_device.h"
#include "core/job/waiting.h"

namespace syncline::job {
namespace {

// Nanoseconds are what clocks give; more digits would say nothing.
double microseconds(Seconds seconds) { return std::round(seconds * 1e9) / 1e3; }
double milliseconds(Seconds seconds) { return std::round(seconds * 1e9) / 1e6; }

std::string milliseconds_text(Seconds seconds) {
  constexpr int kDigits = 3;
  std::ostringstream text;
  text << std::setprecision(kDigits) << seconds / kMillisecond << " ms";
  return text.str();
}

std::string name_of(const Gradient& gradient, std::size_t place) {
  return gradient.name.empty() ? "gradient " + std::to_string(place) : gradient.name;
}

Json tensor_of(const Gradient& gradient, std::size_t place, bool copied) {
  Json tensor{{"name", name_of(gradient, place)}};
  tensor["shape"] =
      gradient.shape.empty() ? Json::array({gradient.elements}) : Json(gradient.shape);
  tensor["dtype"] = to_string(gradient.dtype);
  tensor["backward_us"] = microseconds(gradient.wait);
  if (copied) {
    tensor["copy_in_us"] = microseconds(gradient.copy_in);
    tensor["copy_out_us"] = microseconds(gradient.copy_out);
  }
  return tensor;
}

bool copies(const Step& step) {
  return std::any_of(step.gradients.begin(), step.gradients.end(), [](const Gradient& gradient) {
    return gradient.copy_in > 0 || gradient.copy_out > 0;
  });
}

std::string file_of(const Observed& observed) {
  return observed.file.substr(observed.file.rfind('/') + 1) + ", " + observed.format;
}

std::string source_of(const Observed& observed, const Step& step) {
  return file_of(observed) + ", step " + std::to_string(step.number) + " of rank " +
         std::to_string(observed.ranks.front().rank);
}

// An optimizer by what it keeps of each parameter, in a scenario's words.
struct KnownOptimizer {
  std::string_view name;  // of its class, without Fused, Distributed, CPU and the like around it
  std::string_view word;  // "momentum": one value, "adam": two
};
constexpr KnownOptimizer kOptimizers[] = {
    {"SGD", "momentum"}, {"RMSprop", "momentum"}, {"Adagrad", "momentum"}, {"Lion", "momentum"},
    {"LAMB", "adam"},    {"Lamb", "adam"},        {"Adadelta", "adam"},    {"Adam", "adam"}};

const KnownOptimizer* known_optimizer(std::string_view name) {
  const auto found = std::ranges::find_if(kOptimizers, [&](const KnownOptimizer& known) {
    const bool narrow = name.find("8bit") != std::string_view::npos;
    return !narrow && name.find(known.name) != std::string_view::npos;
  });
  return found == std::end(kOptimizers) ? nullptr : found;
}

// Of several the one that keeps most. The trace does not tell whether SGD has a momentum.
void add_optimizer(const Observed& observed, Json& workload, std::vector<std::string>& assumed) {
  const KnownOptimizer* most = nullptr;
  for (const std::string& name : observed.optimizers) {
    const KnownOptimizer* known = known_optimizer(name);
    if (known != nullptr && (most == nullptr || known->word == "adam")) most = known;
  }
  if (most == nullptr) return;
  workload["optimizer"] = most->word;
  if (most->name != "SGD") return;
  assumed.push_back(
      "the optimizer is SGD, taken with a momentum: the file does not tell whether it "
      "has one ('workload.optimizer': 'sgd' says that it has none)");
}

Json workload_of(const Observed& observed, const Step& step, const std::string& torch,
                 const ImportOptions& options) {
  const bool copied = copies(step);
  Json workload{{"name", observed.name}};
  if (!torch.empty()) workload["torch"] = torch;
  workload["source"] = source_of(observed, step);
  if (options.batch > 0) workload["batch"] = options.batch;
  if (step.broadcast > 0) workload["buffer_broadcast_ms"] = milliseconds(step.broadcast);
  workload["forward_ms"] = milliseconds(step.forward);
  workload["update_ms"] = milliseconds(step.update);
  if (step.host_gap > 0) workload["host_gap_ms"] = milliseconds(step.host_gap);
  if (copied && step.copy_kernels > 0) {
    workload["copy_kernels_ms"] = milliseconds(step.copy_kernels);
  }
  Json& tensors = workload["tensors"] = Json::array();
  for (std::size_t i = 0; i < step.gradients.size(); ++i) {
    tensors.push_back(tensor_of(step.gradients[i], i, copied));
  }
  return workload;
}

std::string mebibytes_text(Bytes bytes) {
  constexpr int kDigits = 4;
  std::ostringstream text;
  text << std::setprecision(kDigits) << static_cast<double>(bytes) / kMiB << " MiB";
  return text.str();
}

// A gradient ready with the last of its bucket, so that the bucket holds what was sent.
void add_to_bucket(Step& step, Exchange& exchange, std::int64_t elements, std::string name) {
  const int place = *std::max_element(exchange.gradients.begin(), exchange.gradients.end());
  const auto last = step.gradients.begin() + place;
  Gradient rest;
  rest.name = std::move(name);
  rest.elements = elements;
  rest.dtype = last->dtype;
  step.gradients.insert(last, rest);
  for (Exchange& other : step.exchanges) {
    for (int& gradient : other.gradients) gradient += gradient >= place ? 1 : 0;
  }
  exchange.gradients.push_back(place);
  std::sort(exchange.gradients.begin(), exchange.gradients.end());
}

// What buckets carry beside the gradients that were told travels too. Both sums are compared aloud
// where they differ.
Step with_all_that_is_sent(Step step, std::vector<std::string>& assumed) {
  Bytes told = 0;
  Bytes rest = 0;
  Bytes carried = 0;
  for (const Gradient& gradient : step.gradients) told += gradient.bytes();
  const std::size_t gradients = step.gradients.size();
  int added = 0;
  for (Exchange& exchange : step.exchanges) {
    if (exchange.gradients.empty()) continue;
    std::int64_t missing = exchange.elements;
    for (const int place : exchange.gradients) {
      const Gradient& gradient = step.gradients[static_cast<std::size_t>(place)];
      missing -= gradient.elements;
      carried += gradient.bytes();
    }
    if (missing <= 0) continue;
    rest +=
        missing * size_of(step.gradients[static_cast<std::size_t>(exchange.gradients[0])].dtype);
    add_to_bucket(step, exchange, missing, "sent without a gradient " + std::to_string(++added));
  }
  const auto share = [](Bytes part, Bytes all) {
    return std::to_string(
               std::lround(100.0 * static_cast<double>(part) / static_cast<double>(all))) +
           " %";
  };
  if (rest > 0) {
    assumed.push_back("the buckets carry " + mebibytes_text(carried + rest) + ", the " +
                      std::to_string(gradients) + " gradients that are told sum up to " +
                      mebibytes_text(told) + ": the other " + mebibytes_text(rest) + " (" +
                      share(rest, carried + rest) +
                      " of the traffic) travel too, as 'sent without a gradient' (parameters that "
                      "gave none, or one that the file does not tell)");
  }
  if (carried > 0 && carried < told) {
    assumed.push_back("gradients of " + mebibytes_text(told - carried) + " of " +
                      mebibytes_text(told) + " (" + share(told - carried, told) +
                      ") are in no collective that was seen to carry gradients");
  }
  return step;
}

Json named(const Json& strategy, const std::string& name) {
  Json with_name{{"name", name}};
  with_name.update(strategy);
  return with_name;
}

Json ddp(const std::string& name, Json config) {
  return {{"name", name}, {"dialect", "pytorch"}, {"config", std::move(config)}};
}

// The strategy as it ran, the same with gradients as views where they were copied, and what other
// settings of the buckets would have made of it: each that makes buckets of its own.
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

// What a model may be trained with.
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

// The cluster's device as an object, whose keys go beside those of a named one.
Json& device_of(Json& cluster) {
  Json& device = cluster["device"];
  if (device.is_string()) device = Json{{"base", device}};
  return device;
}

// The waits were seen beside the job's exchanges: what those cost the computation is in them.
void keep_waits(Json& cluster) {
  if (!cluster.is_object()) return;
  Json& device = device_of(cluster);
  if (!device.contains("overlap_slowdown")) device["overlap_slowdown"] = 0;
}

// What no network explains of the step's waiting is other ranks' lateness: it comes to every
// strategy alike. The row is then no prediction.
void add_waiting(Json& scenario, const Step& step, std::vector<std::string>& assumed) {
  constexpr double kLittle = 0.002;
  const Seconds waiting = unexplained_waiting(scenario, step);
  if (waiting < kLittle * step.gpu) return;
  Json& device = device_of(scenario["cluster"]);
  device["data_parallel_overhead_us"] = microseconds(waiting);
  scenario["published"][0]["use"] = "calibrated";
  assumed.push_back("the step waits " + milliseconds_text(step.exposed) +
                    " for collectives, of which the network explains all but " +
                    milliseconds_text(waiting) +
                    ": taken as waiting for late ranks, with any strategy "
                    "(data_parallel_overhead_us)");
}

std::string about(const Observed& observed) { return "Imported from " + file_of(observed) + "."; }

// A model says nothing of a machine, and its operators need one.
Json model_machine(std::vector<std::string>& assumed) {
  assumed.emplace_back(
      "one DGX H100: a model file tells no machine; --cluster FILE gives one, or `syncline init` "
      "makes the scenario");
  return {{"node", "dgx-h100"}, {"nodes", 1}};
}

// Whether the step was measured on as many ranks as the scenario has.
bool same_ranks(const Cluster& cluster, const Observed& observed,
                std::vector<std::string>& assumed) {
  const int ranks = cluster.ranks();
  if (ranks == observed.world_size) return true;
  assumed.push_back("the job ran on " + std::to_string(observed.world_size) +
                    " ranks, the cluster has " + std::to_string(ranks) +
                    ": the step that was measured stands beside no row");
  return false;
}

// What later verbs repeat: doubts do not end with the import.
void note(const std::vector<std::string>& sentences, Json& scenario) {
  for (const std::string& sentence : sentences) scenario["notes"].push_back(sentence);
}

Imported of_model(const Observed& observed, const ImportOptions& options) {
  Imported imported;
  Json workload = *observed.workload;
  if (options.batch > 1) set_batch(workload, options.batch);
  imported.scenario = {{"name", observed.name}, {"about", about(observed)}};
  imported.scenario["workload"] = std::move(workload);
  return imported;
}

}  // namespace

Imported scenario_of(const Observed& observed, const ImportOptions& options) {
  Imported imported;
  if (observed.workload) {
    imported = of_model(observed, options);
    imported.scenario["cluster"] =
        options.cluster ? *options.cluster : model_machine(imported.assumed);
    imported.scenario["strategies"] = model_strategies();
    return imported;
  }
  if (observed.ranks.empty() || observed.ranks.front().steps.empty() ||
      typical_step(observed.ranks.front()).gradients.empty()) {
    throw InputError(observed.file + ": no gradient is known of this job");
  }
  const Step step = with_all_that_is_sent(typical_step(observed.ranks.front()), imported.assumed);
  imported.rule = bucket_rule(observed, step);
  Json& scenario = imported.scenario;
  scenario = {{"name", observed.name}, {"about", about(observed)}};
  scenario["workload"] = workload_of(observed, step, imported.rule.torch, options);
  add_optimizer(observed, scenario["workload"], imported.assumed);
  scenario["cluster"] = options.cluster ? *options.cluster : cluster_of(observed, imported.assumed);
  keep_waits(scenario["cluster"]);
  scenario["strategies"] = strategies_of(observed, imported.rule, tensors_of(step));
  scenario["baseline"] = kAsItRan;
  if (step.gpu > 0) {
    const Cluster cluster =
        input::parse_scenario(input::document_from_text("the imported scenario", scenario.dump()))
            .cluster;
    const bool other = options.cluster && rescale_times(observed, step, cluster.device,
                                                        scenario["workload"], imported.assumed);
    const bool same = same_ranks(cluster, observed, imported.assumed);
    if (same && !other) scenario["published"] = published_of(observed, step);
  }
  if (scenario.contains("published") && !options.cluster && observed.world_size > 1) {
    add_waiting(scenario, step, imported.assumed);
  }
  if (options.batch == 0) {
    imported.assumed.push_back(
        "how many samples a rank takes a step is not told, so no throughput is: --batch says it");
  }
  note(observed.warnings, scenario);
  note(imported.assumed, scenario);
  return imported;
}

}  // namespace syncline::job
