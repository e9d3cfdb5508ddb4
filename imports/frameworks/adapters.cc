// Adapters (LoRA) in trainers' settings: their rank, the modules that they are at, and how FSDP
// wraps them.
#include <array>

#include "formats/text/visible.h"
#include "imports/frameworks/keys.h"
#include "imports/frameworks/settings.h"

namespace syncline::job::frameworks {
namespace {

// Returns the words of a list, or of a text with commas or blanks between them.
std::vector<std::string> words_in(const Json& value) {
  std::vector<std::string> words;
  if (value.is_array()) {
    for (const Json& one : value) {
      if (one.is_string()) words.push_back(one.get<std::string>());
    }
    return words;
  }
  std::string word;
  for (const char letter : value.is_string() ? value.get<std::string>() + " " : "") {
    if (letter != ' ' && letter != ',') {
      word += letter;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

// Returns the first of some keys that has a value; null: none has.
Json first_of(const Json& all, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (has_value(all, key)) return all[key];
  }
  return nullptr;
}

// Returns the bits of a quantised model's weights; 0: it is none.
int bits_of(const Keys& arguments) {
  if (arguments.on("load_in_4bit")) return 4;
  if (arguments.on("load_in_8bit")) return 8;
  const std::int64_t bits = arguments.size("quantization_bit", arguments.size("quant_bits", 16));
  return bits == 4 || bits == 8 ? static_cast<int>(bits) : 0;
}

// Returns the modules that adapters are at; empty: all products. LLaMA-Factory and ms-swift take
// all by default, peft queries and values of most models.
std::vector<std::string> targets_of(const Keys& arguments, bool all_by_default,
                                    std::vector<std::string>& assumed) {
  const Json given =
      first_of(arguments.all, {"lora_target_modules", "lora_target", "target_modules"});
  const std::vector<std::string> words = words_in(given);
  if (arguments.on("lora_target_linear")) return {};
  if (words.empty()) {
    if (all_by_default) return {};
    assumed.emplace_back("adapters at q_proj and v_proj, as peft has them by default");
    return {"q_proj", "v_proj"};
  }
  for (const std::string& word : words) {
    if (word == "all" || word == "all-linear" || word == "all_linear") return {};
    if (word.find_first_of("*|()\\[^$") != word.npos) {
      fail(arguments.file, "lora_target_modules",
           "found the pattern '" + shorten_text(visible(word), 60) +
               "', expected the modules' names, such as q_proj");
    }
  }
  return words;
}

// Returns the key that trains a part of the model in another way than LoRA at whole modules; empty:
// there is none. Parameters by their names are axolotl's, ms-swift's and LLaMA-Factory's.
std::string part_of_model(const Json& all, bool lora, bool whole) {
  constexpr std::array kParts{"freeze_parameters_ratio", "freeze_parameters_regex",
                              "trainable_parameters_regex", "train_mm_proj_only", "use_badam"};
  constexpr std::array kOfAdapters{"use_dora",
                                   "peft_use_dora",
                                   "lora_use_dora",
                                   "layers_to_transform",
                                   "peft_layers_to_transform",
                                   "lora_layers_to_transform",
                                   "lora_on_cpu"};
  const auto on = [&](const char* key) {
    return has_value(all, key) && all[key] != false && all[key] != "false" && all[key] != 0;
  };
  for (const char* key : kParts) {
    if (on(key)) return key;
  }
  if (!lora) return whole ? "" : "finetuning_type";
  for (const char* key : kOfAdapters) {
    if (on(key)) return key;
  }
  return "";
}

// Returns the beginnings of names in axolotl's unfrozen_parameters, which are patterns from a
// name's start with points as they are, or in ms-swift's lists.
Json begins_in(const Json& all, const char* key, const std::string& file) {
  Json begins = Json::array();
  for (std::string word : words_in(first_of(all, {key}))) {
    if (word.starts_with('^')) word.erase(0, 1);
    if (word.find_first_of("*|()\\[]^+?") != word.npos) {
      fail(file, key,
           "found the pattern '" + shorten_text(visible(word), 60) +
               "', expected beginnings of parameters' names, such as model.layers.3.mlp");
    }
    begins.push_back(word);
  }
  return begins;
}

bool of_swift(const Json& all) { return has_any(all, {"tuner_type", "train_type", "sft_type"}); }
bool of_factory(const Json& all) { return !of_swift(all) && has_any(all, {"stage", "template"}); }

// The parts of a model that reads images which LLaMA-Factory and ms-swift freeze.
struct FrozenParts {
  bool tower = false;
  bool projector = false;
  bool language = false;
};

// Returns what is frozen, with the trainers' defaults: the tower and what joins it to the text.
FrozenParts frozen_parts(const Keys& arguments) {
  if (of_swift(arguments.all)) {
    return {arguments.on("freeze_vit", true), arguments.on("freeze_aligner", true),
            arguments.on("freeze_llm")};
  }
  if (!of_factory(arguments.all)) return {};
  return {arguments.on("freeze_vision_tower", true),
          arguments.on("freeze_multi_modal_projector", true),
          arguments.on("freeze_language_model")};
}

// Sets the parts that are trained if the model reads images.
void take_image_parts(const FrozenParts& frozen, Settings& settings) {
  if (!frozen.tower && !frozen.projector && !frozen.language) return;
  const Json joins{"vision.merger", "vision.deepstack_merger_list", "vision.vision_adapter",
                   "projector."};
  Json begins = frozen.projector ? Json::array() : joins;
  Json parts = Json::array();
  if (frozen.projector) parts = joins;
  if (frozen.tower) parts.push_back("vision.");
  if (frozen.language) parts.insert(parts.end(), {"model.", "lm_head."});
  settings.parts = {{"rank", 0}, {"targets", Json::array()}, {"trained", Json::array()},
                    {"bits", 0}, {"begins", begins},         {"frozen", parts}};
}

// Sets a part of the model to be trained; all others are frozen. Returns false if none is named.
bool take_part(const Json& all, const std::string& file, Settings& settings) {
  const Json frozen = begins_in(all, "freeze_parameters", file);
  const bool axolotl = has_value(all, "unfrozen_parameters");
  // ms-swift's list takes parameters back out of the frozen ones.
  const Json begins =
      begins_in(all, axolotl ? "unfrozen_parameters" : "trainable_parameters", file);
  if (frozen.empty() && !axolotl) return false;
  settings.adapters = {{"rank", 0}, {"targets", Json::array()}, {"trained", Json::array()},
                       {"bits", 0}, {"begins", begins},         {"frozen", frozen}};
  return true;
}

}  // namespace

void take_adapters(const Json& all, const std::string& file, Settings& settings) {
  const Keys arguments{all, file};
  const std::string kind = lower(arguments.word("finetuning_type"));
  // A quantised model is trained by adapters alone.
  const bool packed = arguments.on("load_in_4bit") || arguments.on("load_in_8bit");
  const bool peft = arguments.on("use_peft") || arguments.on("use_lora") ||
                    (packed && has_any(all, {"lora_r", "lora_rank"}));
  const bool lora = kind == "lora" || kind == "qlora" || (peft && kind.empty());
  const bool whole = kind.empty() || kind == "full";
  const int bits = bits_of(arguments);
  const std::string key = part_of_model(all, lora, whole);
  if (!key.empty()) {
    fail(arguments.file, key,
         "trains a part of the model in a way that is not modelled, as LoRA at whole modules is: "
         "give the model's parameters by --tensors in place of these settings");
  }
  if (!lora && take_part(all, file, settings)) return;
  if (lora) {
    const bool factory = of_factory(all), swift = of_swift(all);
    const bool axolotl = has_value(all, "base_model");
    const std::int64_t usual = factory || swift || axolotl ? 8 : 16;  // 16: trl 1.16
    const Json given = first_of(all, {"lora_rank", "lora_r"});
    const std::int64_t rank = arguments.size("lora_rank", arguments.size("lora_r", usual));
    if (given.is_null()) {
      settings.assumed.push_back("adapters of rank " + std::to_string(rank) +
                                 ", as these settings do not say it (lora_r)");
    }
    settings.adapters = {
        {"rank", rank},
        {"targets", targets_of(arguments, factory || swift, settings.assumed)},
        {"trained",
         words_in(first_of(all, {"lora_modules_to_save", "modules_to_save", "additional_target"}))},
        {"bits", bits}};
    const Json own = first_of(all, {"lora_target_modules", "lora_target", "target_modules"});
    if (own.is_null() && !settings.adapters["targets"].empty()) settings.adapters["usual"] = true;
    const FrozenParts frozen = frozen_parts(arguments);
    const bool text_alone = frozen.tower && frozen.projector && !frozen.language;
    if (text_alone) settings.adapters["text_alone"] = true;
  } else if (bits > 0) {
    fail(arguments.file, packed ? "load_in_4bit" : "quantization_bit",
         "trains a quantised model, but not by adapters: give the model's parameters by --tensors "
         "in place of these settings");
  } else {
    take_image_parts(frozen_parts(arguments), settings);
  }
}

// Sets FSDP's units of a model with adapters as the Trainer asks for them: by peft's policy each
// trained module is one, next to the layers (fsdp_auto_wrap_policy). accelerate 1.12 passes that
// policy over for FSDP2, and keeps all parameters in fp32 there (fsdp2_prepare_model). axolotl is
// taken to wrap as peft does, which nobody has checked for FSDP2.
void wrap_adapters(bool axolotl, Settings& settings) {
  if (!settings.adapters.is_object() || settings.strategy.value("dialect", "") != "fsdp") return;
  Json& config = settings.strategy["config"];
  const bool part = settings.adapters["rank"] == 0;  // of the model itself, in its layers
  if (!part && (config.value("version", 2) == 1 || axolotl)) {
    settings.adapters["wrapped"] = true;
    if (config.value("version", 2) == 2) {
      settings.assumed.emplace_back(
          "each adapter as a unit of its own, next to the layers, as axolotl is assumed to wrap "
          "them for FSDP 2");
    }
  } else if (!part) {
    config["units"] = Json::array();
    settings.assumed.emplace_back(
        "the model as one unit of FSDP 2: accelerate 1.12 passes peft's policy over");
  }
  if (config.value("version", 2) == 2 && settings.autocast) settings.adapters["kept_full"] = true;
}

}  // namespace syncline::job::frameworks
