// The header of a .safetensors file: eight bytes of length, then JSON with each tensor's format and
// shape (https://github.com/huggingface/safetensors). The weights behind it are never read.
#pragma once

#include <string>
#include <vector>

#include "core/job/format.h"

namespace syncline::job::models {

bool recognises_safetensors(const Head& head);

// One file, or all parts of one model. Tensors become gradients; what has none (statistics, masks,
// positions, integers) is left out. FLOPs are those of the weights' products with kTokens tokens,
// for one sample. Throws InputError for a header that is too long, damaged, or lies about its
// sizes.
Observed read_safetensors(const std::vector<std::string>& files);

inline constexpr std::int64_t kTokens = 1024;

}  // namespace syncline::job::models
