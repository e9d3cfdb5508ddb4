#include <algorithm>
#include <array>
#include <string_view>

#include "formats/dialect/changes.h"
#include "formats/dialect/ddp_buckets.h"
#include "formats/dialect/dialects.h"
#include "formats/dialect/framework_keys.h"
#include "formats/dialect/schemes.h"
#include "formats/json/reader.h"

namespace syncline::dialect {
namespace {

// Beginnings of arguments about the exchange. Among such keys, an unknown one is refused.
constexpr std::array<std::string_view, 5> kOwn{"ddp_", "gradient_acc", "deepspeed", "fsdp",
                                               "torch"};

void pass_over_others(Reader& config) {
  for (const auto& item : config.json().items()) {
    const std::string& key = item.key();
    const bool own = std::any_of(kOwn.begin(), kOwn.end(),
                                 [&](std::string_view begin) { return key.starts_with(begin); });
    if (!own || key.starts_with("torch_")) config.find(key);
  }
}

bool has_value(Reader& config, const char* key) {
  const Json* value = config.find(key);
  return value != nullptr && !value->is_null() && *value != "" && *value != Json::array();
}

// Reads the cap. Accelerate passes on to DistributedDataParallel only arguments that differ from
// its own defaults (KwargsHandler.to_kwargs): no cap of 25.
void read_cap(Reader& config, const Workload& workload, Json& arguments,
              std::vector<std::string>& notes) {
  if (!has_value(config, "ddp_bucket_cap_mb")) return;
  const double cap = config.number("ddp_bucket_cap_mb", {0, 1e9, true});
  if (cap != kDdpCapMb) {
    arguments["bucket_cap_mb"] = cap;
    return;
  }
  const auto torch = torch_version(arguments.value("torch", "")).value_or(torch_of(workload));
  if (ddp_limits(cap, torch) == ddp_limits(std::nullopt, torch)) return;
  notes.push_back(
      "ddp_bucket_cap_mb of 25 is accelerate's default, which it does not pass on: the first "
      "bucket closes at 1 MiB as if no cap were given");
}

// Returns DistributedDataParallel's keyword arguments.
Json ddp_arguments(Reader& config, const Workload& workload, std::vector<std::string>& notes) {
  Json arguments = Json::object();
  if (config.has("torch")) arguments["torch"] = config.text("torch");
  read_cap(config, workload, arguments, notes);
  const bool recomputes = config.boolean_or("gradient_checkpointing", false);
  bool unused = !recomputes;
  if (has_value(config, "ddp_find_unused_parameters")) {
    unused = config.boolean_or("ddp_find_unused_parameters", unused);
  } else if (unused) {
    notes.push_back(
        "ddp_find_unused_parameters is not given: the Trainer sets it without "
        "gradient_checkpointing, and the graph is searched in every step");
  }
  if (config.boolean_or("torch_compile", false)) arguments["torch_compile"] = true;
  if (unused) arguments["find_unused_parameters"] = true;
  if (has_value(config, "ddp_broadcast_buffers")) {
    arguments["broadcast_buffers"] = config.boolean_or("ddp_broadcast_buffers", true);
  }
  return arguments;
}

Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool as_documents) {
  if (has_value(config, "gradient_accumulation_steps")) {
    check_micro_batches(config, "gradient_accumulation_steps",
                        config.integer("gradient_accumulation_steps", 1, 1 << 20), workload);
  }
  skip_keys(config, {"ddp_backend", "ddp_timeout"});
  if (has_value(config, "fsdp")) {
    config.fail("fsdp", "is a dialect of its own: \"dialect\": \"fsdp\" with its units");
  }
  refuse_unmodelled(config, {{"tp_size", "tensor parallelism"},
                             {"parallelism_config", "parallelism other than of the data"}});
  skip_keys(config, {"fsdp", "fsdp_config", "fsdp_min_num_params"});
  const bool half = config.boolean_or("bf16", false) || config.boolean_or("fp16", false);
  std::vector<std::string> notes;
  Reading reading;
  if (has_value(config, "deepspeed")) {
    note(notes, {{config.has("ddp_bucket_cap_mb"),
                  "ddp_bucket_cap_mb has no effect together with deepspeed"}});
    if (config.find("deepspeed")->is_string()) {
      config.fail("deepspeed", "names a file: write its content in its place");
    }
    reading = deepspeed_dialect().read(config.object("deepspeed"), workload, cluster, as_documents);
    skip_keys(config, {"torch", "ddp_find_unused_parameters", "ddp_broadcast_buffers"});
  } else {
    Json arguments = ddp_arguments(config, workload, notes);
    arguments["no_sync"] = true;  // by accelerate, around all but the last micro-batch
    note(notes, {{half,
                  "bf16 and fp16 are autocast: gradients keep the parameters' format and travel "
                  "in it"}});
    reading = pytorch_ddp_dialect().read(Reader(arguments, config.file(), config.place()), workload,
                                         cluster, as_documents);
  }
  pass_over_others(config);
  finish_keys(config, key_list("hf_trainer"), notes);
  reading.notes.insert(reading.notes.begin(), notes.begin(), notes.end());
  return reading;
}

// Returns the Trainer's words for DistributedDataParallel's, as far as it has them.
Json in_arguments(const Json& ddp, const Workload& workload) {
  Json config{{"ddp_find_unused_parameters", ddp.value("find_unused_parameters", false)}};
  if (ddp.contains("bucket_cap_mb")) config["ddp_bucket_cap_mb"] = ddp["bucket_cap_mb"];
  if (ddp.contains("broadcast_buffers")) {
    config["ddp_broadcast_buffers"] = ddp["broadcast_buffers"];
  }
  if (ddp.contains("torch_compile")) config["torch_compile"] = true;
  if (workload.micro_batches > 1) {
    config["gradient_accumulation_steps"] = workload.micro_batches;
  }
  return config;
}

// Returns true if the Trainer can express this: no list of caps, first bucket or whole graph.
bool has_words(const Json& ddp) {
  const bool whole = ddp.contains("torch_compile") && ddp["torch_compile"]["optimize_ddp"] == false;
  return !whole && !ddp.contains("bucket_cap_mb_list") &&
         !ddp.contains("_DEFAULT_FIRST_BUCKET_BYTES");
}

std::vector<Json> suggest(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                          const Workload& workload, const Cluster& cluster) {
  std::vector<Json> configs;
  const auto add_deepspeed = [&] {
    for (const auto& zero : deepspeed_dialect().suggest(strategy, buckets, workload, cluster)) {
      configs.push_back({{"deepspeed", zero}});
    }
  };
  if (shards_update(strategy)) add_deepspeed();
  for (const auto& ddp : pytorch_ddp_dialect().suggest(strategy, buckets, workload, cluster)) {
    if (has_words(ddp)) configs.push_back(in_arguments(ddp, workload));
  }
  if (!shards_update(strategy)) add_deepspeed();
  return configs;
}

Changes changes(const Json& config, const Cluster& cluster) {
  Changes changes;
  if (config.contains("deepspeed") && config["deepspeed"].is_object()) {
    for (const auto& change : deepspeed_dialect().changes(config["deepspeed"], cluster)) {
      changes.push_back({change.kind, {{"deepspeed", change.patch}}});
    }
    return changes;
  }
  changes.push_back({ChangeKind::kStreams, {{"ddp_find_unused_parameters", false}}});
  for (const int mebibytes : kTriedMebibytes) {
    changes.push_back({ChangeKind::kFusion, {{"ddp_bucket_cap_mb", mebibytes}}});
  }
  return changes;
}

std::vector<Json> candidates(const Strategy& winner, const Workload& workload,
                             const Cluster& cluster, const Partitions& partitions) {
  std::vector<Json> configs;
  for (const auto& ddp : pytorch_ddp_dialect().candidates(winner, workload, cluster, partitions)) {
    if (has_words(ddp)) configs.push_back(in_arguments(ddp, workload));
  }
  return configs;
}

// Returns DDP, and DeepSpeed's stages inside the arguments.
std::vector<Scheme> schemes(const Json& config, const Workload& workload, const Cluster& cluster) {
  const Json own = config.is_object() ? config : Json::object();
  std::vector<Scheme> list{{"DDP", "hf_trainer", patched_config(own, {{"deepspeed", nullptr}})}};
  const Json inside = own.value("deepspeed", Json());
  for (const Scheme& stage : schemes_of_framework("deepspeed", inside, workload, cluster)) {
    list.push_back({stage.name, "hf_trainer", patched_config(own, {{"deepspeed", stage.config}})});
  }
  return list;
}

void set_samples(std::int64_t batch, std::int64_t micro_batches, Json& config) {
  const char* key = "gradient_accumulation_steps";
  if (config.contains(key) && config[key].is_number()) config[key] = micro_batches;
  if (config.contains("deepspeed")) {
    set_batches("deepspeed", batch, micro_batches, config["deepspeed"]);
  }
}

}  // namespace

Dialect hf_trainer_dialect() {
  return {.name = "hf_trainer",
          .summary = "Hugging Face Trainer: ddp_bucket_cap_mb, deepspeed inside",
          .read = read,
          .suggest = suggest,
          .changes = changes,
          .defaults = {{"ddp_bucket_cap_mb", nullptr}},
          .candidates = candidates,
          .schemes = schemes,
          .set_batches = set_samples,
          .kernels = "pytorch",
          .host_share = kHooksOfPartitions,
          .host_per_layer = kHooksOfLayer,
          .cap_key = "ddp_bucket_cap_mb"};
}

}  // namespace syncline::dialect
