// Model files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/job/format.h"

namespace syncline::job::models {

// The header of a .safetensors file: eight bytes of length, then JSON with each tensor's format and
// shape (https://github.com/huggingface/safetensors). The weights behind it are never read.
bool recognises_safetensors(const Head& head);

// One file, or all parts of one model. Tensors become gradients; what has none (statistics, masks,
// positions, integers) is left out. FLOPs are those of the weights' products with kTokens tokens,
// for one sample. Throws InputError for a header that is too long, damaged, or lies about its
// sizes.
Observed read_safetensors(const std::vector<std::string>& files);

inline constexpr std::int64_t kTokens = 1024;

// The order in which a model uses its parameters, as far as their names tell: files list them by
// name. True where the model uses `first` before `second`: embeddings before layers, layers by
// number, attention before the feed-forward half, heads last; otherwise by the alphabet.
bool used_before(std::string_view first, std::string_view second);

// Hugging Face's config.json: the sizes of a model, from which its operators are generated. Models
// of the families of core/operators: llama, mistral, qwen2, qwen3, gpt2, bert, vit; mixtures of
// experts: mixtral, qwen3_moe, deepseek_v2 and _v3.
bool recognises_config(const Head& head);

// One file. Throws InputError for a model type that is not known, by its name, and sizes that are
// missing or make no sense.
Observed read_config(const std::vector<std::string>& files);

}  // namespace syncline::job::models
