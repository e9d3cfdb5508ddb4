// Megatron's flags and its YAML. Source: NVIDIA/Megatron-LM d98e8a64,
// megatron/training/arguments.py (defaults, padding of the vocabulary) and
// examples/gpt3/gpt_config.yaml.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include "catalogue/architectures/architecture.h"
#include "formats/dialect/dialect.h"
#include "formats/dialect/framework_keys.h"
#include "formats/dialect/megatron.h"
#include "formats/json/reader.h"
#include "imports/frameworks/megatron_names.h"
#include "imports/frameworks/settings.h"

namespace syncline::job::frameworks {
namespace {

constexpr const char* kStages = "num-virtual-stages-per-pipeline-rank";
constexpr std::array kCounted{"account-for-embedding-in-pipeline-split",
                              "account-for-loss-in-pipeline-split"};

// Flags that the strategy's dialect reads.
constexpr std::string_view kExchange =
    "overlap-grad-reduce overlap-param-gather use-distributed-optimizer "
    "num-distributed-optimizer-instances ddp-bucket-size ddp-num-buckets "
    "ddp-pad-buckets-for-high-nccl-busbw ddp-average-in-collective "
    "accumulate-allreduce-grads-in-fp32 grad-reduce-in-bf16 fp8-format fp8 fp8-recipe "
    "fp8-param-gather reduce-scatter-with-fp32-accumulation use-nccl-ub optimizer-cpu-offload";

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::istringstream all{std::string(text)};
  for (std::string word; all >> word;) words.push_back(std::move(word));
  return words;
}

std::string with_dashes(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "--" : ", --") + name;
  return text;
}

// Flags, and which of them were asked for.
class Flags {
 public:
  Flags(const Json& flags, const std::string& file) : flags_(flags), reader_(flags, file, "") {}

  // Returns false if a flag is not given, or null, as YAML says it.
  bool has(const std::string& name) {
    asked_.insert(name);
    return reader_.has(name) && !flags_[name].is_null();
  }
  std::int64_t size(const std::string& name, std::int64_t fallback, std::int64_t most) {
    if (!has(name)) return fallback;
    unset(name);
    return reader_.integer(name, 1, most);
  }
  bool on(const std::string& name, bool fallback = false) {
    if (!has(name)) return fallback;
    return reader_.boolean_or(name, fallback);
  }
  std::string word(const std::string& name, const std::string& fallback) {
    if (!has(name)) return fallback;
    unset(name);
    return reader_.text(name);
  }
  const Json& value(const std::string& name) { return flags_[name]; }
  Reader& reader() { return reader_; }
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    reader_.fail(name, what);
  }

  std::vector<std::string> not_asked() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : flags_.items()) {
      if (!asked_.contains(name) && !value.is_null()) names.push_back(name);
    }
    return names;
  }
  std::vector<std::string> asked() const { return {asked_.begin(), asked_.end()}; }

  // Fails for a variable that the script does not set.
  void unset(const std::string& name) {
    const Json& value = flags_[name];
    if (!value.is_string() || value.get_ref<const std::string&>().find('$') == std::string::npos) {
      return;
    }
    const std::string text = value.get<std::string>();
    const bool output = text.find("$(") != std::string::npos;
    const bool file = reader_.file() != "the flags";
    reader_.fail(name, "is " + text +
                           (output ? ", which only a run of the script tells"
                                   : ", a variable that is set elsewhere") +
                           ": write its value" +
                           (file ? ", or give it after the file (-- --" + name + " ...)" : ""));
  }

 private:
  const Json& flags_;
  Reader reader_;
  std::set<std::string> asked_;
};

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Returns the row of catalogue/architectures that has these sizes, or nullptr. `gpt2`: its kind;
// else Llama's.
const operators::Architecture* row_of(const Json& shape, bool gpt2) {
  for (const auto& row : operators::architectures()) {
    const bool other = row.name.starts_with("bert") || row.name.starts_with("gpt2") != gpt2;
    if (row.shaped || row.images || other) continue;
    const operators::TransformerShape own = operators::complete_shape(row.shape);
    const bool same = own.layers == shape["layers"] && own.hidden == shape["hidden"] &&
                      own.heads == shape["heads"] && own.inner == shape["inner"] &&
                      own.experts == shape.value("experts", 0);
    if (same) return &row;
  }
  return nullptr;
}

// Returns the leading layers without experts: "([0]*3+[1]*58)", [0, 0, 1]; -1: others too.
std::int64_t dense_layers(const Json& frequency, std::int64_t layers) {
  if (frequency.is_number()) return frequency == 1 ? 0 : -1;
  std::vector<std::int64_t> kinds;
  if (frequency.is_array()) {
    for (const Json& kind : frequency) kinds.push_back(kind == 0 ? 0 : 1);
  } else {
    const std::string text = frequency.is_string() ? frequency.get<std::string>() : "";
    for (std::size_t at = text.find('['); at != std::string::npos; at = text.find('[', at + 1)) {
      const char kind = at + 1 < text.size() ? text[at + 1] : ' ';
      const std::size_t star = text.find('*', at), next = text.find('+', at);
      const bool times = star != std::string::npos && star < next;
      const int count = times ? std::atoi(text.c_str() + star + 1) : 1;
      if ((kind != '0' && kind != '1') || count < 1 || count > layers) return -1;
      kinds.insert(kinds.end(), static_cast<std::size_t>(count), kind - '0');
    }
  }
  const auto first = std::ranges::find(kinds, 1);
  const bool sorted = std::find(first, kinds.end(), 0) == kinds.end();
  if (!sorted || static_cast<std::int64_t>(kinds.size()) != layers) return -1;
  return first - kinds.begin();
}

void read_experts(Flags& flags, Json& shape) {
  const std::int64_t experts = flags.size("num-experts", 0, 1 << 12);
  const std::int64_t topk = flags.size("moe-router-topk", 2, 1 << 12);
  const std::int64_t inner = flags.size("moe-ffn-hidden-size", shape["inner"].get<std::int64_t>(),
                                        operators::kMaxFfnWidth);
  const std::int64_t shared =
      flags.size("moe-shared-expert-intermediate-size", 0, operators::kMaxFfnWidth);
  const bool frequency = flags.has("moe-layer-freq");
  if (experts == 0) return;
  shape["experts"] = experts;
  shape["experts_per_token"] = topk;
  shape["expert_inner"] = inner;
  if (shared > 0) shape["shared_inner"] = shared;
  if (!frequency) return;
  const std::int64_t dense =
      dense_layers(flags.value("moe-layer-freq"), shape["layers"].get<std::int64_t>());
  if (dense < 0) {
    flags.fail("moe-layer-freq", "is " + flags.value("moe-layer-freq").dump() +
                                     ": only layers without experts before all others are known");
  }
  if (dense > 0) shape["dense_layers"] = dense;
}

// Reads multi-latent attention, as DeepSeek has it.
void read_latent(Flags& flags, Json& shape) {
  const std::int64_t queries = flags.size("q-lora-rank", 0, operators::kMaxHidden);
  const std::int64_t latent = flags.size("kv-lora-rank", 32, operators::kMaxHidden);
  const std::int64_t width = flags.size("qk-head-dim", 128, operators::kMaxHeadWidth);
  const std::int64_t rope = flags.size("qk-pos-emb-head-dim", 64, operators::kMaxHeadWidth);
  flags.size("v-head-dim", 128, operators::kMaxHeadWidth);
  if (!flags.on("multi-latent-attention")) return;
  shape.erase("head_norm");
  shape["head_width"] = width;
  shape["latent"] = latent;
  shape["rope_width"] = rope;
  if (queries > 0) shape["query_latent"] = queries;
}

bool is_off(const Json& value) {
  return value == false || value == 0 || value == "" || value == Json::array();
}

// Returns true with --swiglu, or another product of two halves.
bool gated(Flags& flags) {
  bool any = flags.has("glu-activation") && !is_off(flags.value("glu-activation"));
  for (const char* name : {"swiglu", "quick-geglu", "geglu"}) any |= flags.on(name);
  return any;
}

// Returns true for learned positions, biases and no gate: GPT-2's kind. All else is Llama's.
bool like_gpt2(Flags& flags) {
  const bool turned = flags.on("use-rotary-position-embeddings");
  const bool learned =
      flags.word("position-embedding-type", "learned_absolute") == "learned_absolute" && !turned;
  const bool plain = flags.on("disable-bias-linear"), latent = flags.on("multi-latent-attention");
  const bool rms = flags.word("normalization", "LayerNorm") == "RMSNorm";
  return learned && !rms && !plain && !latent && !gated(flags) && !flags.has("num-experts");
}

Json shape_of(Flags& flags, bool gpt2, std::int64_t sequence) {
  Json shape{{"layers", flags.size("num-layers", 1, operators::kMaxLayers)}};
  for (const char* name : {"hidden-size", "num-attention-heads"}) {
    if (!flags.has(name)) flags.reader().require(name);
  }
  const std::int64_t hidden = flags.size("hidden-size", 1, operators::kMaxHidden);
  const bool two_halves = gated(flags);
  flags.on("squared-relu");
  shape["hidden"] = hidden;
  shape["heads"] = flags.size("num-attention-heads", 1, operators::kMaxHeads);
  const std::int64_t groups = flags.size("num-query-groups", 0, operators::kMaxHeads);
  if (flags.on("group-query-attention")) shape["kv_heads"] = std::max<std::int64_t>(1, groups);
  if (flags.has("kv-channels")) {
    shape["head_width"] = flags.size("kv-channels", 1, operators::kMaxHeadWidth);
  }
  // --swiglu has two thirds of the usual width, in whole 64s.
  const std::int64_t usual = flags.on("swiglu") ? hidden * 8 / 3 / 64 * 64 : 4 * hidden;
  shape["inner"] =
      flags.size("ffn-hidden-size", std::max<std::int64_t>(1, usual), operators::kMaxFfnWidth);
  shape["positions"] =
      flags.size("max-position-embeddings", gpt2 ? sequence : 1 << 17, operators::kMaxVocabulary);
  const bool tied = !flags.on("untie-embeddings-and-output-weights");
  const bool bias = flags.on("add-qkv-bias"), head_norm = flags.on("qk-layernorm");
  if (gpt2) return shape;
  if (tied) shape["tied"] = true;
  if (!two_halves) shape["gated"] = false;
  if (bias) shape["bias"] = true;
  if (head_norm) shape["head_norm"] = true;
  read_experts(flags, shape);
  read_latent(flags, shape);
  return shape;
}

// Returns the vocabulary, padded so that ranks share it evenly.
std::int64_t words_of(Flags& flags, const operators::Architecture* row, std::int64_t tensor,
                      const std::string& script, std::vector<std::string>& assumed) {
  const std::int64_t unit = flags.size("make-vocab-size-divisible-by", 128, kMaxRanks) * tensor;
  const std::int64_t padded = flags.size("padded-vocab-size", 0, operators::kMaxVocabulary);
  const std::string tokenizer = flags.word("tokenizer-type", "");
  std::int64_t words = flags.size("vocab-size", 0, operators::kMaxVocabulary);
  if (padded > 0) return padded;
  if (words > 0 && tokenizer == "NullTokenizer") ++words;  // the end of a document
  if (words == 0 && tokenizer == "GPT2BPETokenizer") words = 50257;
  // pretrain_gpt.py's own default.
  const bool byte_pairs = flags.has("merge-file") || row == nullptr;
  if (words == 0 && tokenizer.empty() && script == "pretrain_gpt.py" && byte_pairs) {
    words = 50257;
    assumed.emplace_back(
        "a vocabulary of 50257, that of GPT2BPETokenizer, which pretrain_gpt.py takes where no "
        "--tokenizer-type is given");
  }
  if (words == 0 && row != nullptr) {
    words = row->shape.words;
    assumed.push_back("a vocabulary of " + std::to_string(words) + ", that of " +
                      std::string(row->name) +
                      ", which has these sizes: no flag says it (--vocab-size)");
  }
  if (words == 0 && tokenizer == "Llama2Tokenizer") {
    words = 32000;
    assumed.emplace_back(
        "a vocabulary of 32000, that of Llama 2, by Llama2Tokenizer: its file is not read "
        "(--vocab-size)");
  }
  if (words == 0) {
    flags.fail("vocab-size",
               "is missing, and the tokenizer's files are not read: give it in addition, after a "
               "file as -- --vocab-size WORDS");
  }
  return rounded_up(words, unit);
}

bool in_fp8(Flags& flags) {
  for (const char* name : {"fp8-format", "fp8"}) {
    if (flags.has(name) && !is_off(flags.value(name))) return true;
  }
  return false;
}

// Reads the model, if the flags describe it.
void read_model(Flags& flags, std::int64_t tensor, const std::string& script, Settings& settings) {
  Json operators = {{"architecture", "llama"}};
  const bool bf16 = flags.on("bf16"), fp16 = flags.on("fp16");
  const bool fp8 = in_fp8(flags);
  operators["dtype"] = bf16 ? fp8 ? "fp8" : "bf16" : fp16 ? "fp16" : "fp32";
  if (!bf16 && !fp16 && flags.has("num-layers")) {
    settings.assumed.emplace_back(
        "products, parameters and gradients in fp32, as neither --bf16 nor --fp16 is given "
        "(--dtype)");
  }
  if (flags.has("seq-length")) {
    operators["sequence"] = flags.size("seq-length", 1, operators::kMaxVocabulary);
  }
  if (!flags.has("num-layers")) {
    if (bf16 || fp16 || operators.contains("sequence")) {
      operators.erase("architecture");
      settings.workload["operators"] = std::move(operators);
    }
    return;
  }
  if (!operators.contains("sequence")) flags.reader().require("seq-length");
  const bool gpt2 = like_gpt2(flags);
  Json shape = shape_of(flags, gpt2, operators["sequence"].get<std::int64_t>());
  const operators::Architecture* row = row_of(shape, gpt2);
  shape["words"] = words_of(flags, row, tensor, script, settings.assumed);
  if (gpt2) {
    operators["architecture"] = "gpt2";
    operators["flash_attention"] = true;
  }
  settings.workload["name"] = row != nullptr ? std::string(row->name)
                                             : "a model of " + shape["layers"].dump() +
                                                   " layers, hidden " + shape["hidden"].dump();
  settings.workload["source"] = "Megatron's flags";
  operators["shape"] = std::move(shape);
  settings.workload["operators"] = std::move(operators);
}

// Returns the chunks per stage, by their number or by the layers of each.
std::int64_t virtual_stages(Flags& flags, std::int64_t pipeline) {
  const char* by_layers = "num-layers-per-virtual-pipeline-stage";
  const std::int64_t stages = flags.size(kStages, 1, kMaxRanks);
  if (!flags.has(by_layers)) return stages;
  const std::int64_t each = flags.size(by_layers, 1, operators::kMaxLayers);
  std::int64_t layers = flags.size("num-layers", 0, operators::kMaxLayers);
  // The embedding and the loss may count as one each.
  for (const char* end : kCounted) layers += flags.on(end) ? 1 : 0;
  if (layers == 0 || layers % (pipeline * each) != 0) {
    flags.fail(by_layers, std::to_string(layers) + " layers are no multiple of " +
                              std::to_string(pipeline) + " stages x " + std::to_string(each));
  }
  return layers / (pipeline * each);
}

// Returns the layers of each part if flags name them; empty if all parts have equally many.
std::vector<int> layers_of(Flags& flags, int pipeline, int chunks) {
  constexpr const char* kLayout = "pipeline-model-parallel-layout";
  if (flags.has(kLayout)) {
    const std::vector<int> layers = dialect::megatron_layers(flags.reader());
    if (layers.size() % static_cast<std::size_t>(pipeline) != 0) {
      flags.fail(kLayout, "the number of parts, " + std::to_string(layers.size()) +
                              ", is no multiple of the " + std::to_string(pipeline) + " stages");
    }
    return layers;
  }
  constexpr std::array kEnds{"decoder-first-pipeline-num-layers",
                             "decoder-last-pipeline-num-layers"};
  std::vector<std::int64_t> stages(static_cast<std::size_t>(pipeline), 0);
  std::int64_t left = flags.size("num-layers", 0, operators::kMaxLayers);
  std::int64_t others = pipeline;
  for (const char* end : kEnds) {
    if (!flags.has(end)) continue;
    auto& stage = end == kEnds.front() ? stages.front() : stages.back();
    stage = flags.size(end, 0, operators::kMaxLayers);
    left -= stage;
    --others;
  }
  if (others == pipeline) return {};
  if (others < 1 || left < 0 || left % others != 0) {
    flags.fail(flags.has(kEnds.front()) ? kEnds.front() : kEnds.back(),
               "leaves " + std::to_string(left) + " layers for " + std::to_string(others) +
                   " stages: expected a multiple");
  }
  std::vector<int> layers;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const bool own = (s == 0 && flags.has(kEnds.front())) ||
                       (s + 1 == stages.size() && flags.has(kEnds.back()));
      layers.push_back(static_cast<int>((own ? stages[s] : left / others) / chunks));
    }
  }
  return layers;
}

void read_layout(Flags& flags, Settings& settings) {
  Json parallel = Json::object();
  for (const auto& [flag, key, unused] : dialect::megatron_layout()) {
    const std::int64_t size = flags.size(flag, 1, kMaxRanks);
    if (size > 1) parallel[key] = size;
  }
  const std::int64_t tensor = parallel.value("tensor", std::int64_t{1});
  const std::int64_t chunks = virtual_stages(flags, parallel.value("pipeline", std::int64_t{1}));
  const auto stages = parallel.value("pipeline", std::int64_t{1});
  const auto layers = layers_of(flags, static_cast<int>(stages), static_cast<int>(chunks));
  // A layout by its layers says by itself how many parts there are.
  const std::int64_t parts = layers.empty() ? stages * chunks : std::ssize(layers);
  if (parts > stages) parallel["virtual_stages"] = parts / stages;
  if (!layers.empty()) parallel["layers"] = layers;
  const std::int64_t all_experts = flags.size("num-experts", 0, 1 << 12);
  const bool experts = all_experts > 0;
  const auto shared = parallel.value("expert", std::int64_t{1});
  const bool described = flags.has("num-layers");
  if (described && shared > 1 && (!experts || all_experts % shared != 0)) {
    flags.fail("expert-model-parallel-size",
               "is " + std::to_string(shared) + ": expected a divisor of num-experts, which is " +
                   (experts ? std::to_string(all_experts) : "not given"));
  }
  // The default of expert-tensor-parallel-size is the tensor size.
  if (experts && tensor > 1 && !flags.has("expert-tensor-parallel-size")) {
    parallel["expert_tensor"] = tensor;
  }
  const std::string dispatcher = flags.word("moe-token-dispatcher-type", "allgather");
  if (experts && parallel.contains("expert") && dispatcher == "allgather") {
    settings.assumed.emplace_back(
        "that tokens go to their experts all-to-all, where --moe-token-dispatcher-type allgather, "
        "the default, gathers all of them");
  }
  if (flags.on("sequence-parallel") && tensor > 1) parallel["sequence"] = true;
  if (flags.on("tp-comm-overlap")) {
    if (!parallel.contains("sequence")) {
      flags.fail("tp-comm-overlap", "can happen only with sequence-parallel");
    }
    parallel["overlap_tensor"] = true;
  }
  const std::string exchange = flags.word("cp-comm-type", "p2p");
  if (exchange == "a2a" && parallel.contains("context"))
    parallel["context_exchange"] = "all_to_all";
  if (exchange != "a2a" && exchange != "p2p") {
    settings.assumed.push_back("that keys and values go around a ring (--cp-comm-type " + exchange +
                               " is not priced)");
  }
  if (flags.on("overlap-moe-expert-parallel-comm") && parallel.contains("expert")) {
    parallel["overlap_expert"] = true;
  }
  const bool apart = flags.on("no-overlap-p2p-communication") && parts > stages;
  if (apart) parallel["overlap_sends"] = false;
  if (parts > stages && stages < (apart ? 3 : 2)) {
    flags.fail("pipeline-model-parallel-size",
               "is " + std::to_string(stages) + ": several chunks a stage need at least " +
                   (apart ? "3 stages without overlapped sends" : "2 stages"));
  }
  if (flags.on("use-tp-pp-dp-mapping")) parallel["order"] = "tp-cp-ep-pp-dp";
  if (!parallel.empty()) settings.workload["parallel"] = std::move(parallel);
}

void read_step(Flags& flags, Settings& settings) {
  if (flags.has("micro-batch-size")) {
    settings.workload["batch"] = flags.size("micro-batch-size", 1, kMaxSamples);
  }
  settings.global_batch = flags.size("global-batch-size", 0, kMaxSamples);
  const bool grows = flags.has("rampup-batch-size") || flags.has("step-batch-size-schedule");
  // The default step is one micro-batch per rank.
  if (settings.global_batch == 0 && flags.has("micro-batch-size") && !grows) {
    settings.micro_batches = 1;
  }
  std::string recompute = flags.word("recompute-granularity", "");
  if (flags.on("recompute-activations")) recompute = "selective";
  // Until 2022, and in Megatron-DeepSpeed.
  const bool older = flags.on("checkpoint-activations");
  const bool deepspeed = flags.on("deepspeed-activation-checkpointing");
  if (older || deepspeed || flags.has("activations-checkpoint-method")) recompute = "full";
  flags.size("checkpoint-num-layers", 1, operators::kMaxLayers);
  flags.size("activations-checkpoint-num-layers", 1, operators::kMaxLayers);
  if (!recompute.empty() && recompute != "full" && recompute != "selective") {
    flags.fail("recompute-granularity", "found '" + recompute + "', expected full or selective");
  }
  if (recompute == "selective" && flags.has("recompute-method")) {
    flags.fail("recompute-method", "goes with recompute-granularity full alone");
  }
  if (!recompute.empty()) settings.workload["activation_checkpointing"] = recompute;
  flags.size("recompute-num-layers", 1, operators::kMaxLayers);
  const bool block = flags.word("recompute-method", "") == "block" ||
                     flags.word("activations-checkpoint-method", "") == "block";
  if (block) {
    settings.assumed.emplace_back(
        "all layers are computed again, where --recompute-method block does so with some");
  }
  const std::string optimizer = flags.word("optimizer", "adam");
  if (optimizer == "sgd") settings.workload["optimizer"] = "momentum";
  if (optimizer != "sgd" && optimizer != "adam") {
    settings.assumed.push_back("that the update is Adam's (--optimizer " + optimizer + ")");
  }
}

// Takes the exchange of DeepSpeed's engine, which Megatron-DeepSpeed trains by.
void read_deepspeed(Flags& flags, Settings& settings) {
  if (!flags.has("deepspeed") || flags.value("deepspeed") != true) return;
  const std::int64_t stage = flags.has("zero-stage") && flags.value("zero-stage") == 0
                                 ? 0
                                 : flags.size("zero-stage", 0, 3);
  const bool given = flags.has("deepspeed-config") && flags.value("deepspeed-config").is_object();
  Json config = given ? flags.value("deepspeed-config") : Json::object();
  if (!config.contains("zero_optimization")) config["zero_optimization"] = {{"stage", stage}};
  const std::string dtype = flags.on("bf16") ? "bf16" : flags.on("fp16") ? "fp16" : "fp32";
  for (const char* half : {"bf16", "fp16"}) {
    if (!config.contains(half) && dtype == half) config[half] = {{"enabled", true}};
  }
  Settings zero = of_deepspeed(config, flags.reader().file());
  settings.strategy = std::move(zero.strategy);
  settings.assumed.insert(settings.assumed.end(), zero.assumed.begin(), zero.assumed.end());
  if (!given) {
    settings.assumed.push_back("DeepSpeed's own sizes with ZeRO stage " + std::to_string(stage) +
                               ", as --deepspeed_config is not here");
  }
  if (dtype == "bf16" && config["zero_optimization"].value("stage", Json(0)) == 0) {
    settings.assumed.emplace_back(
        "every rank keeps all of the optimizer's states, which DeepSpeed's BF16_Optimizer shards");
  }
}

// Reads the format of the main gradients: bf16 ones are kept and summed as they are, unless that
// is fp32 (validate_args in megatron/training/arguments.py).
void read_main_gradients(Flags& flags, Json& config) {
  const std::string name = "main-grads-dtype";
  const std::string format = flags.word(name, "fp32");
  if (format == "fp32" || format == "torch.float32") return;
  if (config.contains("accumulate-allreduce-grads-in-fp32")) {
    flags.fail(name, "is " + format +
                         ", which --accumulate-allreduce-grads-in-fp32 does not go with: leave one "
                         "of the two out");
  }
  if (flags.has("bf16") && flags.value("bf16") == true) config["grad-reduce-in-bf16"] = true;
}

void read_exchange(Flags& flags, Settings& settings) {
  constexpr std::array kSized{"num-distributed-optimizer-instances",
                              "ddp-bucket-size",
                              "ddp-num-buckets",
                              "fp8-format",
                              "fp8",
                              "fp8-recipe"};
  Json config = Json::object();
  for (const std::string& name : words_of(kExchange)) {
    if (!flags.has(name) || flags.value(name) == false) continue;
    const bool sized = std::ranges::find(kSized, name) != kSized.end();
    if (sized) flags.unset(name);
    config[name] = flags.value(name);
  }
  if (in_fp8(flags) && config.value("fp8-recipe", "delayed") == "delayed") {
    settings.workload["delayed_scaling"] = true;
  }
  const std::string part = flags.word("optimizer-offload-fraction", "1.0");
  if (config.contains("optimizer-cpu-offload") && std::atof(part.c_str()) != 1) {
    settings.assumed.push_back(
        "all of the optimizer in the host's memory, where --optimizer-offload-fraction " + part +
        " leaves a part on the device");
  }
  read_main_gradients(flags, config);
  settings.strategy = {{"dialect", "megatron"}, {"config", std::move(config)}};
  read_deepspeed(flags, settings);
}

// Notes the remaining flags: not evaluated, without effect, or not known.
void tell_the_rest(Flags& flags, Settings& settings) {
  std::vector<std::string> left_out, unknown;
  if (flags.has("fp4-format") && !is_off(flags.value("fp4-format"))) {
    settings.assumed.emplace_back(
        "that products in fp4 take the time of bf16 (--fp4-format; cluster.device.half_tflops says "
        "their rate)");
  }
  std::set<std::string> names;
  for (const std::string& name : flags.asked()) names.insert(name);
  for (const auto& [name, unused] : dialect::key_list("megatron").keys) names.insert(name);
  const std::vector<std::string> known(names.begin(), names.end());
  for (const std::string& name : flags.not_asked()) {
    const Json& value = flags.value(name);
    if (is_off(value) || value.is_object()) continue;
    if (megatron_left_out(name, value)) {
      left_out.push_back(name);
    } else if (!megatron_known(name)) {
      unknown.push_back(name + did_you_mean(name, known));
    }
  }
  if (!left_out.empty()) {
    settings.assumed.push_back("nothing gained or lost by what is left out: " +
                               with_dashes(left_out));
  }
  if (!unknown.empty()) {
    settings.assumed.push_back("that no step's time hangs on what Megatron does not have: " +
                               with_dashes(unknown));
  }
}

// Returns the flags by today's names. A flag that is given by today's name wins.
Json by_names_of_today(const Json& given) {
  Json flags = Json::object();
  for (const auto& [name, value] : given.items()) {
    const std::string today = megatron_name_today(name);
    if (today == name || !given.contains(today)) flags[today] = value;
  }
  for (const auto& [name, format] : {std::pair{"fp8-e4m3", "e4m3"}, {"fp8-hybrid", "hybrid"}}) {
    if (given.contains(name) && given[name] != false) flags["fp8-format"] = format;
    flags.erase(name);
  }
  return flags;
}

// Returns the model that a script such as "pretrain_t5.py" trains if it is no GPT, else empty.
std::string other_model(const std::string& script) {
  static const std::map<std::string, std::string> models{{"bert", "BERT"},
                                                         {"t5", "T5"},
                                                         {"ict", "a biencoder"},
                                                         {"biencoder", "a biencoder"},
                                                         {"realm", "a biencoder"},
                                                         {"retro", "Retro"},
                                                         {"mamba", "Mamba"},
                                                         {"vision", "a model of images"},
                                                         {"vlm", "images and text"},
                                                         {"llava", "images and text"},
                                                         {"multimodal", "images and text"},
                                                         {"mimo", "images and text"}};
  std::string part;
  for (const char c : script + ".") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      part += c;
      continue;
    }
    if (const auto model = models.find(part); model != models.end()) return model->second;
    part.clear();
  }
  return "";
}

}  // namespace

bool marks_megatron(const Json& flags) {
  if (flags.contains("num-layers") || flags.contains("micro-batch-size")) return true;
  return std::ranges::any_of(dialect::megatron_layout(),
                             [&](const auto& row) { return flags.contains(row.flag); });
}

Settings of_megatron(const Json& given, const std::string& file, const std::string& script) {
  const Json json = by_names_of_today(given);
  Flags flags(json, file);
  for (const auto& [name, value] : json.items()) {
    const std::string why = is_off(value) ? "" : megatron_refusal(name, value);
    if (!why.empty()) flags.fail(name, why);
  }
  // Layers are spread like this here too, if that makes them even.
  for (const char* name : kCounted) flags.on(name);
  Settings settings;
  settings.framework = "Megatron";
  settings.modules = false;
  read_layout(flags, settings);
  const Json parallel = settings.workload.value("parallel", Json::object());
  read_model(flags, parallel.value("tensor", std::int64_t{1}), script, settings);
  if (const std::string other = other_model(script); !other.empty()) {
    settings.no_model = script + " trains " + other + ", no GPT";
    settings.workload["operators"].erase("architecture");
    settings.workload["operators"].erase("shape");
    for (const char* key : {"name", "source"}) settings.workload.erase(key);
  }
  read_step(flags, settings);
  read_exchange(flags, settings);
  tell_the_rest(flags, settings);
  return settings;
}

}  // namespace syncline::job::frameworks
