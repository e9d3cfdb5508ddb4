// Hugging Face's config.json: the sizes of a model, from which its operators are generated. Dense
// models of the families of core/operators: llama, mistral, qwen2, qwen3, gpt2, bert, vit.
#pragma once

#include <string>
#include <vector>

#include "core/job/format.h"

namespace syncline::job::models {

bool recognises_config(const Head& head);

// One file. Throws InputError for a model type that is not known, by its name, a mixture of
// experts, and sizes that are missing or make no sense.
Observed read_config(const std::vector<std::string>& files);

}  // namespace syncline::job::models
