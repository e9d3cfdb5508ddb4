// The order in which a model uses its parameters, as far as their names tell: files list them by
// name.
#pragma once

#include <string>
#include <string_view>

namespace syncline::job::models {

// True where the model uses `first` before `second`: embeddings before layers, layers by number,
// attention before the feed-forward half, heads last; otherwise by the alphabet.
bool used_before(std::string_view first, std::string_view second);

// A table whose rows are looked up.
bool is_embedding(std::string_view name);

// State that is saved with a model and has no gradient.
bool is_buffer(std::string_view name, std::size_t dimensions);

}  // namespace syncline::job::models
