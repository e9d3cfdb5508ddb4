#include "imports/models/parameters.h"

#include <algorithm>
#include <array>

#include "imports/format.h"

namespace syncline::job::models {

bool is_table(std::string_view name) {
  return std::ranges::any_of(
      std::array{"wte", "wpe", "embed_tokens", "embed_in", "word_emb", "position_emb",
                 "token_type_emb", "embed_positions"},
      [&](const char* part) { return name.find(part) != std::string_view::npos; });
}

bool is_state(std::string_view name, std::size_t dimensions) {
  for (const std::string_view ending :
       {"running_mean", "running_var", "num_batches_tracked", "inv_freq", "position_ids",
        "token_type_ids", "masked_bias", "attn_mask"}) {
    if (name.ends_with(ending)) return true;
  }
  return name.ends_with("attn.bias") && dimensions == 4;  // GPT-2's causal mask
}

std::optional<std::int64_t> elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent > 0 && elements > kMaxElements / extent) return std::nullopt;
    elements *= extent;
  }
  return elements;
}

bool guess_products(Parameters& parameters, std::vector<std::string>& warnings) {
  double shared = 0;
  bool head = false, convolves = false, experts = false;
  for (Parameter& each : parameters) {
    const bool matrix = each.shape.size() == 2;
    const bool table = is_table(each.name);
    each.multiplied = matrix && !table ? each.elements : 0;
    head = head || each.name.find("head") != std::string::npos;
    convolves = convolves || each.shape.size() == 4;
    experts = experts || each.name.find("experts.") != std::string::npos;
    if (matrix && table) shared = std::max(shared, each.elements);
  }
  if (convolves) {
    warnings.emplace_back(
        "no FLOPs: convolutions take what their images' sizes say, and no file tells them; give "
        "forward_ms and backward_ms");
    return false;
  }
  if (!head && !parameters.empty()) parameters.back().multiplied += shared;
  warnings.push_back("FLOPs of the weights' products with " + std::to_string(kTokens) +
                     " tokens a sample, without attention's own products");
  if (experts) {
    warnings.emplace_back(
        "all experts are counted for each token, which goes to some alone: the model's "
        "config.json tells how many");
  }
  return true;
}

Json tensors_of(const Parameters& parameters, bool flops) {
  const auto first = std::ranges::find_if(parameters, &Parameter::trained);
  Json tensors = Json::array();
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const Parameter& each = parameters[i];
    const double product = 2 * each.multiplied * static_cast<double>(kTokens);
    const bool reached = i >= static_cast<std::size_t>(first - parameters.begin());
    Json tensor = {{"name", each.name}, {"shape", each.shape}, {"dtype", each.dtype}};
    if (!each.trained) tensor["frozen"] = true;
    if (flops) {
      tensor["forward_flops"] = product;
      tensor["backward_flops"] = !reached ? 0 : each.trained ? 2 * product : product;
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Json workload_of(const std::string& name, const std::string& source, Json tensors) {
  return {{"name", name}, {"source", source}, {"batch", 1}, {"tensors", std::move(tensors)}};
}

}  // namespace syncline::job::models
