// Reads torchtitan's TOML. Source: pytorch/torchtitan 000204a4, torchtitan/config/job_config.py,
// distributed/pipeline.py (stages of a schedule, layers of a stage) and models/llama3.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "catalogue/architectures/architecture.h"
#include "formats/dialect/framework_keys.h"
#include "formats/json/reader.h"
#include "imports/frameworks/keys.h"
#include "imports/frameworks/settings.h"
#include "imports/models/families.h"

namespace syncline::job::frameworks {
namespace {

// A key and its section; an older configuration may have other names for both.
struct Place {
  const char* section;
  const char* key;
};

class Sections {
 public:
  Sections(const Json& toml, const std::string& file) : toml_(toml), file_(file) {}

  // Returns the section that has the key; nullptr: none.
  const Place* find(const std::vector<Place>& places) const {
    for (const Place& place : places) {
      read_[place.section].insert(place.key);
      const auto section = toml_.find(place.section);
      if (section != toml_.end() && section->is_object() && section->contains(place.key)) {
        return &place;
      }
    }
    return nullptr;
  }
  Reader reader(const Place& place) const { return {toml_[place.section], file_, place.section}; }

  std::int64_t size(const std::vector<Place>& places, std::int64_t fallback, std::int64_t least = 1,
                    std::int64_t most = kMaxRanks) const {
    const Place* place = find(places);
    return place == nullptr ? fallback : reader(*place).integer(place->key, least, most);
  }
  std::string word(const std::vector<Place>& places, const std::string& fallback) const {
    const Place* place = find(places);
    return place == nullptr ? fallback : reader(*place).text(place->key);
  }
  bool on(const std::vector<Place>& places) const {
    const Place* place = find(places);
    return place != nullptr && reader(*place).boolean_or(place->key, false);
  }
  [[noreturn]] void fail(const Place& place, const std::string& what) const {
    reader(place).fail(place.key, what);
  }

  // Returns the keys that were looked for in a section.
  const std::set<std::string>& read(const std::string& section) const { return read_[section]; }

 private:
  const Json& toml_;
  const std::string& file_;
  mutable std::map<std::string, std::set<std::string>> read_;
};

std::vector<Place> degree(const char* key) {
  return {{"parallelism", key}, {"training", key}, {"experimental", key}};
}

struct Schedules {
  const char* name;
  const char* word;     // workload.parallel.schedule
  std::int64_t stages;  // per rank, if no layers per stage are given
};
constexpr std::array<Schedules, 4> kSchedules{{{"1F1B", "1f1b", 1},
                                               {"GPipe", "gpipe", 1},
                                               {"Interleaved1F1B", "interleaved", 2},
                                               {"InterleavedZeroBubble", "interleaved", 2}}};

// Returns the model's name with its flavor, "qwen3_8B"; empty: none is given.
std::string model_name(const Sections& toml) {
  const std::string model = toml.word({{"model", "name"}}, "");
  const std::string flavor = toml.word({{"model", "flavor"}}, "");
  if (model == "llama3" && flavor == "405B") return "llama3.1_405b";
  if (model == "deepseek_v3" && flavor == "671B") return model;
  return model.empty() || flavor.empty() ? model : model + "_" + flavor;
}

// Layout of the model that the settings name.
struct Layout {
  std::int64_t layers = 0;
  bool tied = false;  // head and embedding are one tensor
};
std::optional<Layout> known_layout(const Sections& toml) {
  const std::string plain = models::plain_name(model_name(toml));
  for (const operators::Architecture& row : operators::architectures()) {
    if (models::plain_name(row.name) == plain) return Layout{row.shape.layers, row.shape.tied};
  }
  const std::string* name = models::find_named(plain);
  if (name == nullptr) return std::nullopt;
  const Json& config = models::named_configs().at(*name);
  return Layout{config.value("num_hidden_layers", std::int64_t{0}),
                config.value("tie_word_embeddings", false)};
}

// Returns the stages by the layers of each; the embedding and the head count as one layer each.
std::int64_t stages_of(const Sections& toml, std::int64_t pipeline, std::int64_t usual) {
  const Place each{"parallelism", "pipeline_parallel_layers_per_stage"};
  const std::int64_t layers_a_stage = toml.size({each}, 0, 1, operators::kMaxLayers);
  if (layers_a_stage == 0) return usual;
  const std::optional<Layout> known = known_layout(toml);
  if (!known) {
    toml.fail(each,
              "says the stages of a model whose layers are not known: --vp says how many a "
              "rank has");
  }
  const std::int64_t layers = known->layers + 2;
  const std::int64_t stages = (layers + layers_a_stage - 1) / layers_a_stage;
  if (stages % pipeline != 0) {
    toml.fail(each, std::to_string(layers) +
                        " layers, embedding and head among them, in stages of " +
                        std::to_string(layers_a_stage) + " are " + std::to_string(stages) +
                        ", no multiple of " + std::to_string(pipeline) + " ranks");
  }
  return stages / pipeline;
}

void read_pipeline(const Sections& toml, Json& parallel, Settings& settings) {
  const std::int64_t pipeline = toml.size(degree("pipeline_parallel_degree"), 1);
  if (pipeline == 1) return;
  const Place split{"parallelism", "pipeline_parallel_split_points"};
  if (toml.find({split}) != nullptr && !toml.reader(split).array(split.key).empty()) {
    toml.fail(split, "a layout by its layers is not modelled yet");
  }
  parallel["pipeline"] = pipeline;
  const std::vector<Place> place = degree("pipeline_parallel_schedule");
  const std::string name = toml.word(place, "1F1B");
  const auto known =
      std::ranges::find_if(kSchedules, [&](const Schedules& s) { return name == s.name; });
  if (known == kSchedules.end()) {
    toml.fail(*toml.find(place), "the schedule '" + name + "' is not modelled yet: 1F1B, GPipe, " +
                                     "Interleaved1F1B are");
  }
  if (name == "InterleavedZeroBubble") {
    settings.assumed.emplace_back("the schedule Interleaved1F1B in place of InterleavedZeroBubble");
  }
  const std::int64_t stages = stages_of(toml, pipeline, known->stages);
  if (stages > 1) parallel["virtual_stages"] = stages;
  if (stages == 1 && std::string(known->word) != "interleaved") parallel["schedule"] = known->word;
}

// Reads the samples of a rank's micro-batch, and the number of micro-batches in a step.
void read_batches(const Sections& toml, bool pipelined, Settings& settings) {
  const Place local{"training", "local_batch_size"}, older{"training", "batch_size"};
  std::int64_t samples = toml.size({local, older}, 0, 1, kMaxSamples);
  settings.global_batch = toml.size({{"training", "global_batch_size"}}, 0, -1, kMaxSamples);
  if (settings.global_batch < 0) settings.global_batch = 0;
  // Some branches of torchtitan say the micro-batches themselves.
  const Place steps{"training", "gradient_accumulation_steps"};
  const std::int64_t accumulated = toml.size({steps}, 1, 1, kMaxSamples);
  if (accumulated > 1 && (pipelined || settings.global_batch > 0)) {
    toml.fail(steps, pipelined
                         ? "does not go with a pipeline, whose micro-batches it does not say"
                         : "does not go with training.global_batch_size: give one of the two");
  }
  if (samples == 0) return;
  if (settings.global_batch == 0) settings.micro_batches = accumulated;
  if (pipelined) {
    // A pipeline divides its samples into micro-batches of a given size. In older versions their
    // number was given, by default that of the ranks (parallelisms/pipelining_utils.py).
    const Place size{"parallelism", "pipeline_parallel_microbatch_size"};
    const std::vector<Place> count = degree("pipeline_parallel_microbatches");
    const std::int64_t ranks = toml.size(degree("pipeline_parallel_degree"), 1);
    const bool counted = toml.find(count) != nullptr ||
                         toml.find({{"experimental", "pipeline_parallel_degree"}}) != nullptr;
    if (counted) {
      const std::int64_t batches = toml.size(count, ranks, 1, kMaxSamples);
      if (samples % batches != 0) {
        toml.fail(*toml.find({local, older}), "is " + std::to_string(samples) +
                                                  ", no multiple of " + std::to_string(batches) +
                                                  " micro-batches");
      }
      settings.workload["batch"] = samples / batches;
      if (settings.global_batch == 0) settings.micro_batches = batches;
      return;
    }
    const std::int64_t each = toml.size({size}, 1, 1, kMaxSamples);
    if (samples % each != 0) {
      toml.fail(size, "is " + std::to_string(each) + ", no divisor of the " +
                          std::to_string(samples) + " samples of a rank");
    }
    if (settings.global_batch == 0) settings.micro_batches = samples / each;
    samples = each;
  }
  settings.workload["batch"] = samples;
}

// The modules that torchtitan wraps, and those that "default" does not gather again.
struct Wrapped {
  Json units;
  Json kept;
  bool root = false;  // the root is told too if it is gathered again
};

// Returns the units. Since 0.2 (distributed/fsdp.py in 0.3, models/llama3/infra/parallelize.py
// before) norm, head and a tied embedding are one unit; only "always" gathers it again, and the
// root is told nothing. In 0.1 all three are the root's, which is told, and the last layer stays
// gathered.
Wrapped wrapped(const Sections& toml, std::vector<std::string>& assumed) {
  const bool newer = toml.find({{"compile", "enable"},
                                {"model", "hf_assets_path"},
                                {"checkpoint", "enable"},
                                {"parallelism", "expert_parallel_degree"},
                                {"validation", "enable"}}) != nullptr;
  const bool older = toml.find({{"training", "compile"},
                                {"training", "data_parallel_shard_degree"},
                                {"training", "tensor_parallel_degree"},
                                {"training", "batch_size"},
                                {"model", "tokenizer_path"},
                                {"checkpoint", "enable_checkpoint"}}) != nullptr;
  const std::optional<Layout> known = known_layout(toml);
  if (older && !newer) {
    Json last = Json::array();
    if (known) last.push_back("model.layers." + std::to_string(known->layers - 1));
    return {{"model.layers.*"}, std::move(last), true};
  }
  if (!newer) {
    assumed.emplace_back("torchtitan 0.2 or later, which wraps embedding, norm and head apart");
  }
  if (known && known->tied) {
    assumed.emplace_back(
        "a tied embedding gathered once; torchtitan 0.2 gathers it for itself and for the head");
    return {{{"model.embed_tokens", "model.norm"}, "model.layers.*"}, {"model.norm"}, false};
  }
  return {
      {{"model.norm", "lm_head"}, "model.layers.*", "model.embed_tokens"}, {"model.norm"}, false};
}

// Returns the strategy: shards are divided with the sequence's; replicas without shards use DDP.
Json strategy_of(const Sections& toml, const Json& parallel, std::vector<std::string>& assumed) {
  const Place place{"parallelism", "fsdp_reshard_after_forward"};
  const std::string reshard = toml.word({place}, "default");
  if (reshard != "default" && reshard != "always" && reshard != "never") {
    toml.fail(place, "found '" + reshard + "', expected default, always or never");
  }
  const std::int64_t replicas = toml.size(degree("data_parallel_replicate_degree"), 1);
  std::vector<Place> sharded = degree("data_parallel_shard_degree");
  sharded.push_back({"training", "data_parallel_degree"});  // in 2024
  const std::int64_t shards = toml.size(sharded, -1, -1);
  const std::int64_t context = parallel.value("context", std::int64_t{1});
  // Shards are those of the data and of the sequence together.
  if (shards == 1 && context == 1 && replicas > 1) {
    const bool alone = !parallel.contains("tensor") && !parallel.contains("pipeline");
    if (!alone &&
        toml.word({{"model", "name"}}, "llama3") == "llama3") {  // only there it is checked
      toml.fail(*toml.find(degree("data_parallel_replicate_degree")),
                "replicas without shards next to tensor or pipeline parallelism, which torchtitan "
                "refuses: DDP has not supported > 1D parallelism");
    }
    return {{"dialect", "pytorch"}, {"config", {{"bucket_cap_mb", 100}}}};
  }
  const bool again =
      reshard == "always" || (reshard == "default" && !parallel.contains("pipeline"));
  Wrapped own = wrapped(toml, assumed);
  Json config{{"version", 2}, {"units", std::move(own.units)}};
  if (!again || own.root) config["reshard_after_forward"] = again;
  if (again && reshard == "default" && !own.kept.empty()) {
    config["not_resharded"] = std::move(own.kept);
  }
  if (shards > 0 || replicas > 1) {
    const std::int64_t group = shards > 0 ? shards * context : -1;  // -1: all others
    config["mesh"] = replicas > 1 ? Json{replicas, group} : Json{group};
  }
  if (toml.on({{"training", "enable_cpu_offload"}})) config["offload_policy"] = "CPUOffloadPolicy";
  const std::string parameters = toml.word({{"training", "mixed_precision_param"}}, "bfloat16");
  if (parameters != "float32") {
    config["mp_policy"] = {{"param_dtype", parameters}, {"reduce_dtype", "float32"}};
  }
  return {{"dialect", "fsdp"}, {"config", std::move(config)}};
}

void read_model(const Sections& toml, Settings& settings) {
  Json operators{{"dtype", "bf16"}};
  const Place length{"training", "seq_len"};
  if (toml.find({length}) != nullptr) {
    operators["sequence"] = toml.size({length}, 1, 1, operators::kMaxVocabulary);
  }
  settings.workload["operators"] = std::move(operators);
  if (const std::string name = model_name(toml); !name.empty()) take_model_named(name, settings);
}

// Reads recomputation: selective repeats layers at multiples of selective_ac_option, or of each
// layer every second product and all cheap operators ("op")
// (models/llama3/infra/parallelize.py, distributed/activation_checkpoint.py).
void read_recomputation(const Sections& toml, Settings& settings) {
  const Place mode{"activation_checkpoint", "mode"};
  const Place option{"activation_checkpoint", "selective_ac_option"};
  const std::string again = toml.word({mode}, "selective");
  const std::string every = toml.word({option}, "2");
  if (again == "none") return;
  if (again == "selective" && every == "op") {
    settings.workload["activation_checkpointing"] = "products";
    return;
  }
  if (again != "full" && again != "selective") {
    toml.fail(mode, "found '" + again + "', expected none, selective or full");
  }
  settings.workload["activation_checkpointing"] = "full";
  if (again == "full") return;
  constexpr std::int64_t kMaxEvery = operators::kMaxLayers;
  std::int64_t layers = 0;
  const auto [end, error] = std::from_chars(every.data(), every.data() + every.size(), layers);
  if (error != std::errc() || end != every.data() + every.size() || layers < 1 ||
      layers > kMaxEvery) {
    toml.fail(option, "found '" + every +
                          "', expected op, or a number of layers: the last one is "
                          "computed again");
  }
  if (layers > 1) settings.workload["checkpointing_every"] = layers;
}

// Names keys that no reader evaluates. In the oldest files the degrees are in other sections.
void name_unread(const Json& json, const Sections& toml, std::vector<std::string>& assumed) {
  const std::vector<std::string> lists = dialect::key_list_names();
  std::string left;
  for (const auto& [section, keys] : json.items()) {
    const std::string list = "torchtitan." + section;
    const bool older = section == "training" || section == "experimental";
    if (!keys.is_object() || std::ranges::find(lists, list) == lists.end()) continue;
    const std::set<std::string>& read = toml.read(section);
    const std::string own =
        older ? unread_keys(keys, section, {list, "torchtitan.parallelism"}, read, assumed)
              : unread_keys(keys, section, {list}, read, assumed);
    if (!own.empty()) left += (left.empty() ? "" : ", ") + own;
  }
  if (!left.empty()) assumed.push_back("nothing gained or lost by what is left out: " + left);
}

}  // namespace

Settings of_torchtitan(const Json& json, const std::string& file) {
  const Sections toml(json, file);
  const Place replicas{"fault_tolerance", "enable"};
  if (toml.on({replicas})) {
    toml.fail(replicas,
              "groups of torchft sum gradients besides, which is not read: write "
              "them in a scenario with \"dialect\": \"torchft\"");
  }
  Settings settings;
  settings.framework = "torchtitan";
  settings.compiled = toml.on({{"compile", "enable"}, {"training", "compile"}});
  settings.autocast = true;
  Json parallel = Json::object();
  const std::int64_t tensor = toml.size(degree("tensor_parallel_degree"), 1);
  if (tensor > 1) parallel["tensor"] = tensor;
  // Norms and residuals are cut with it unless the setting is off.
  if (tensor > 1) parallel["sequence"] = true;
  const std::int64_t context = toml.size(degree("context_parallel_degree"), 1);
  if (context > 1) parallel["context"] = context;
  const std::int64_t expert = toml.size(degree("expert_parallel_degree"), 1);
  if (expert > 1) parallel["expert"] = expert;
  const std::int64_t expert_tensor = toml.size(degree("expert_tensor_parallel_degree"), 1);
  if (expert_tensor > 1) parallel["expert_tensor"] = expert_tensor;
  read_pipeline(toml, parallel, settings);
  const bool pipelined = parallel.contains("pipeline");
  if (!parallel.empty()) settings.workload["parallel"] = parallel;
  read_model(toml, settings);
  read_batches(toml, pipelined, settings);
  read_recomputation(toml, settings);
  settings.strategy = strategy_of(toml, parallel, settings.assumed);
  // A key of files up to 0.1.
  if (toml.on({{"float8", "enable_float8_linear"}})) {
    settings.assumed.emplace_back(
        "products in bf16, where float8.enable_float8_linear has them in fp8 (--dtype fp8)");
  }
  name_unread(json, toml, settings.assumed);
  return settings;
}

}  // namespace syncline::job::frameworks
