#include "core/job/init.h"

#include <algorithm>
#include <filesystem>

#include "core/digits.h"
#include "core/error.h"
#include "core/hardware/device.h"
#include "core/input/document.h"
#include "core/input/hardware_json.h"
#include "core/input/read_scenario.h"
#include "core/job/format.h"
#include "core/job/models/safetensors.h"
#include "core/json/reader.h"
#include "core/measure/memory.h"
#include "core/operators/architecture.h"

namespace syncline::job {
namespace {

using hardware::KnownDevice;
using hardware::KnownNode;

const KnownNode& node_named(const std::string& name) {
  std::vector<std::string> names;
  for (const KnownNode& node : hardware::nodes()) names.emplace_back(node.name);
  if (const KnownNode* node = hardware::find_node(same_name(name, names).value_or(name))) {
    return *node;
  }
  throw InputError("node '" + name + "' is not known" + input::did_you_mean_node(name) +
                   "; `syncline list` names them");
}

Json named_workload(const operators::Architecture& row) {
  Json operators = {{"architecture", row.name}};
  if (!row.images) {
    const std::int64_t longest = row.shape.positions;
    operators["sequence"] = std::min<std::int64_t>(2048, longest);
  }
  if (row.fused) operators["flash_attention"] = true;
  return {{"name", row.name},
          {"source", "generated: " + std::string(row.summary)},
          {"operators", std::move(operators)}};
}

// A file, unless an architecture bears that name.
Json workload_of(const std::string& model, std::vector<std::string>& assumed) {
  std::error_code error;
  const bool file = std::filesystem::exists(model, error);
  std::vector<std::string> names;
  for (const auto& known : operators::architectures()) {
    if (!known.shaped) names.emplace_back(known.name);
  }
  const std::string name = file ? model : same_name(model, names).value_or(model);
  const operators::Architecture* row = operators::find_architecture(name);
  if (row != nullptr && !row->shaped) return named_workload(*row);
  if (!file) {
    // As Hugging Face names it: organisation/model.
    const std::size_t slash = model.rfind('/');
    throw InputError("model '" + model + "' is neither an architecture nor a file" +
                     did_you_mean(model.substr(slash == std::string::npos ? 0 : slash + 1), names) +
                     (slash == std::string::npos ? "" : "; give the file config.json of it") +
                     "; `syncline list` names the architectures");
  }
  const Observed observed = read_job({model});
  if (!observed.workload) {
    throw InputError(model + ": a trace of a job, not a model: `syncline import` reads it");
  }
  // What a config does not tell is asked of the options below.
  const bool config = observed.workload->contains("operators");
  if (!config) assumed = observed.warnings;
  return *observed.workload;
}

bool of_images(const Json& workload) { return !workload["operators"].contains("sequence"); }

void choose_dtype(Json& operators, const InitOptions& options, const KnownDevice& device,
                  std::vector<std::string>& assumed) {
  const std::string dtype = options.dtype.empty() ? (device.bf16 ? "bf16" : "fp16") : options.dtype;
  operators["dtype"] = dtype;
  operators.erase("autocast");
  if (dtype == "fp32") return;
  if (dtype == "bf16" && !device.bf16) {
    assumed.push_back("products in bf16 at the rate of fp32, as " + std::string(device.summary) +
                      " has no fast ones (--dtype fp16)");
  }
  operators["autocast"] = true;
  if (options.dtype.empty()) {
    assumed.push_back("products in " + dtype +
                      " under autocast, gradients in fp32 (--dtype; "
                      "\"autocast\": false sends them in " +
                      dtype + ")");
  }
}

void choose_sizes(Json& workload, const InitOptions& options, std::vector<std::string>& assumed) {
  Json& operators = workload["operators"];
  constexpr std::int64_t kImages = 32, kTokensAGpu = 8192;
  const bool images = of_images(workload);
  if (images && options.sequence) {
    throw InputError("--sequence has no meaning with a model of images");
  }
  if (!images) {
    if (options.sequence) {
      operators["sequence"] = *options.sequence;
    } else {
      assumed.push_back(operators["sequence"].dump() + " tokens a sample (--sequence)");
    }
  }
  const std::int64_t tokens = images ? 1 : operators["sequence"].get<std::int64_t>();
  const std::int64_t usual =
      images ? kImages : std::max<std::int64_t>(1, kTokensAGpu / std::max<std::int64_t>(1, tokens));
  workload["batch"] = options.batch.value_or(usual);
  if (!options.batch) {
    assumed.push_back(std::to_string(usual) + (usual == 1 ? " sample" : " samples") +
                      " a GPU and step (--batch)");
  }
}

void scale_tensors(Json& workload, double factor) {
  for (Json& tensor : workload["tensors"]) {
    for (const char* key : {"forward_flops", "backward_flops"}) {
      if (tensor.contains(key)) tensor[key] = tensor[key].get<double>() * factor;
    }
  }
}

// A workload of tensors: FLOPs are linear in the tokens, formats are the file's.
void choose_tensors(Json& workload, const InitOptions& options, std::vector<std::string>& assumed) {
  if (options.sequence) {
    scale_tensors(workload, static_cast<double>(*options.sequence) / models::kTokens);
  }
  if (!options.dtype.empty()) {
    for (Json& tensor : workload["tensors"]) tensor["dtype"] = options.dtype;
  }
  set_batch(workload, options.batch.value_or(1));
  if (!options.batch) assumed.emplace_back("1 sample a GPU and step (--batch)");
}

// What is said first where it does not fit.
void judge_memory(const Json& scenario, std::vector<std::string>& assumed) {
  const std::string shortage =
      measure::memory_shortage(input::parse_scenario(input::document_of("init", scenario)));
  if (shortage.empty()) return;
  assumed.insert(assumed.begin(), "that it fits, which it does not: " + shortage);
}

Json strategies_for(const KnownDevice& device) {
  Json list = Json::array();
  list.push_back({{"name", "DDP's default"}, {"dialect", "pytorch"}, {"config", Json::object()}});
  list.push_back({{"name", "gradients as views"},
                  {"dialect", "pytorch"},
                  {"config", {{"gradient_as_bucket_view", true}}}});
  list.push_back({{"name", "larger buckets"},
                  {"dialect", "pytorch"},
                  {"config", {{"bucket_cap_mb", 100}, {"gradient_as_bucket_view", true}}}});
  Json one = {
      {"name", "one bucket, no overlap"}, {"overlap", false}, {"fusion", {{"rule", "one"}}}};
  if (device.compute_capability > 0) one["algorithm"] = "nccl";
  list.push_back(std::move(one));
  return list;
}

std::string about(const std::vector<std::string>& assumed) {
  std::string text = "Assumed: ";
  for (const std::string& line : assumed) text += (&line == &assumed.front() ? "" : "; ") + line;
  return text + ".";
}

// What is taken of the machines, whatever runs on them.
std::vector<std::string> assumed_of(const KnownNode& node, const KnownDevice& device) {
  return {"of " + std::string(device.summary) + "'s rated compute " +
              short_text(hardware::kReachedHalfFlops, 3) + " reached in half precision, " +
              short_text(hardware::kReachedFlops, 3) +
              " in fp32, as published runs do; of its memory "
              "rate " +
              short_text(hardware::kReachedMemory, 3),
          "links of " + std::string(node.summary) + " as rated (" + std::string(node.source) +
              "); " + std::string(hardware::kLatencySource),
          "nothing lost to running in parallel beside the exchange (data_parallel_overhead_us)"};
}

}  // namespace

void set_batch(Json& workload, std::int64_t batch) {
  const double before = workload.value("batch", 1.0);
  workload["batch"] = batch;
  if (workload.contains("tensors")) scale_tensors(workload, static_cast<double>(batch) / before);
}

Begun init_scenario(const InitOptions& options) {
  const KnownNode& node = node_named(options.node);
  const KnownDevice& device = hardware::device_of(node);
  Begun begun;
  Json workload = workload_of(options.model, begun.assumed);
  if (workload.contains("operators")) {
    choose_sizes(workload, options, begun.assumed);
    choose_dtype(workload["operators"], options, device, begun.assumed);
  } else {
    choose_tensors(workload, options, begun.assumed);
  }
  const std::string where = std::to_string(options.nodes) + " x " + std::string(node.name);
  const std::vector<std::string> machines = assumed_of(node, device);
  begun.scenario = {
      {"name", workload["name"].get<std::string>() + " on " + where},
      {"about", "Written by syncline init: `about` in workload and cluster says what is assumed."},
      {"workload", std::move(workload)}};
  begun.scenario["cluster"] = {
      {"name", where}, {"about", about(machines)}, {"node", node.name}, {"nodes", options.nodes}};
  begun.scenario["strategies"] = strategies_for(device);
  begun.scenario["baseline"] = "DDP's default";
  judge_memory(begun.scenario, begun.assumed);
  if (!begun.assumed.empty()) begun.scenario["workload"]["about"] = about(begun.assumed);
  begun.assumed.insert(begun.assumed.end(), machines.begin(), machines.end());
  return begun;
}

}  // namespace syncline::job
