#include "core/job/models/layer_order.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <tuple>
#include <vector>

namespace syncline::job::models {
namespace {

// Parts of names in the order in which models use what they name; a part takes the rank of the
// first row that it contains, and `kLayers` where there is none.
struct Ranked {
  std::string_view part;
  int rank;
};
constexpr int kLayers = 50;
constexpr Ranked kRanks[] = {
    {"wte", 0},
    {"embed_tokens", 0},
    {"word_emb", 0},
    {"cls_token", 0},
    {"class_token", 0},
    {"patch_emb", 1},
    {"conv_proj", 1},
    {"wpe", 2},
    {"pos_emb", 2},
    {"position_emb", 2},
    {"token_type", 3},
    {"embed", 4},
    {"conv1", 5},
    {"bn1", 6},
    {"input_layernorm", 10},
    {"layernorm_before", 10},
    {"ln_1", 10},
    {"norm1", 10},
    {"post_attention_layernorm", 30},
    {"layernorm_after", 30},
    {"ln_2", 30},
    {"norm2", 30},
    {"conv2", 31},
    {"bn2", 32},
    {"conv3", 33},
    {"bn3", 34},
    {"q_proj", 20},
    {"query", 20},
    {"k_proj", 21},
    {"key", 21},
    {"v_proj", 22},
    {"value", 22},
    {"c_attn", 22},
    {"in_proj", 22},
    {"q_norm", 23},
    {"k_norm", 24},
    {"self", 24},
    {"attn", 25},
    {"attention", 25},
    {"gate_proj", 40},
    {"up_proj", 41},
    {"c_fc", 41},
    {"intermediate", 41},
    {"mlp", 45},
    {"downsample", 60},
    {"ln_f", 70},
    {"norm", 70},
    {"pooler", 80},
    {"head", 90},
    {"classifier", 90},
    {"fc", 90},
};

int rank_of(std::string_view part) {
  const auto* row = std::find_if(std::begin(kRanks), std::end(kRanks), [&](const Ranked& ranked) {
    return part.find(ranked.part) != std::string_view::npos;
  });
  return row == std::end(kRanks) ? kLayers : row->rank;
}

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto dot = name.find('.');
    parts.push_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    name.remove_prefix(dot + 1);
  }
}

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

// A number's digits without leading zeros. Shorter ones are smaller, however long they are.
std::string_view digits_of(std::string_view number) {
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

// A weight before its bias, layer 9 before layer 10, numbers before words.
auto place_of(std::string_view part) {
  const int kind = part == "weight" ? 0 : part == "bias" ? 1 : is_number(part) ? 2 : 3;
  const std::string_view digits = kind == 2 ? digits_of(part) : std::string_view();
  return std::tuple(rank_of(part), kind, digits.size(), digits, part);
}

}  // namespace

bool used_before(std::string_view first, std::string_view second) {
  const auto a = parts_of(first);
  const auto b = parts_of(second);
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i]) continue;
    return place_of(a[i]) < place_of(b[i]);
  }
  return a.size() < b.size();
}

bool is_embedding(std::string_view name) {
  for (const std::string_view part :
       {"wte", "wpe", "embed_tokens", "word_emb", "position_emb", "token_type_emb"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

bool is_buffer(std::string_view name, std::size_t dimensions) {
  for (const std::string_view ending :
       {"running_mean", "running_var", "num_batches_tracked", "inv_freq", "position_ids",
        "token_type_ids", "masked_bias", "attn_mask"}) {
    if (name.ends_with(ending)) return true;
  }
  return name.ends_with("attn.bias") && dimensions == 4;  // GPT-2's causal mask
}

}  // namespace syncline::job::models
