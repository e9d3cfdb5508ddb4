// LoRA: adapters next to the products of a frozen model.
#include <algorithm>
#include <set>

#include "catalogue/architectures/architecture.h"
#include "core/base/error.h"
#include "formats/input/read_workload.h"
#include "formats/json/reader.h"
#include "imports/format.h"
#include "imports/models/families.h"

namespace syncline::job::models {
namespace {

// Returns the parameters of a workload's operators, in the order of use.
Parameters generated(const Json& workload) {
  Cluster any;
  any.device.flops = any.device.half_flops = any.device.memory = 1;
  Json plain = {{"name", "model"}, {"operators", workload.at("operators")}};
  for (const char* key : {"dtype", "autocast"}) plain["operators"].erase(key);
  const Workload read = input::read_workload(Reader(plain, "model", ""), any);
  const Json& operators = plain["operators"];
  const auto* row = operators::find_architecture(operators.value("architecture", ""));
  const Json shape = operators.value("shape", Json::object());
  const std::int64_t experts = shape.value("experts", row == nullptr ? 0 : row->shape.experts);
  const double each = static_cast<double>(shape.value(
      "experts_per_token", row == nullptr ? std::int64_t{1} : row->shape.experts_per_token));
  Parameters all;
  double table = 0;
  for (auto tensor = read.tensors.rbegin(); tensor != read.tensors.rend(); ++tensor) {
    const bool embedding = is_table(tensor->name);
    const auto elements = static_cast<double>(tensor->elements);
    Parameter parameter{tensor->name, tensor->shape, elements};
    if (tensor->shape.size() == 2 && !embedding) {
      parameter.multiplied =
          tensor->expert ? elements * each / static_cast<double>(experts) : elements;
    }
    if (embedding && table == 0) table = elements;
    all.push_back(std::move(parameter));
  }
  const bool gpt2 = operators.value("architecture", "").starts_with("gpt2");
  const bool tied = gpt2 || shape.value("tied", row != nullptr && row->shape.tied);
  if (tied) all.back().multiplied += table;
  return all;
}

// Returns the parameters of a workload's tensors, in the order of use.
Parameters listed(const Json& workload) {
  Parameters all;
  const Json& tensors = workload.at("tensors");
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
    Parameter parameter{tensor->at("name"), tensor->at("shape")};
    parameter.elements = static_cast<double>(elements_of(parameter.shape).value_or(0));
    parameter.multiplied = tensor->value("forward_flops", 0.0) / 2 / kTokens;
    all.push_back(std::move(parameter));
  }
  return all;
}

// Returns a product's module, "q_proj" of "layers.0.self_attn.q_proj.weight"; empty: no product.
std::string module_of(const Parameter& parameter) {
  if (parameter.shape.size() != 2 || parameter.multiplied == 0) return "";
  std::string name = parameter.name;
  if (!name.ends_with(".weight")) return "";
  name.resize(name.size() - std::string_view(".weight").size());
  return name.substr(name.rfind('.') + 1);
}

bool is_in(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

// Returns the name that a product has here: those of merged queries, keys and values, and of
// layers of GPT-NeoX, Bloom and Falcon, are others there.
std::string name_here(const std::string& word, const std::set<std::string>& products) {
  constexpr std::pair<const char*, const char*> kOtherNames[] = {{"query_key_value", "qkv_proj"},
                                                                 {"dense", "o_proj"},
                                                                 {"dense_h_to_4h", "up_proj"},
                                                                 {"dense_4h_to_h", "down_proj"},
                                                                 {"q_proj", "qkv_proj"},
                                                                 {"v_proj", "qkv_proj"},
                                                                 {"q_proj", "c_attn"},
                                                                 {"v_proj", "c_attn"},
                                                                 {"q_proj", "query"},
                                                                 {"v_proj", "value"},
                                                                 {"q_proj", "q"},
                                                                 {"v_proj", "v"}};
  if (products.contains(word)) return word;
  for (const auto& [theirs, here] : kOtherNames) {
    if (word == theirs && products.contains(here)) return here;
  }
  return word;
}

// Throws InputError if a word names none of the model's modules.
void expect_modules(const std::vector<std::string>& words, const std::set<std::string>& modules) {
  std::string all;
  for (const std::string& module : modules) all += (all.empty() ? "" : ", ") + module;
  for (const std::string& word : words) {
    if (modules.contains(word)) continue;
    throw InputError("adapters: '" + word + "' is none of the model's modules: " + all);
  }
}

bool begins_so(const std::string& name, const std::string& begin) {
  if (!begin.ends_with('$')) return name.starts_with(begin);
  return name == begin.substr(0, begin.size() - 1);
}

bool begins_with_any(const std::string& name, const std::vector<std::string>& begins) {
  return std::ranges::any_of(begins,
                             [&](const std::string& begin) { return begins_so(name, begin); });
}

// Says if a parameter is trained in full.
bool trains_whole(const Parameter& parameter, const Adapters& adapters) {
  const std::string name = parameter.name.substr(0, parameter.name.rfind('.'));
  if (is_in(adapters.trained, name.substr(name.rfind('.') + 1))) return true;
  if (begins_with_any(parameter.name, adapters.begins)) return true;
  return !adapters.frozen.empty() && !begins_with_any(parameter.name, adapters.frozen);
}

// Adds the beginnings that no parameter's name has.
void add_unmatched(const Parameters& model, const std::vector<std::string>& begins,
                   std::vector<std::string>& unmatched) {
  for (const std::string& begin : begins) {
    const bool found = std::ranges::any_of(
        model, [&](const Parameter& each) { return begins_so(each.name, begin); });
    if (!found) unmatched.push_back(begin);
  }
}

}  // namespace

Json with_adapters(const Json& workload, const Adapters& adapters, const std::string& dtype,
                   std::vector<std::string>& unmatched) {
  const bool made = workload.contains("operators");
  const Parameters model = made ? generated(workload) : listed(workload);
  std::set<std::string> products, modules;
  for (const Parameter& each : model) {
    const std::string module = module_of(each);
    if (!module.empty()) products.insert(module);
    std::string name = each.name.substr(0, each.name.rfind('.'));
    modules.insert(name.substr(name.rfind('.') + 1));
  }
  std::vector<std::string> targets;
  for (const std::string& word : adapters.targets) {
    const bool usual = adapters.usual || !(word == "q_proj" || word == "v_proj");
    targets.push_back(usual ? name_here(word, products) : word);
  }
  expect_modules(targets, products);
  expect_modules(adapters.trained, modules);
  add_unmatched(model, adapters.begins, unmatched);
  add_unmatched(model, adapters.frozen, unmatched);
  Parameters all;
  for (Parameter each : model) {
    const bool sees = each.name.find("vision") != std::string::npos;
    if (sees && !adapters.text_alone && adapters.rank > 0) {
      throw InputError("adapters: of a model that also reads images are not modelled");
    }
    const std::string module = module_of(each);
    const std::string name = each.name.substr(0, each.name.rfind('.'));
    const bool head = module.find("head") != std::string::npos || module == "score";
    const bool named = targets.empty() ? !module.empty() && !head : is_in(targets, module);
    const bool target = named && !sees && adapters.rank > 0;
    if (target && name.find("expert") != std::string::npos) {
      throw InputError("adapters: of experts (" + name +
                       ") are not modelled: name the targets among the others");
    }
    const std::vector<std::int64_t> own = each.shape;
    each.trained = trains_whole(each, adapters);
    if (!each.trained) {
      // Quantised products take fewer bytes than the format has.
      constexpr std::int64_t kBits = 16;
      const bool fewer = adapters.bits > 0 && !module.empty() && !head;
      if (fewer) each.shape = {static_cast<std::int64_t>(each.elements) * adapters.bits / kBits};
      each.dtype = fewer ? "bf16" : dtype;
    }
    all.push_back(each);
    if (!target) continue;
    const std::int64_t out = own[0], in = own[1];
    for (const auto& [part, shape] : {std::pair{".lora_A.weight", std::vector{adapters.rank, in}},
                                      {".lora_B.weight", std::vector{out, adapters.rank}}}) {
      const auto elements = static_cast<double>(shape[0] * shape[1]);
      all.push_back({name + part, shape, elements, "fp32", elements});
    }
  }
  if (std::ranges::none_of(all, &Parameter::trained)) {
    throw InputError(adapters.rank > 0 ? "adapters: the model has no product to put them at"
                                       : "no parameter of the model is trained: none begins with " +
                                             (unmatched.empty() ? "" : unmatched.front()));
  }
  Json adapted =
      workload_of(workload.at("name"), workload.value("source", ""), tensors_of(all, true));
  // FLOPs are those of one sample.
  for (const auto& [key, value] : workload.items()) {
    if (key != "operators" && key != "tensors" && key != "batch") adapted[key] = value;
  }
  return adapted;
}

}  // namespace syncline::job::models
