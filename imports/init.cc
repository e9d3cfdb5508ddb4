#include "imports/init.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "catalogue/architectures/architecture.h"
#include "catalogue/hardware/device.h"
#include "core/base/error.h"
#include "core/operators/evaluate.h"
#include "formats/dialect/schemes.h"
#include "formats/input/document.h"
#include "formats/input/hardware_json.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/text/digits.h"
#include "imports/format.h"
#include "imports/frameworks/settings.h"
#include "imports/models/families.h"
#include "imports/nccl_variables.h"
#include "studies/rows/fitting.h"
#include "studies/study/study_calibration.h"

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

// Reads a model's file, unless an architecture bears that name.
Json workload_of(const std::string& model, bool tensors, std::vector<std::string>& assumed) {
  std::error_code error;
  const bool file =
      std::filesystem::exists(model, error) || error == std::errc::too_many_symbolic_link_levels;
  std::vector<std::string> names;
  for (const auto& known : operators::architectures()) {
    if (!known.shaped) names.emplace_back(known.name);
  }
  for (const auto& [known, config] : models::named_configs()) names.push_back(known);
  const std::string name = file ? model : same_name(model, names).value_or(model);
  const operators::Architecture* row = operators::find_architecture(name);
  if (row != nullptr && !row->shaped && !tensors) return named_workload(*row);
  if (const std::string* known = file ? nullptr : models::find_named(model); known != nullptr) {
    Observed named = models::workload_of_config(models::named_configs().at(*known), model, *known);
    if (!named.workload->contains("operators")) assumed = named.warnings;
    (*named.workload)["source"] = "sizes known by the name " + *known;
    assumed.push_back("sizes of " + *known + " as known by its name: config.json has the model's");
    return *std::move(named.workload);
  }
  if (!file) {
    // As Hugging Face names it: organisation/model.
    const std::size_t slash = model.rfind('/');
    throw InputError("model '" + model + "' is neither an architecture nor a file" +
                     did_you_mean(model.substr(slash == std::string::npos ? 0 : slash + 1), names) +
                     (slash == std::string::npos ? "" : "; give the file config.json of it") +
                     "; `syncline list` names the architectures");
  }
  const Observed observed = read_job({model});
  if (tensors && (!observed.workload || !observed.workload->contains("tensors"))) {
    throw InputError("--tensors: found " + model + " of format " + observed.format +
                     ", expected safetensors, or what torch prints by `" +
                     std::string(models::kPrintTensors) + "`");
  }
  if (!observed.workload) {
    throw InputError(model + ": a trace of a job, not a model: `syncline import` reads it");
  }
  assumed = observed.warnings;
  // Options below supply the tokens that a config lacks.
  std::erase_if(assumed,
                [](const std::string& each) { return each.ends_with(models::kUntoldTokens); });
  return *observed.workload;
}

bool cut_job(const Json& workload) { return workload.contains("parallel"); }

bool of_images(const Json& workload) { return !workload["operators"].contains("sequence"); }

// Adds the assumed rate of products in fp8 or tf32.
void say_rounded(const std::string& dtype, const KnownDevice& device,
                 std::vector<std::string>& assumed) {
  const bool fp8 = dtype == "fp8";
  if (!fp8 && dtype != "tf32") return;
  Operator product;
  product.rounded = true;
  product.dtype = fp8 ? DType::kBf16 : DType::kFp32;
  if (!operators::rounds(product, device.compute_capability)) {
    assumed.push_back("products at the rate of " + std::string(fp8 ? "bf16" : "fp32") + ", as " +
                      std::string(device.summary) + " has none in " + dtype);
    return;
  }
  assumed.push_back(
      fp8 ? "products of layers in fp8 at twice the rate that those in half precision "
            "reach (cluster.device.half_tflops), as data sheets have it"
          : "products in tf32 at half the rate that those in half precision reach "
            "(cluster.device.half_tflops), as data sheets have it");
}

// Sets the format. `own`: the framework keeps parameters in the products' format, as Megatron does.
void choose_dtype(Json& operators, const InitOptions& options, const KnownDevice& device, bool own,
                  std::vector<std::string>& assumed) {
  const std::string dtype = options.dtype.empty() ? (device.bf16 ? "bf16" : "fp16") : options.dtype;
  operators["dtype"] = dtype;
  operators.erase("autocast");
  say_rounded(dtype, device, assumed);
  if (own) {
    if (options.dtype.empty()) {
      assumed.push_back("products, parameters and gradients in " + dtype + " (--dtype)");
    }
    return;
  }
  if (dtype == "fp32" || dtype == "tf32") return;
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

// Sets how a model runs that is trained by PyTorch alone.
void choose_modules(Json& workload, const InitOptions& options, bool own_kernels,
                    std::vector<std::string>& assumed) {
  const bool modules = workload.contains("operators") && !own_kernels;
  if (options.compiled && !modules) {
    throw InputError("--compiled has no meaning with " +
                     std::string(own_kernels
                                     ? "a job that is cut, whose framework has kernels of its own"
                                     : "a file of tensors, whose operators nobody knows"));
  }
  if (!modules || options.compiled) return;
  workload["operators"]["eager"] = true;
  assumed.emplace_back("PyTorch's modules as they come, not compiled (--compiled)");
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
  const std::int64_t fit = kTokensAGpu / std::max<std::int64_t>(1, tokens);
  const std::int64_t usual = cut_job(workload) ? 1
                             : images          ? kImages
                                               : std::max<std::int64_t>(1, fit);
  workload["batch"] = options.batch.value_or(usual);
  if (!options.batch) {
    assumed.push_back(std::to_string(usual) + (usual == 1 ? " sample" : " samples") +
                      (cut_job(workload) ? " per rank and micro-batch (--batch)"
                                         : " per GPU and step (--batch)"));
  }
}

void scale_tensors(Json& workload, double factor) {
  for (Json& tensor : workload["tensors"]) {
    for (const char* key : {"forward_flops", "backward_flops"}) {
      if (tensor.contains(key)) tensor[key] = tensor[key].get<double>() * factor;
    }
  }
}

// Scales a workload of tensors: FLOPs are linear in the tokens, formats are the file's. Under
// `autocast` parameters and gradients are in fp32, and products in the format of the options.
void choose_tensors(Json& workload, const InitOptions& options, bool autocast,
                    std::vector<std::string>& assumed) {
  if (options.sequence) {
    scale_tensors(workload, static_cast<double>(*options.sequence) / models::kTokens);
    const std::string counted = models::kFlopsBy + std::to_string(models::kTokens);
    for (std::string& each : assumed) {
      if (!each.starts_with(counted + " tokens")) continue;
      each.replace(0, counted.size(), models::kFlopsBy + std::to_string(*options.sequence));
    }
  }
  if (!options.dtype.empty()) {
    const std::string kept = options.dtype == "tf32"  ? "fp32"
                             : options.dtype == "fp8" ? "bf16"
                                                      : options.dtype;
    const bool mixed = autocast && kept != "fp32";
    for (Json& tensor : workload["tensors"]) {
      if (!tensor.contains("frozen")) tensor["dtype"] = mixed ? "fp32" : kept;
    }
    if (mixed) workload["product_dtype"] = kept;
  } else {
    assumed.push_back("products, parameters and gradients in " +
                      workload["tensors"].front().value("dtype", "fp32") +
                      ", as the file has them (--dtype)");
  }
  set_batch(workload, options.batch.value_or(1));
  if (!options.batch) assumed.emplace_back("1 sample per GPU and step (--batch)");
}

// Returns the remedy's words in place of `before`, with the options that it changes.
std::string in_place_of(const measure::Remedy& remedy, const std::string& before) {
  std::string text = remedy.words() + (remedy.own ? "" : " in place of '" + before + "'");
  std::string options;
  for (const auto& [key, option] :
       {std::pair{"activation_checkpointing", ", --recompute"},
        std::pair{"batch", ", --batch, --micro-batches"}, std::pair{"parallel", ", --tp, --pp"}}) {
    if (remedy.workload.contains(key)) options += option;
  }
  return options.empty() ? text : text + " (" + options.substr(2) + ")";
}

// Replaces strategies that do not fit by ones that do: other schemes of the framework, and guesses
// of recomputation, micro-batches and layout. The user's settings stay, ahead of guesses. These
// guesses, or the lack of a fit, are said first. A job with measured steps stays.
void make_fit(const InitOptions& options, const measure::Freedom& may, bool from_settings,
              Begun& begun) {
  input::Document document = input::document_of("init", begun.scenario);
  const Scenario scenario = input::parse_scenario(document);
  document.file = "FILE";
  measure::MemoryLack lack = measure::memory_lack(scenario);
  if (lack.empty()) return;
  const measure::Remedy remedy = measure::remedy_of(document, may);
  if (!remedy.fits || !options.steps.empty()) {
    // Options of the user stay, and may be the remedy: as `run` says it.
    if (!lack.some_fit) {
      lack.fits =
          measure::remedy_words(remedy.fits ? remedy : measure::remedy_of(document), document.file);
    }
    begun.assumed.insert(begun.assumed.begin(), "that it fits, which it does not: " + lack.words());
    return;
  }
  const bool left_out =
      remedy.own && remedy.changes.empty() && remedy.schemes.front().name == scenario.baseline;
  begun.assumed.insert(begun.assumed.begin(),
                       left_out ? "left out, as it does not fit: " + lack.large
                                : in_place_of(remedy, scenario.baseline) + ", which needs " +
                                      measure::gigabytes(remedy.memory.total()) + " GB" +
                                      (remedy.memory.may_not_fit() ? " and may not fit" : "") +
                                      ", as " + lack.large);
  input::Document fitting = document;
  measure::apply(remedy, fitting);
  Json strategies = Json::array();
  const Json& own = fitting.root["strategies"];
  for (const Json& entry : own) {
    const auto is_own = [&](const auto& each) { return entry["name"] == each.name; };
    const bool fits = std::ranges::any_of(remedy.schemes, is_own);
    if (fits || (from_settings && entry == own.front())) strategies.push_back(entry);
  }
  for (const auto& scheme : remedy.schemes) {
    const bool there = std::ranges::any_of(own, [&](const Json& entry) {
      return entry["name"] == scheme.name || (entry.value("dialect", "") == scheme.dialect &&
                                              entry.value("config", Json()) == scheme.config);
    });
    if (!there) strategies.push_back(scheme.entry());
  }
  begun.scenario = std::move(fitting.root);
  begun.scenario["baseline"] = strategies[0]["name"];
  begun.scenario["strategies"] = std::move(strategies);
}

constexpr const char* kConfigured = "as configured";

// Takes batch, sequence and format from the settings if no options give them.
void take_facts(const Settings& settings, InitOptions& options) {
  const Json& workload = settings.workload;
  if (!options.batch && workload.contains("batch")) {
    options.batch = workload["batch"].get<std::int64_t>();
  }
  const Json operators = workload.value("operators", Json::object());
  if (!options.sequence && operators.contains("sequence")) {
    options.sequence = operators["sequence"].get<std::int64_t>();
  }
  if (options.dtype.empty()) options.dtype = operators.value("dtype", "");
}

Json strategies_for(const KnownDevice& device, bool accumulates) {
  Json one = {
      {"name", "one bucket, no overlap"}, {"overlap", false}, {"fusion", {{"rule", "one"}}}};
  if (device.compute_capability > 0) one["algorithm"] = "nccl";
  const auto ddp = [](const char* name, Json config) {
    return Json{{"name", name}, {"dialect", "pytorch"}, {"config", std::move(config)}};
  };
  Json list = Json::array(
      {ddp("DDP's default", Json::object()),
       ddp("gradients as views", {{"gradient_as_bucket_view", true}}),
       ddp("larger buckets", {{"bucket_cap_mb", 100}, {"gradient_as_bucket_view", true}})});
  if (accumulates) list.push_back(ddp("DDP with no_sync", {{"no_sync", true}}));
  list.push_back(std::move(one));
  return list;
}

// Adds the assumption on sums in each micro-batch: they decide the traffic, and no model says.
void assume_each_sums(const Json& workload, std::vector<std::string>& assumed) {
  const std::int64_t count = workload.value("micro_batches", std::int64_t{1});
  if (count < 2) return;
  assumed.push_back("gradients are summed in each of the " + std::to_string(count) +
                    " micro-batches, as DDP does without no_sync; the Trainer, Accelerate and "
                    "Lightning set no_sync, which sums them once per step: 'DDP with no_sync'");
}

std::string about(const std::vector<std::string>& assumed) {
  std::string text = "Assumed: ";
  for (const std::string& line : assumed) text += (&line == &assumed.front() ? "" : "; ") + line;
  return text + ".";
}

// Returns the assumptions about the machines, for any job.
std::vector<std::string> assumed_of(const KnownNode& node, const KnownDevice& device) {
  constexpr int kDigits = 3;
  const double half = hardware::reached_half_flops(device.compute_capability);
  return {
      "products reach " + short_text(half, kDigits) + " of " + std::string(device.summary) +
          "'s rated compute in half precision and " + short_text(hardware::kReachedFlops, kDigits) +
          " in fp32, as in published runs, and other work " +
          short_text(hardware::kReachedMemory, kDigits) + " of its memory rate; " +
          short_text(hardware::kLaunch / kMicrosecond, kDigits) +
          " us of host time per kernel launch, as in eager PyTorch",
      "links of " + std::string(node.summary) + " as rated (" + std::string(node.source) + "); " +
          std::string(hardware::kLatencySource),
      "ranks that vary by " + short_text(100 * Jitter::kGuess, kDigits) +
          " % per micro-batch, all wait for the slowest (cluster.jitter); no other data-parallel "
          "overhead (data_parallel_overhead_us)"};
}

// Throws if an option of a layout is given without the size that it belongs to.
void expect_cut(const Json& asked, const Json& parallel) {
  struct Beside {
    const char* key;
    const char* option;
    const char* size;
    const char* by;
  };
  for (const Beside& one : {Beside{"schedule", "--schedule", "pipeline", "--pp"},
                            Beside{"sequence", "--sequence-parallel", "tensor", "--tp"},
                            Beside{"expert_tensor", "--etp", "expert", "--ep"}}) {
    if (!asked.contains(one.key) || asked[one.key] == 1) continue;
    if (parallel.value(one.size, 1) > 1) continue;
    throw InputError(std::string(one.option) + ": has no meaning without " + one.by +
                     " of 2 or more");
  }
}

// Splits norms and residuals too where layers are cut, as Megatron's jobs do.
void assume_sequence(Json& parallel, std::vector<std::string>& assumed) {
  if (parallel.value("tensor", 1) < 2 || parallel.contains("sequence")) return;
  parallel["sequence"] = true;
  assumed.emplace_back(
      "sequence parallelism, which splits norms and residuals across the --tp ranks "
      "(workload.parallel.sequence)");
}

// Returns the model with the settings' facts of the job, or those of the options in their place.
Json job_of(const InitOptions& options, const std::optional<Settings>& settings,
            std::vector<std::string>& assumed) {
  const bool describes_model = settings && settings->workload.contains("operators") &&
                               settings->workload["operators"].contains("architecture");
  const bool alone = options.settings.empty() && settings;  // no model next to the settings
  if (alone && !describes_model) {
    const std::string& why = settings->no_model;
    throw InputError(
        (why.empty() ? settings->framework + "'s settings describe no known model" : why) +
        ": name the model before them (syncline init MODEL SETTINGS --node ...)");
  }
  Json workload = alone ? Json{{"name", settings->workload["name"]}}
                        : workload_of(options.model, options.tensors, assumed);
  if (settings) {
    Json facts = settings->workload;
    if (!alone) {
      // The model is the one that was named; its products and samples are the settings'.
      for (const char* key : {"name", "source", "operators", "batch"}) facts.erase(key);
    }
    workload.merge_patch(facts);
  }
  if (settings) assumed.insert(assumed.end(), settings->assumed.begin(), settings->assumed.end());
  if (options.parallel.is_object() && !options.parallel.empty()) {
    workload["parallel"].merge_patch(options.parallel);
    expect_cut(options.parallel, workload["parallel"]);
    if (!settings) assume_sequence(workload["parallel"], assumed);
  }
  if (!workload.contains("operators") && workload.contains("parallel")) {
    for (const char* key : {"tensor", "context", "expert", "expert_tensor"}) {
      if (workload["parallel"].value(key, 1) == 1) continue;
      throw InputError(options.model + ": tensors alone do not say how '" + key +
                       "' cuts them: give the model's config.json, or its name");
    }
  }
  return workload;
}

// Ranks that each take samples of their own.
std::int64_t replicas_of(const Json& workload, std::int64_t ranks) {
  const Json parallel = workload.value("parallel", Json::object());
  std::int64_t cut = 1;
  for (const char* key : {"tensor", "pipeline", "context"}) {
    cut = std::min<std::int64_t>(cut * parallel.value(key, std::int64_t{1}), std::int64_t{1} << 40);
  }
  // The reader of the layout refuses a size that does not divide the ranks, with its numbers.
  return ranks % cut == 0 ? ranks / cut : 1;
}

void choose_micro_batches(Json& workload, const InitOptions& options,
                          const std::optional<Settings>& settings, std::int64_t ranks,
                          std::vector<std::string>& assumed) {
  const std::int64_t global = settings ? settings->global_batch : 0;
  const std::int64_t batch = workload.value("batch", std::int64_t{1});
  const std::int64_t replicas = replicas_of(workload, ranks);
  std::int64_t count = settings && settings->micro_batches > 0 ? settings->micro_batches : 1;
  const std::int64_t stages =
      workload.value("parallel", Json::object()).value("pipeline", std::int64_t{1});
  if (options.micro_batches) {
    count = *options.micro_batches;
  } else if (global > 0) {
    if (global % (batch * replicas) != 0) {
      throw InputError("a step of " + std::to_string(global) + " samples is no multiple of " +
                       std::to_string(batch) + " per micro-batch x " + std::to_string(replicas) +
                       " that take samples of their own, of " + std::to_string(ranks) +
                       " ranks (--nodes, --batch)");
    }
    count = global / (batch * replicas);
    const std::int64_t named = settings->micro_batches;
    if (named > 0 && named != count) {
      assumed.push_back(std::to_string(count) + " passes a step in place of the " +
                        std::to_string(named) + " of the settings, for all ranks take its " +
                        std::to_string(global) + " samples together");
    }
  } else if (stages > 1 && !(settings && settings->micro_batches > 0)) {
    constexpr std::int64_t kEachStage = 4, kMax = 1024;
    count = std::min(kEachStage * stages, kMax);
    assumed.push_back(std::to_string(count) + " micro-batches per step (--micro-batches)");
  }
  if (count > 1) workload["micro_batches"] = count;
}

// Takes the samples of a rank's pass from those of a step, if the settings say both the step's and
// its passes.
void take_samples(const Settings& settings, InitOptions& options, std::int64_t ranks) {
  if (options.batch || settings.workload.contains("batch") || settings.global_batch == 0) return;
  const std::int64_t passes = options.micro_batches.value_or(settings.micro_batches);
  if (passes == 0) return;
  const std::int64_t parts = replicas_of(settings.workload, ranks) * passes;
  if (settings.global_batch % parts != 0) {
    throw InputError("a step of " + std::to_string(settings.global_batch) +
                     " samples is no multiple of " + std::to_string(parts) + ", the " +
                     std::to_string(parts / passes) + " that take samples of their own x " +
                     std::to_string(passes) + " passes (--nodes, --batch)");
  }
  options.batch = settings.global_batch / parts;
}

// Adds a step's samples to DeepSpeed's configuration, which must have them: `tune` prints it.
void add_samples(const Json& workload, Json& config) {
  config["train_micro_batch_size_per_gpu"] = workload.value("batch", std::int64_t{1});
  config["gradient_accumulation_steps"] = workload.value("micro_batches", std::int64_t{1});
}

// Returns the settings' own strategy, and other settings for such a job.
Json strategies_of(const std::optional<Settings>& settings, const Json& workload) {
  Json list = Json::array();
  const auto add = [&](const char* name, Json config) {
    const bool known =
        !list.empty() && list[0]["dialect"] == "megatron" && list[0]["config"] == config;
    if (known) return;
    list.push_back({{"name", name}, {"dialect", "megatron"}, {"config", std::move(config)}});
  };
  if (settings) {
    Json own = {{"name", kConfigured}};
    own.update(settings->strategy);
    const std::string dialect = own.value("dialect", "");
    if (dialect == "deepspeed") add_samples(workload, own["config"]);
    list.push_back(std::move(own));
    if (dialect != "megatron") return list;
  }
  const Json overlapped = {{"use-distributed-optimizer", true},
                           {"overlap-grad-reduce", true},
                           {"overlap-param-gather", true}};
  add("Megatron, overlapped", overlapped);
  add("Megatron, no overlap", {{"use-distributed-optimizer", true}});
  Json narrow = overlapped;
  narrow["grad-reduce-in-bf16"] = true;
  add("Megatron, bf16 gradients", narrow);
  return list;
}

// Returns the elements of a token inside the model; 0: not known.
std::int64_t hidden_of(const Json& workload) {
  const Json operators = workload.value("operators", Json::object());
  for (const Json& tensor : workload.value("tensors", Json::array())) {
    const bool words = tensor.value("name", "").find("embed_tokens") != std::string::npos;
    const Json& shape = tensor["shape"];
    if (words && shape.size() == 2) return shape[1].get<std::int64_t>();
  }
  if (operators.contains("shape")) return operators["shape"].value("hidden", std::int64_t{0});
  const operators::Architecture* row =
      operators::find_architecture(operators.value("architecture", ""));
  return row == nullptr || row->images ? 0 : row->shape.hidden;
}

// Returns the links of a node that no list has.
Json own_cluster(const KnownNode& node) {
  Json cluster = input::known_node_json(node);
  if (node.gpus == 1) cluster.erase("intra");
  if (node.outside.count == 0) cluster.erase("inter");
  return cluster;
}

// Makes the value of `key` a parameter that the measured steps fit, by number of nodes.
void fit_to_steps(const std::vector<std::pair<int, Seconds>>& steps, const std::string& key,
                  double start, Json& scenario) {
  constexpr double kFar = 1000;
  scenario["calibration"] = {
      {"parameters", {{key, {{"start", start}, {"min", start / kFar}, {"max", start * kFar}}}}},
      {"each", {"cluster.nodes"}}};
  for (const auto& [nodes, seconds] : steps) {
    scenario["sweep"]["cluster.nodes"].push_back(nodes);
    scenario["published"].push_back({{"strategy", scenario["baseline"]},
                                     {"sweep", {{"cluster.nodes", nodes}}},
                                     {"step_time_s", seconds},
                                     {"use", "calibrated"},
                                     {"source", "measured, as given to init"}});
  }
}

// Returns true if a step on one node is shorter with free launches than with free products.
bool waits_for_host(const Json& alone) {
  const Scenario scenario = input::parse_scenario(input::document_of("init", alone));
  const OperatorList& list = scenario.workload.operators;
  if (list.empty()) return false;
  constexpr double kFast = 1e6;
  Device host = scenario.cluster.device;
  Device products = host;
  host.launch = 0;
  products.flops *= kFast;
  products.half_flops *= kFast;
  return operators::evaluate_operators(list, host).all() <
         operators::evaluate_operators(list, products).all();
}

// Adds measured steps. One node's step fits the rate of products, or the host's time per launch.
// Steps of several nodes fit the bandwidth of the ports between them, count by count. The most
// nodes come first, as other verbs take the first.
void add_steps(const InitOptions& options, const KnownNode& node, Begun& begun) {
  std::vector<std::pair<int, Seconds>> across;
  for (const auto& step : options.steps) {
    if (step.first > 1) across.push_back(step);
  }
  std::ranges::sort(across, std::greater<>());
  Json& scenario = begun.scenario;
  const Json operators = scenario["workload"].value("operators", Json::object());
  const char* rate = operators.value("dtype", "fp32") != "fp32" ? "half_tflops" : "tflops";
  const auto one = std::ranges::find(options.steps, 1, &std::pair<int, Seconds>::first);
  if (one != options.steps.end()) {
    Json alone = scenario;
    alone["cluster"]["nodes"] = 1;
    const bool host = waits_for_host(alone);
    const char* key = host ? "launch_us" : rate;
    constexpr double kStart = 50;
    fit_to_steps({*one}, std::string("cluster.device.") + key,
                 host ? hardware::kLaunch / kMicrosecond : kStart, alone);
    const auto fitted = measure::calibrate_document(input::document_of("init", alone)).document;
    Json& device = scenario["cluster"]["device"];
    device["base"] = node.device;
    device[key] = fitted.root["cluster"]["device"][key];
    begun.assumed.emplace_back(
        std::string(host ? "the host's time for a launch" : "the rate of products") +
        " from the step on one node, the rest as predicted");
  }
  if (across.empty()) return;
  fit_to_steps(across, "cluster.inter.bandwidth_gbps", node.outside.bandwidth / kGigabitPerSecond,
               scenario);
  begun.assumed.emplace_back(
      "between nodes whatever explains the measured steps" +
      std::string(one == options.steps.end()
                      ? ", with computation as predicted: a step on one node "
                        "(--step 1=SECONDS) tells it"
                      : ""));
}

}  // namespace

void set_batch(Json& workload, std::int64_t batch) {
  const double before = workload.value("batch", 1.0);
  workload["batch"] = batch;
  if (workload.contains("tensors")) scale_tensors(workload, static_cast<double>(batch) / before);
}

namespace {

// Moves flags after a file of settings into `flags`; after a model they are the settings.
InitOptions with_flags_in_place(InitOptions options) {
  if (!options.settings.starts_with("--") || !options.flags.empty()) return options;
  std::error_code error;
  if (!std::filesystem::is_regular_file(options.model, error)) return options;
  if (!read_settings(options.model, options.settings)) return options;
  std::swap(options.flags, options.settings);
  return options;
}

// Reads the settings of a framework that were given in place of a model, or next to one.
std::optional<Settings> settings_of(const InitOptions& given) {
  if (given.tensors && given.settings.empty()) return std::nullopt;
  const std::string& text = given.settings.empty() ? given.model : given.settings;
  std::optional<Settings> settings = read_settings(text, given.flags, given.launch);
  std::error_code error;
  const bool path = text.find('/') != std::string::npos || text.find('.') != std::string::npos;
  if (!settings && !given.settings.empty() && path && !std::filesystem::exists(text, error)) {
    throw InputError(text + ": no such file of settings");
  }
  if (!settings && (!given.settings.empty() || !given.flags.empty())) {
    throw InputError(text +
                     ": no settings that are known: Megatron's flags or YAML, Megatron-Bridge's "
                     "run_config.yaml, torchtitan's TOML, DeepSpeed's JSON, accelerate's YAML, the "
                     "Trainer's arguments");
  }
  return settings;
}

// Takes a model's file that settings alone name, as if it had been given before them.
void take_named_file(const std::optional<Settings>& settings, InitOptions& options) {
  if (!settings || settings->model.empty() || !options.settings.empty()) return;
  options.settings = std::exchange(options.model, settings->model);
}

// Fills in DeepSpeed's sizes that are "auto", by the width of the model.
void fill_auto_sizes(const Json& workload, Settings& settings, std::vector<std::string>& assumed) {
  if (settings.strategy.value("dialect", "") != "deepspeed") return;
  std::vector<std::string> filled;
  frameworks::fill_auto_sizes(hidden_of(workload), settings.strategy["config"], filled);
  assumed.insert(assumed.end(), filled.begin(), filled.end());
  settings.assumed.insert(settings.assumed.end(), filled.begin(), filled.end());
}

// The machines, as the options and a cluster's file say.
struct Machines {
  KnownNode node;
  bool listed = false;      // a name of catalogue/hardware's
  Json measured = nullptr;  // the cluster's file
  std::vector<std::string> assumed;
  std::string undecided;  // a guess that decides an answer; empty: there is none
};

int gpus_of(const Machines& machines, const InitOptions& options) {
  return machines.listed ? machines.node.gpus : options.gpus;
}

bool is_roce(const std::string& net) { return net.ends_with(":roce"); }

// Reads the file of --cluster. Its nodes and GPUs are those of its logs, if nobody gave others.
Json cluster_file(InitOptions& options) {
  if (options.cluster.empty()) return nullptr;
  Json cluster = read_json_file(options.cluster);
  if (!cluster.is_object() || !cluster.contains("gpus_per_node")) {
    throw InputError("--cluster: found " + options.cluster +
                     ", expected a cluster as syncline calibrate logs -o writes it");
  }
  if (options.nodes == 0) options.nodes = cluster.value("nodes", 1);
  if (options.gpus == 0) options.gpus = cluster.value("gpus_per_node", 1);
  if (!options.node.empty() || !options.gpu.empty()) return cluster;
  const Json device = cluster.value("device", Json::object());
  options.node = cluster.value("node", "");
  options.gpu = device.is_string() ? device.get<std::string>() : device.value("base", "");
  if (options.node.empty() && options.gpu.empty()) {
    throw InputError("--cluster: " + options.cluster +
                     " does not say which GPUs these are; give --gpu or --node");
  }
  if (!options.node.empty()) options.gpu.clear();
  return cluster;
}

// Returns the number of nodes for the settings' processes; 0: they do not say.
int nodes_for(const std::optional<Settings>& settings, int gpus) {
  constexpr std::int64_t kMaxNodes = 100000;
  const std::int64_t ranks = settings ? settings->ranks : 0;
  const bool whole = ranks > gpus && ranks % gpus == 0 && ranks / gpus <= kMaxNodes;
  return whole ? static_cast<int>(ranks / gpus) : 0;
}

// Returns the GPUs of a node by a launch that says its nodes and processes; 0: it does not. `nodes`
// are those asked for; 0: none are.
int gpus_for(const std::optional<Settings>& settings, std::int64_t nodes) {
  if (!settings) return 0;
  if (nodes == 0) nodes = settings->nodes;
  const bool whole = nodes > 0 && settings->ranks > nodes && settings->ranks % nodes == 0;
  return whole ? static_cast<int>(settings->ranks / nodes) : 0;
}

Machines machines_of(const std::optional<Settings>& settings, InitOptions& options) {
  Machines machines;
  const bool asked = options.nodes > 0;
  const int launched = options.gpus > 0 ? 0 : gpus_for(settings, options.nodes);
  machines.measured = cluster_file(options);
  const bool shaped = launched > 0 && options.node.empty();
  if (shaped) options.gpus = launched;
  options.gpus = std::max(options.gpus, 1);
  const bool file = is_topology_file(options.node);
  machines.listed = !options.node.empty() && !file;
  machines.node = machines.listed        ? node_named(options.node)
                  : options.node.empty() ? own_node(options.gpu, options.gpus, options.net)
                                         : nccl_node(options.node, options.gpu, options.net);
  const int started = asked ? 0 : nodes_for(settings, machines.node.gpus);
  options.nodes = started > 0 ? started : std::max(options.nodes, 1);
  const bool linked = machines.node.outside.count > 0 || machines.measured.is_object();
  if (options.nodes > 1 && !linked) {
    throw InputError("--net: missing; give the port of a node, such as 25gbit");
  }
  machines.assumed = assumed_of(machines.node, hardware::device_of(machines.node));
  if (shaped) {
    machines.assumed.push_back(std::to_string(launched) + " GPUs a node, for the " +
                               std::to_string(settings->ranks) +
                               " processes that the settings start (--gpus)");
  }
  if (started > 0) {
    machines.assumed.push_back(std::to_string(started) + " nodes, for the " +
                               std::to_string(settings->ranks) +
                               " processes that the settings start (--nodes)");
  }
  const Fabric fabric = machines.node.outside.fabric;
  if (is_roce(options.net)) {
    machines.assumed.insert(machines.assumed.begin(),
                            "RoCE as fast as InfiniBand of its rate: that switches pause or mark "
                            "what they cannot carry costs nothing here");
  }
  if (options.nodes > 1 && !machines.listed && fabric == Fabric::kUnknown && !options.net.empty()) {
    machines.undecided = "transport between nodes, which decides much: give --net " + options.net +
                         ":roce, :rdma (InfiniBand), :efa or :tcp";
  }
  if (machines.measured.is_object()) {
    // Measured links replace rated ones.
    constexpr std::size_t kLinks = 1;
    machines.assumed.at(kLinks) = "links of " + options.cluster + ", measured on " +
                                  std::to_string(machines.measured.value("nodes", 1)) + " x " +
                                  std::to_string(machines.measured.value("gpus_per_node", 1)) +
                                  " GPUs, for " + std::to_string(options.nodes) + " x " +
                                  std::to_string(gpus_of(machines, options));
    if (gpus_of(machines, options) > 1 && !machines.measured.contains("intra")) {
      machines.measured["intra"] = own_cluster(machines.node)["intra"];
      machines.assumed.at(kLinks) +=
          "; those inside nodes as rated, as " + options.cluster + " has none";
    }
  }
  return machines;
}

// Returns the scenario's cluster.
Json cluster_of(const Machines& machines, const InitOptions& options, const std::string& name) {
  const KnownNode& node = machines.node;
  Json cluster = machines.listed ? Json{{"node", node.name}} : own_cluster(node);
  if (machines.measured.is_object()) {
    const Json device = cluster.value("device", Json(node.device));
    cluster = machines.measured;
    if (!cluster.contains("device") && !cluster.contains("node")) cluster["device"] = device;
    cluster["gpus_per_node"] = gpus_of(machines, options);
    if (gpus_of(machines, options) == 1) cluster.erase("intra");
  }
  if (is_roce(options.net)) cluster["fabric"] = "roce";
  cluster.update({{"name", name}, {"about", about(machines.assumed)}, {"nodes", options.nodes}});
  if (options.compiled) {
    if (cluster.contains("device") && cluster["device"].is_string()) {
      cluster["device"] = {{"base", cluster["device"]}};
    }
    cluster["device"]["launch_us"] = hardware::kLaunchAtLeast / kMicrosecond;
  }
  return cluster;
}

// Returns the stage of --zero as DeepSpeed's settings.
Settings stage_settings(int stage) {
  Settings settings;
  settings.framework = "DeepSpeed";
  settings.strategy = {
      {"dialect", "deepspeed"},
      {"config", {{"bf16", {{"enabled", true}}}, {"zero_optimization", {{"stage", stage}}}}}};
  return settings;
}

// Returns the strategies of a scenario: as the settings have it, or as the options ask.
Json strategies_asked(const InitOptions& options, const std::optional<Settings>& settings,
                      const KnownDevice& device, const Json& scenario) {
  const Json& workload = scenario["workload"];
  if (options.zero || options.fsdp) {
    Json alone = scenario;
    alone["baseline"] = "DDP";
    alone["strategies"] = Json::array({{{"name", "DDP"}, {"dialect", "pytorch"}}});
    alone["strategies"][0]["config"] = Json::object();
    const Scenario read = input::parse_scenario(input::document_of("the scenario", alone));
    Json list = Json::array();
    Json written = options.zero ? settings->strategy : alone["strategies"][0];
    if (options.zero) add_samples(workload, written["config"]);
    for (const auto& [scheme, strategy] : measure::schemes_of(read, written)) {
      if (options.fsdp && scheme.dialect != "fsdp") continue;
      const bool asked = options.zero && scheme.name.ends_with(std::to_string(*options.zero));
      list.insert(asked ? list.begin() : list.end(), scheme.entry());
    }
    return list;
  }
  if (settings || cut_job(workload)) return strategies_of(settings, workload);
  return strategies_for(device, workload.value("micro_batches", std::int64_t{1}) > 1);
}

// Returns a parameter's module as a pattern: up to its last part, or to the first number in it.
std::string pattern_of(const std::string& name, bool to_number) {
  std::string pattern;
  for (std::size_t begin = 0, end = 0; (end = name.find('.', begin)) != name.npos;
       begin = end + 1) {
    const std::string part = name.substr(begin, end - begin);
    const bool number = part.find_first_not_of("0123456789") == part.npos;
    pattern += (begin == 0 ? "" : ".") + (number ? "*" : part);
    if (number && to_number) return pattern;
  }
  return to_number ? "" : pattern;
}

// Makes each module that is trained a unit of its own, next to the layers if these are units.
void wrap_trained_modules(const Json& tensors, Json& units) {
  std::set<std::string> patterns;
  for (const Json& tensor : tensors) {
    const std::string name = tensor.at("name");
    if (units == "layers") patterns.insert(pattern_of(name, true));
    if (!tensor.contains("frozen")) patterns.insert(pattern_of(name, false));
  }
  patterns.erase("");
  units = patterns;
}

bool reads_images(const Json& workload) {
  const Json tensors = workload.value("tensors", Json::array());
  return std::ranges::any_of(
      tensors, [](const Json& tensor) { return tensor.value("name", "").starts_with("vision."); });
}

// Returns the workload of the settings' adapters, and says what they are.
Json adapted(const Json& workload, Settings& settings, const InitOptions& options,
             std::vector<std::string>& assumed) {
  const std::string& dtype = options.dtype;
  const Json& said = settings.adapters;
  const Json cut = workload.value("parallel", Json::object());
  for (const auto& [degree, ways] : cut.items()) {
    if (!ways.is_number() || ways <= 1) continue;
    throw InputError("adapters: of a model that is cut (" + degree + " " + ways.dump() +
                     ") are not modelled yet: give each rank's parameters by --tensors");
  }
  std::erase(assumed, models::kUnreadQuantisation);
  const auto words = [&](const char* key) {
    return said.value(key, Json::array()).get<std::vector<std::string>>();
  };
  const models::Adapters adapters{.rank = said.at("rank").get<std::int64_t>(),
                                  .targets = words("targets"),
                                  .trained = words("trained"),
                                  .bits = said.at("bits").get<int>(),
                                  .begins = words("begins"),
                                  .frozen = words("frozen"),
                                  .usual = said.value("usual", false),
                                  .text_alone = said.value("text_alone", false)};
  const bool full = dtype == "tf32" || said.value("kept_full", false);
  const std::string kept = full ? "fp32" : dtype == "fp8" ? "bf16" : dtype;
  std::vector<std::string> unmatched;
  Json job = models::with_adapters(workload, adapters, kept, unmatched);
  double trained = 0;
  if (said.value("wrapped", false) && settings.strategy.value("dialect", "") == "fsdp") {
    wrap_trained_modules(job["tensors"], settings.strategy["config"]["units"]);
  }
  for (const Json& tensor : job["tensors"]) {
    if (tensor.contains("frozen")) continue;
    double elements = 1;
    for (const Json& extent : tensor["shape"]) elements *= extent.get<double>();
    trained += elements;
  }
  std::string text = "LoRA of rank " + std::to_string(adapters.rank) + " at ";
  for (const std::string& target : adapters.targets) text += target + ", ";
  if (adapters.targets.empty()) text += "all products but the head, ";
  if (adapters.rank == 0) text = "a part of the model, ";
  text += std::to_string(static_cast<std::int64_t>(trained)) +
          " parameters trained and sent; the others frozen in " +
          (adapters.bits > 0 ? std::to_string(adapters.bits) + " bits, unpacked at no cost" : kept);
  assumed.push_back(text);
  if (!unmatched.empty() && said != settings.parts) {
    assumed.push_back("nothing of names that no parameter begins with: " +
                      frameworks::list_words(unmatched, 4, ", "));
  }
  std::erase_if(assumed,
                [](const std::string& each) { return each.starts_with(models::kFlopsBy); });
  assumed.push_back(models::kFlopsBy + std::to_string(options.sequence.value_or(models::kTokens)) +
                    " tokens a sample, without attention's own, and no activations in memory");
  return job;
}

// Returns the model and the job; guesses are added to `assumed`.
Json workload_asked(InitOptions& options, std::optional<Settings>& settings,
                    const KnownDevice& device, std::int64_t ranks,
                    std::vector<std::string>& assumed) {
  Json workload = job_of(options, settings, assumed);
  if (settings) fill_auto_sizes(workload, *settings, assumed);
  // Facts of the settings are not guessed.
  if (settings) take_facts(*settings, options);
  if (settings) take_samples(*settings, options, ranks);
  if (settings && settings->compiled) options.compiled = true;
  const bool listed = !workload.contains("operators");
  const bool parts = settings && settings->parts.is_object() && reads_images(workload);
  if (parts) settings->adapters = settings->parts;
  const bool adapters = settings && settings->adapters.is_object();
  if (settings && (listed || adapters) && options.dtype.empty()) {
    options.dtype = device.bf16 ? "bf16" : "fp16";
  }
  if (adapters) workload = adapted(workload, *settings, options, assumed);
  if (workload.contains("operators")) {
    choose_sizes(workload, options, assumed);
    choose_dtype(workload["operators"], options, device, settings || cut_job(workload), assumed);
    if (settings && settings->autocast) workload["operators"]["autocast"] = true;
  } else {
    choose_tensors(workload, options, settings && settings->autocast, assumed);
  }
  const bool in_cut = settings || cut_job(workload);
  const bool own_kernels = settings ? !settings->modules : cut_job(workload) && !options.zero;
  choose_modules(workload, options, own_kernels, assumed);
  if (settings && settings->ranks > 0 && settings->ranks != ranks) {
    assumed.push_back(std::to_string(ranks) +
                      " GPUs, as --nodes and the node have it, in place of the " +
                      std::to_string(settings->ranks) + " processes of the settings");
  }
  if (settings && settings->nodes > 0 && settings->nodes != options.nodes) {
    assumed.push_back("nodes " + std::to_string(options.nodes) + " in place of the " +
                      std::to_string(settings->nodes) + " that the settings name (--nodes)");
  }
  choose_micro_batches(workload, options, settings, ranks, assumed);
  if (!in_cut && !options.fsdp) assume_each_sums(workload, assumed);
  if (!options.recompute.empty()) workload["activation_checkpointing"] = options.recompute;
  return workload;
}

// Throws if options do not go together.
void expect_one_scheme(const InitOptions& options, bool settings) {
  const char* option = options.zero ? "--zero" : "--fsdp";
  if (options.zero && options.fsdp) throw InputError("--zero: remove it, or --fsdp");
  if (!options.zero && !options.fsdp) return;
  if (settings) throw InputError(std::string(option) + ": remove it: the settings say the scheme");
  if (options.parallel.is_object() && !options.parallel.empty()) {
    const bool titan = options.fsdp;
    throw InputError(std::string(option) + ": Megatron trains a job that is cut by options; " +
                     (titan ? "torchtitan shards and cuts: give its TOML, which has both "
                              "(parallelism.tensor_parallel_degree)"
                            : "DeepSpeed cuts by its own settings: give its JSON"));
  }
}

}  // namespace

Begun init_scenario(const InitOptions& asked) {
  InitOptions options = with_flags_in_place(asked);
  Begun begun;
  std::optional<Settings> settings = settings_of(options);
  take_named_file(settings, options);
  expect_one_scheme(options, settings.has_value());
  const bool from_settings = settings.has_value();
  const Machines machines = machines_of(settings, options);
  const KnownNode& node = machines.node;
  options.gpus = node.gpus;
  const KnownDevice& device = hardware::device_of(node);
  InitOptions with_facts = options;  // workload_asked takes the settings' facts into them
  if (options.zero) {
    settings = stage_settings(*options.zero);
    with_facts.settings = "--zero";  // next to the model
  }
  const std::int64_t ranks = std::int64_t{options.nodes} * node.gpus;
  Json workload = workload_asked(with_facts, settings, device, ranks, begun.assumed);
  const std::string each =
      (machines.listed ? "" : std::to_string(node.gpus) + " ") + std::string(node.name);
  const std::string where = std::to_string(options.nodes) + " x " + each;
  begun.scenario = {
      {"name", workload["name"].get<std::string>() + " on " + where},
      {"about", "Written by syncline init: `about` in workload and cluster says what is assumed."},
      {"workload", std::move(workload)}};
  begun.scenario["cluster"] = cluster_of(machines, with_facts, where);
  // Each verb that reads this scenario reports the settings that no model prices.
  if (settings) {
    for (const std::string& sentence : settings->assumed) {
      begun.scenario["notes"].push_back("assumed: " + sentence);
    }
  }
  Json strategies = strategies_asked(with_facts, settings, device, begun.scenario);
  begun.scenario["baseline"] = strategies[0]["name"];
  begun.scenario["strategies"] = std::move(strategies);
  if (settings && !machines.measured.is_object()) {
    for (const std::string& said : take_nccl_variables(settings->nccl, node, begun.scenario)) {
      begun.scenario["notes"].push_back("assumed: " + said);
      begun.assumed.push_back(said);
    }
  }
  if (!machines.undecided.empty()) {
    begun.assumed.insert(begun.assumed.begin(), machines.undecided);
  }
  const bool batch_in_settings =
      settings && (settings->global_batch > 0 || settings->micro_batches > 0);
  const bool any_batch = !with_facts.batch && !with_facts.micro_batches && !batch_in_settings;
  make_fit(options,
           {.recompute = options.recompute.empty() && !from_settings,
            .batch = any_batch,
            .layout = any_batch && options.parallel.empty() && !settings && !options.fsdp},
           from_settings, begun);
  const Scenario written =
      input::parse_scenario(input::document_of("the scenario", begun.scenario));
  if (const auto loss = measure::loss_words(written, written.strategies.front())) {
    begun.assumed.push_back(*loss);
  }
  add_steps(options, node, begun);
  if (!begun.assumed.empty()) begun.scenario["workload"]["about"] = about(begun.assumed);
  begun.assumed.insert(begun.assumed.end(), machines.assumed.begin(), machines.assumed.end());
  return begun;
}

}  // namespace syncline::job
