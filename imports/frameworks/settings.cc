#include "imports/frameworks/settings.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/error.h"
#include "formats/dialect/framework_keys.h"
#include "formats/dialect/megatron.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/text/files.h"
#include "formats/text/visible.h"
#include "imports/frameworks/keys.h"
#include "imports/frameworks/shell.h"
#include "imports/nccl_variables.h"

namespace syncline::job {
namespace {

constexpr long long kLargest = 1 << 20;

bool is_deepspeed(const Json& json) {
  return std::ranges::any_of(
      std::array{"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu"},
      [&](const char* key) { return json.contains(key); });
}

bool is_torchtitan(const Json& toml) {
  return std::ranges::any_of(
      std::array{"model", "training", "parallelism", "job", "activation_checkpoint"},
      [&](const char* key) { return toml.contains(key) && toml[key].is_object(); });
}

// Refuses flags after a file: only Megatron's settings take them.
void expect_no_flags(const std::string& more, const std::string& name) {
  if (more.empty()) return;
  throw InputError(name + ": flags behind it (" + more +
                   ") go with Megatron's settings alone: write them in it, or give --tp, --batch "
                   "and the like");
}

[[noreturn]] void refuse_other(const std::string& name, const std::string& what) {
  throw InputError(name + ": " + what);
}

Settings with_flags(Json flags, const std::string& more, const std::string& name,
                    const std::string& script) {
  flags.update(frameworks::flags_of(more));
  return frameworks::of_megatron(flags, name, script);
}

// Reads the files at the start of `more`, and removes their names from it.
std::vector<Json> files_ahead(std::string& more) {
  std::vector<Json> files;
  while (!more.empty() && !more.starts_with("--")) {
    const std::string file = more.substr(0, more.find(' '));
    more.erase(0, std::min(more.size(), file.size() + 1));
    const std::string content = read_text_file(file, "settings of a framework");
    files.push_back(file.ends_with(".json") ? parse_json_text(file, content)
                                            : parse_yaml(file, content));
  }
  return files;
}

// Reads settings of Hugging Face's libraries in one file, with those of the further files and flags
// in `more`.
Settings of_hugging_face(const Json& settings, std::string more, const std::string& name) {
  Json arguments = Json::object(), launch = Json::object();
  const auto take = [&](const Json& json) {
    (frameworks::is_accelerate(json) ? launch : arguments).update(json);
  };
  take(settings);
  for (const Json& file : files_ahead(more)) take(file);
  if (!more.empty()) arguments.update(frameworks::with_underscores(frameworks::flags_of(more)));
  return frameworks::of_hugging_face(arguments, launch, name);
}

// Reads the settings of a trainer with keys of its own for layout and samples.
std::optional<Settings> of_layout_trainers(const Json& all, const std::string& more,
                                           const std::string& name) {
  using Reads = Settings (*)(const Json&, const std::string&);
  constexpr std::pair<bool (*)(const Json&), Reads> kTrainers[]{
      {frameworks::is_automodel, frameworks::of_automodel},
      {frameworks::is_torchtune, frameworks::of_torchtune},
      {frameworks::is_litgpt, frameworks::of_litgpt},
      {frameworks::is_mindformers, frameworks::of_mindformers},
      {frameworks::is_paddle_nlp, frameworks::of_paddle_nlp}};
  for (const auto& [is_its, read] : kTrainers) {
    if (!is_its(all)) continue;
    expect_no_flags(more, name);
    return read(all, name);
  }
  return std::nullopt;
}

// Reads the YAML of a framework with its own format for its trainer.
std::optional<Settings> of_trainers_yaml(const Json& yaml, std::string more,
                                         const std::string& name) {
  if (frameworks::is_nemo(yaml)) {
    return frameworks::of_nemo(yaml, frameworks::flags_of(more), name);
  }
  if (frameworks::is_neox(yaml)) {
    Json all = yaml;
    for (const Json& file : files_ahead(more)) all.update(file);
    return frameworks::of_neox(all, frameworks::flags_of(more), name);
  }
  if (const auto read = of_layout_trainers(yaml, more, name)) return read;
  const bool composer = frameworks::is_composer(yaml);
  if (!composer && !frameworks::is_lightning(yaml)) return std::nullopt;
  expect_no_flags(more, name);
  return composer ? frameworks::of_composer(yaml, name) : frameworks::of_lightning(yaml, name);
}

Settings of_yaml(const Json& yaml, const std::string& more, const std::string& name) {
  if (frameworks::is_bridge_yaml(yaml)) {
    std::vector<std::string> notes;
    Settings settings = with_flags(frameworks::flags_of_bridge(yaml, name, notes), more, name, "");
    settings.framework = "Megatron-Bridge";
    settings.modules = false;
    settings.assumed.insert(settings.assumed.begin(), notes.begin(), notes.end());
    return settings;
  }
  if (const auto settings = of_trainers_yaml(yaml, more, name)) return *settings;
  if (const std::string other = frameworks::other_framework(yaml); !other.empty()) {
    refuse_other(name, other);
  }
  const bool zero = yaml.is_object() && yaml.contains("zero_optimization");
  if (zero && !frameworks::has_any(yaml, {"per_device_train_batch_size", "model_name_or_path"})) {
    expect_no_flags(more, name);
    return frameworks::of_deepspeed(yaml, name);
  }
  if (frameworks::is_accelerate(yaml) || frameworks::is_trainer(yaml)) {
    return of_hugging_face(yaml, more, name);
  }
  if (yaml.is_object() && frameworks::is_megatron_yaml(yaml)) {
    return with_flags(frameworks::flags_of_yaml(yaml), more, name, "");
  }
  throw InputError(name +
                   ": no settings of Megatron's, accelerate's or the Trainer's, nor of another "
                   "framework that is read: options say a job too (syncline init MODEL --zero 2, "
                   "--fsdp or --tp N, --batch N, --sequence N)");
}

// Refuses a Python script: its settings exist only when it runs.
void refuse_python(const std::string& content, const std::string& name) {
  for (const auto& [import, instead] :
       {std::pair{"paddle",
                  "write the strategy that it sets in a scenario with \"dialect\": "
                  "\"paddle\""},
        {"mindspore",
         "write the context that it sets in a scenario with \"dialect\": "
         "\"mindspore\""}}) {
    if (content.find(std::string("import ") + import) == content.npos &&
        content.find(std::string("from ") + import) == content.npos) {
      continue;
    }
    refuse_other(name, std::string("a Python script, which is not read: ") + instead);
  }
  refuse_other(name,
               "a Python script, which is not read: `syncline record` observes it while it runs");
}

bool is_script(const std::string& content, const std::string& name) {
  const std::string first = content.substr(0, content.find('\n'));
  if (first.starts_with("#!") && first.find("sh") != first.npos) return true;
  return std::ranges::any_of(std::array{".sh", ".bash", ".slurm", ".sbatch"},
                             [&](const char* end) { return name.ends_with(end); });
}

bool is_hugging_face(const frameworks::TrainingCommand& training) {
  return training.program == "accelerate" || frameworks::is_trainer(training.flags) ||
         frameworks::has_any(training.flags, {"deepspeed", "deepspeed-config"});
}

// Reads a file that a launch names as its script's settings; null for other words.
Json content_of_config(const std::string& file, const std::string& launch) {
  std::error_code error;
  if (std::filesystem::is_regular_file(file, error)) {
    return parse_yaml(file, read_text_file(file, "settings of a framework"));
  }
  const bool yaml = file.ends_with(".yaml") || file.ends_with(".yml");
  if (yaml || file.ends_with(".json")) {
    refuse_other(launch, "names " + file +
                             ", which is not here: run init where it is, as it may say samples "
                             "and precision");
  }
  return nullptr;
}

// Reads a script under accelerate, or one with the Trainer's arguments; `config` is their file.
Settings of_launch(const frameworks::TrainingCommand& training, const std::string& more,
                   const std::string& name) {
  Json flags = training.flags;
  if (flags.contains("deepspeed-config")) flags["deepspeed"] = flags["deepspeed-config"];
  if (flags.value("deepspeed", Json()) == true) flags.erase("deepspeed");
  // Defaults of these programs (ms-swift 4.6, trl 1.16).
  if (training.program == "swift" &&
      !frameworks::has_any(flags, {"tuner-type", "train-type", "sft-type"})) {
    flags["tuner-type"] = "lora";
  }
  if (training.program == "trl") {
    if (!flags.contains("gradient-checkpointing")) flags["gradient-checkpointing"] = true;
    if (!frameworks::has_any(flags, {"bf16", "fp16"})) flags["bf16"] = true;
  }
  Json arguments = Json::object();
  std::vector<Json> files = training.settings;
  if (flags.contains("config")) files.push_back(flags["config"]);
  for (Json& content : files) {
    const std::string file = content.is_string() ? content.get<std::string>() : "";
    if (!file.empty()) content = content_of_config(file, name);
    if (content.is_object()) arguments.update(content);
  }
  const std::string other = frameworks::other_trainer(arguments);
  if (!other.empty()) refuse_other(name, other);
  arguments.update(frameworks::with_underscores(flags));
  arguments.update(frameworks::with_underscores(frameworks::flags_of(more)));
  if (frameworks::is_paddle_nlp(arguments)) return frameworks::of_paddle_nlp(arguments, name);
  // Variables of accelerate's plugin, which the Trainer's own option leaves as they are.
  for (const auto& [variable, value] : training.environment) {
    const std::string key = frameworks::lower(variable);
    const bool sharding = key.starts_with("fsdp_") && arguments.contains("fsdp");
    if (sharding && !arguments.contains(key)) arguments[key] = value;
  }
  std::vector<std::string> guessed;
  const Json launch = training.program == "accelerate"
                          ? frameworks::launch_settings(training.launch, name, guessed)
                          : Json::object();
  Settings settings = frameworks::of_hugging_face(arguments, launch, name);
  settings.assumed.insert(settings.assumed.begin(), guessed.begin(), guessed.end());
  settings.assumed.insert(settings.assumed.begin(), training.said.begin(), training.said.end());
  return settings;
}

// Reads the flags that horovodrun makes variables (horovod/runner/common/util/config_parser.py).
Settings of_horovodrun(const frameworks::TrainingCommand& training) {
  constexpr double kMiB = 1 << 20;
  const Json& flags = training.launch;
  Json config = Json::object();
  const auto take = [&](const std::string& name, const std::string& value) {
    if (name.starts_with("HOROVOD_")) config[name] = number_or_text(value);
  };
  for (const auto& [variable, value] : training.environment) take(variable, value);
  for (const std::string& word : training.around) {
    const std::size_t equals = word.find('=');  // mpirun -x NAME=VALUE
    if (equals != word.npos) take(word.substr(0, equals), word.substr(equals + 1));
  }
  if (const Json size = flags.value("fusion-threshold-mb", Json()); size.is_number()) {
    config["HOROVOD_FUSION_THRESHOLD"] = static_cast<std::int64_t>(size.get<double>() * kMiB);
  }
  if (flags.contains("cycle-time-ms")) config["HOROVOD_CYCLE_TIME"] = flags["cycle-time-ms"];
  for (const auto& [flag, name] :
       {std::pair{"hierarchical-allreduce", "HOROVOD_HIERARCHICAL_ALLREDUCE"},
        {"hierarchical-allgather", "HOROVOD_HIERARCHICAL_ALLGATHER"},
        {"autotune", "HOROVOD_AUTOTUNE"}}) {
    if (flags.contains(flag)) config[name] = 1;  // the command follows, which looks like a value
  }
  if (flags.contains("cache-capacity")) config["HOROVOD_CACHE_CAPACITY"] = flags["cache-capacity"];
  Settings settings;
  settings.framework = "Horovod";
  settings.autocast = true;  // if the device has a half precision; none is given
  settings.strategy = {{"dialect", "horovod"}, {"config", std::move(config)}};
  Json batch;
  for (const char* key : {"per-device-train-batch-size", "train-batch-size", "batch-size"}) {
    if (training.flags.contains(key)) batch = training.flags[key];
  }
  if (batch.is_number_integer() && batch >= 1 && batch <= frameworks::kMaxSamples) {
    settings.workload["batch"] = batch;
  }
  return settings;
}

// Reads torchtitan's TOML, and the launch's flags, which name its keys.
Settings of_titan_launch(const frameworks::TrainingCommand& training, const std::string& name) {
  Json toml = Json::object();
  for (const char* key : {"job.config-file", "job.config_file"}) {
    if (!training.flags.contains(key)) continue;
    toml = training.flags[key];
    if (!toml.is_string()) continue;
    const std::string file = toml.get<std::string>();
    toml = parse_toml(file, read_text_file(file, "torchtitan's TOML"));
  }
  for (const auto& [flag, value] : training.flags.items()) {
    const std::size_t dot = flag.find('.');
    if (dot == flag.npos || flag.starts_with("job.config")) continue;
    std::string path = flag;
    std::ranges::replace(path, '-', '_');
    toml[path.substr(0, dot)][path.substr(dot + 1)] = value;
  }
  return frameworks::of_torchtitan(toml, name);
}

std::optional<Settings> of_flags(const frameworks::TrainingCommand& training,
                                 const std::string& more, const std::string& name) {
  const Json& flags = training.flags;
  Json given = frameworks::with_overrides(training);
  given.update(frameworks::with_underscores(flags));
  if (frameworks::is_paddle_nlp(given)) return frameworks::of_paddle_nlp(given, name);
  const std::string trainer = frameworks::other_trainer(frameworks::with_underscores(flags));
  if (!trainer.empty()) refuse_other(name, trainer);
  if (auto swift = frameworks::of_megatron_swift(training, name)) return swift;
  if (frameworks::marks_megatron(flags)) {
    Settings settings = with_flags(flags, more, name, training.script);
    settings.assumed.insert(settings.assumed.begin(), training.said.begin(), training.said.end());
    return settings;
  }
  const Json own = frameworks::with_overrides(training);
  if (frameworks::is_lightning(own)) return of_trainers_yaml(own, more, name);
  if (auto tuning = frameworks::of_verls_tuning(training, name)) return tuning;
  const std::string other = frameworks::other_program(training);
  if (!other.empty()) refuse_other(name, other);
  const bool horovod = std::ranges::any_of(training.environment, [](const auto& variable) {
    return variable.first.starts_with("HOROVOD_");
  });
  if (training.program == "horovodrun" || horovod) return of_horovodrun(training);
  if (frameworks::has_any(flags, {"job.config-file", "job.config_file"})) {
    return of_titan_launch(training, name);
  }
  if (const auto images = frameworks::of_image_script(training)) return images;
  if (const Json arguments = frameworks::arguments_of_openrlhf(training); arguments.is_object()) {
    Settings settings = frameworks::of_hugging_face(arguments, Json::object(), name);
    settings.framework = "OpenRLHF";
    settings.micro_batches = 0;  // the samples of a step say it
    return settings;
  }
  const bool files = std::ranges::any_of(training.settings, [](const Json& one) {
    return frameworks::is_trainer(one) || frameworks::is_accelerate(one);
  });
  if (files || is_hugging_face(training)) return of_launch(training, more, name);
  return of_trainers_yaml(own, more, name);
}

// Takes NCCL's variables of a launch that a scenario has keys for, and names the others that change
// a collective's time.
void sort_nccl_variables(std::map<std::string, std::string> environment, Settings& settings) {
  settings.nccl = known_nccl_variables(environment);
  constexpr std::array kHarmless{"NCCL_DEBUG",     "NCCL_VERSION",      "NCCL_ASYNC_ERROR",
                                 "NCCL_BLOCKING",  "NCCL_TIMEOUT",      "NCCL_IB_TIMEOUT",
                                 "NCCL_IB_RETRY",  "NCCL_IB_GID_INDEX", "NCCL_IB_TC",
                                 "NCCL_IB_SL",     "NCCL_IB_PKEY",      "NCCL_SOCKET_IFNAME",
                                 "NCCL_HOME",      "NCCL_DIR",          "NCCL_ROOT",
                                 "NCCL_INCLUDE",   "NCCL_LIB",          "NCCL_LAUNCH_MODE",
                                 "NCCL_TOPO_DUMP", "NCCL_GRAPH_DUMP",   "NCCL_IGNORE_CPU_AFFINITY",
                                 "NCCL_CUMEM",     "NCCL_SET_STACK"};
  constexpr std::size_t kMaxNames = 6;
  std::vector<std::string> names;
  for (const auto& [name, value] : environment) {
    const bool harmless =
        std::ranges::any_of(kHarmless, [&](const char* begin) { return name.starts_with(begin); });
    const bool off = value == "0" && (name.ends_with("_DISABLE") || name == "NCCL_NVLS_ENABLE");
    if (!name.starts_with("NCCL_") || harmless || off || value.empty()) continue;
    names.push_back(name + "=" + shorten_text(visible(value), 40));
  }
  if (names.empty()) return;
  settings.assumed.push_back(
      "NCCL's own choices and the node's own links, though the launch sets " +
      frameworks::list_words(names, kMaxNames, ", ") +
      " (algorithm and cluster.nccl in the scenario, --net here)");
}

std::optional<Settings> of_training(const frameworks::TrainingCommand& training,
                                    const std::string& more, const std::string& name) {
  auto settings = of_flags(training, more, name);
  if (settings) sort_nccl_variables(training.environment, *settings);
  if (settings && settings->ranks == 0) settings->ranks = training.ranks;
  if (settings && settings->nodes == 0) settings->nodes = training.nodes;
  return settings;
}

// Reads command lines. Refuses a script that needs a shell: it is to be captured.
std::optional<Settings> of_lines(const std::string& content, const std::string& more,
                                 const std::string& name, int launch) {
  const bool script = is_script(content, name);
  const frameworks::ShellLines lines = frameworks::read_shell_lines(content);
  if (script && !lines.asks.empty()) {
    refuse_other(name, "asks for a shell by " + lines.asks +
                           ": `syncline capture -o launch.json -- bash " + name +
                           "` runs it with stand-ins for torchrun and the like, which train "
                           "nothing, and init reads launch.json");
  }
  auto settings = of_training(
      frameworks::training_command(frameworks::launches_in_lines(lines), launch), more, name);
  if (!settings && script) {
    refuse_other(name,
                 "a shell script in which no command is given flags of Megatron's, such as "
                 "--num-layers or --tensor-model-parallel-size");
  }
  return settings;
}

Settings of_capture(const Json& json, const std::string& more, const std::string& name,
                    int chosen) {
  const std::vector<launch::CapturedLaunch> launches = launch::launches_of(json, name);
  if (chosen > std::ssize(launches)) {
    refuse_other(name, "has " + std::to_string(launches.size()) + " launches, no number " +
                           std::to_string(chosen) + " (--launch)");
  }
  const auto training = frameworks::training_command(launches, chosen);
  auto settings = of_training(training, more, name);
  if (settings) return *std::move(settings);
  const std::string what =
      training.program + (training.script.empty() ? "" : " ") + training.script;
  refuse_other(name,
               "of the launch '" + what +
                   "' no flags or files are known, so its script decides: `syncline record` "
                   "observes it, or give the model and its settings' own file (syncline init "
                   "MODEL SETTINGS ...), or say the job by options (syncline init MODEL --zero "
                   "2, --fsdp or --tp N, --batch N, --sequence N)");
}

}  // namespace

std::optional<Settings> read_settings(const std::string& text, const std::string& more,
                                      int launch) {
  const bool flags = text.find("--") != std::string::npos &&
                     (text.starts_with("--") || text.find(' ') != std::string::npos);
  std::error_code error;
  const bool file = !flags && (text == "-" || std::filesystem::is_regular_file(text, error));
  if (!flags && !file) return std::nullopt;
  const std::string name = file ? text : "the flags";
  const std::string kind = file ? std::filesystem::path(text).extension().string() : "";
  std::string content = text;
  if (text == "-") {
    content = read_standard_input();
  } else if (file) {
    if (std::filesystem::file_size(text, error) > kLargest) {
      if (kind != ".toml" && kind != ".yaml" && kind != ".yml") return std::nullopt;
      throw InputError(name + ": more than 1 MiB, too much for settings");
    }
    content = read_text_file(text, "settings of a framework");
  }
  std::erase(content, '\r');
  if (kind == ".toml") {
    const Json toml = parse_toml(name, content);
    if (const std::string other = frameworks::other_framework(toml); !other.empty()) {
      refuse_other(name, other);
    }
    expect_no_flags(more, name);
    if (!is_torchtitan(toml)) throw InputError(name + ": no settings of torchtitan's");
    return frameworks::of_torchtitan(toml, name);
  }
  const std::size_t first = content.find_first_not_of(" \t\n");
  const bool braces = first != std::string::npos && content[first] == '{';
  if (kind == ".yaml" || kind == ".yml") return of_yaml(parse_yaml(name, content), more, name);
  if (braces) {
    const std::optional<Json> json = try_parse_json(content);
    if (!json || !json->is_object()) return std::nullopt;
    if (launch::is_capture(*json)) return of_capture(*json, more, name, launch);
    if (const auto read = of_layout_trainers(*json, more, name)) return read;
    if (const std::string other = frameworks::other_framework(*json); !other.empty()) {
      refuse_other(name, other);
    }
    expect_few_keys(name, *json);
    const bool trainer = frameworks::is_accelerate(*json) || frameworks::is_trainer(*json);
    if (trainer && !is_deepspeed(*json)) return of_hugging_face(*json, more, name);
    expect_no_flags(more, name);
    if (!is_deepspeed(*json)) return frameworks::of_own_settings(*json, name);
    return frameworks::of_deepspeed(*json, name);
  }
  if (not_utf8(content)) return std::nullopt;  // weights
  if (kind == ".prototxt") return frameworks::of_prototxt(content, name);
  if (kind == ".py") refuse_python(content, name);
  return of_lines(content, more, name, launch);
}

namespace frameworks {

Json with_underscores(const Json& flags) {
  Json all = Json::object();
  for (const auto& [key, value] : flags.items()) {
    std::string name = key;
    std::ranges::replace(name, '-', '_');
    all[name] = value;
  }
  return all;
}

namespace {

std::int64_t size_of(Reader& reader, const char* key, std::int64_t most) {
  const Json* value = reader.find(key);
  if (value == nullptr || value->is_null() || *value == "auto") return 0;
  return reader.integer(key, 1, most);
}

Json enabled(const Json& json, const char* key) {
  const auto section = json.find(key);
  if (section == json.end() || !section->is_object()) return nullptr;
  return section->value("enabled", Json());
}

bool says_auto(const Json& json) {
  return json.is_structured() ? std::ranges::any_of(json, says_auto) : json == "auto";
}

// Sets the format of products. "auto", which the Trainer fills in, is left to the device.
void read_precision(const Json& json, Settings& settings) {
  Json& operators = settings.workload["operators"];
  operators = Json::object();
  bool open = false, given = false;
  const auto turned_on = [&](const char* key) {
    const Json on = enabled(json, key);
    open |= on == "auto";
    given |= !on.is_null();
    return on == true;
  };
  const bool autocast = turned_on("torch_autocast"), amp = turned_on("amp");
  const bool old_bf16 = turned_on("bfloat16"), fp16 = turned_on("fp16");
  if (turned_on("bf16") || old_bf16) {
    operators["dtype"] = "bf16";
  } else if (fp16) {
    operators["dtype"] = "fp16";
  } else if (autocast || amp) {
    const Json dtype = autocast ? json["torch_autocast"].value("dtype", Json("bfloat16")) : "fp16";
    operators["dtype"] = dtype == "bfloat16" || dtype == "torch.bfloat16" ? "bf16" : "fp16";
    settings.autocast = true;
  } else if (open || (!given && says_auto(json))) {
    settings.assumed.emplace_back(
        "the device's usual precision, as the file leaves it to the trainer above (bf16.enabled, "
        "fp16.enabled; --dtype says it)");
  } else {
    operators["dtype"] = "fp32";
    settings.assumed.emplace_back(
        "products, parameters and gradients in fp32, as neither bf16 nor fp16 is enabled "
        "(--dtype)");
  }
}

// Returns the configuration without the keys that DeepSpeed does not have, which it passes over;
// they are named.
Json without_unknown(const Json& json, std::vector<std::string>& assumed) {
  name_unknown(json, "deepspeed", "DeepSpeed", assumed);
  Json config = json;
  for (const auto& [key, value] : json.items()) {
    if (!dialect::key_list("deepspeed").keys.contains(key)) config.erase(key);
  }
  return config;
}

}  // namespace

// Reads DeepSpeed's JSON: the layout is its tensor and sequence parallelism; the model and a
// pipeline's stages are in the script. Source: DeepSpeed edaa7221, deepspeed/runtime/config.py and
// runtime/tensor_parallel/config.py.
Settings of_deepspeed(const Json& json, const std::string& file) {
  Reader reader(json, file, "");
  Settings settings;
  settings.framework = "DeepSpeed";
  Json parallel = Json::object();
  if (reader.has("tensor_parallel")) {
    Reader tensor = reader.object("tensor_parallel");
    const std::int64_t size = size_of(tensor, "autotp_size", kMaxRanks);
    if (size > 1) parallel["tensor"] = size;
  }
  const std::int64_t sequence = size_of(reader, "sequence_parallel_size", kMaxRanks);
  if (sequence > 1) {
    parallel["context"] = sequence;
    parallel["context_exchange"] = "all_to_all";
  }
  if (const Json stages = frameworks::section_of(json, "pipeline").value("stages", Json());
      stages.is_number_integer() && stages > 1 && stages <= kMaxRanks) {
    parallel["pipeline"] = stages;
    settings.assumed.push_back("layers in " + stages.dump() +
                               " equal stages, as pipeline.stages says: the script cuts the model");
  }
  if (!parallel.empty()) settings.workload["parallel"] = std::move(parallel);
  const std::int64_t micro = size_of(reader, "train_micro_batch_size_per_gpu", kMaxSamples);
  if (micro > 0) settings.workload["batch"] = micro;
  settings.micro_batches = size_of(reader, "gradient_accumulation_steps", kMaxSamples);
  settings.global_batch = size_of(reader, "train_batch_size", kMaxSamples);
  // Alone it is one pass of all ranks (DeepSpeedConfig._set_batch_related_parameters).
  const bool alone = !json.contains("train_micro_batch_size_per_gpu") &&
                     !json.contains("gradient_accumulation_steps");
  if (alone && settings.global_batch > 0) settings.micro_batches = 1;
  read_precision(json, settings);
  Json config = without_unknown(json, settings.assumed);
  // The layout belongs to the workload.
  for (const char* key : {"tensor_parallel", "sequence_parallel_size", "train_batch_size",
                          "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}) {
    config.erase(key);
  }
  settings.strategy = {{"dialect", "deepspeed"}, {"config", std::move(config)}};
  return settings;
}

void fill_auto_sizes(std::int64_t hidden, Json& config, std::vector<std::string>& assumed) {
  const auto zero = config.find("zero_optimization");
  if (zero == config.end() || !zero->is_object() || hidden <= 0) return;
  const std::int64_t square = hidden * hidden;
  std::string filled;
  for (const auto& [key, size] :
       {std::pair{"reduce_bucket_size", square},
        {"stage3_prefetch_bucket_size", square / 10 * 9 + square % 10 * 9 / 10},
        {"stage3_param_persistence_threshold", 10 * hidden}}) {
    if (!zero->contains(key) || (*zero)[key] != "auto") continue;
    (*zero)[key] = size;
    filled += (filled.empty() ? "" : ", ") + std::string(key) + " " + std::to_string(size);
  }
  if (filled.empty()) return;
  assumed.push_back("sizes that are \"auto\" as the Trainer fills them in by the hidden size " +
                    std::to_string(hidden) + ": " + filled);
}

}  // namespace frameworks
}  // namespace syncline::job
