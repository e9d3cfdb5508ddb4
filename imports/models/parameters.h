// A model as the list of its parameters, from a file's header, a print of torch's, or the rules of
// a model's family.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json/json.h"

namespace syncline::job::models {

// Limits of every such list, checked before a text is built.
inline constexpr std::size_t kMaxTensors = 200'000;
inline constexpr std::size_t kMaxDimensions = 64;     // of a tensor
inline constexpr long long kMaxElements = 1ll << 40;  // of a tensor

struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  double elements = 1;
  std::string dtype = "fp32";  // empty: no format that gradients have
  double multiplied = 0;       // weights that each token is multiplied by: 0 of a table, a norm
  bool trained = true;
};
using Parameters = std::vector<Parameter>;

// Returns true if a table's rows are looked up; or if a parameter is state without a gradient.
bool is_table(std::string_view name);
bool is_state(std::string_view name, std::size_t dimensions);

// Guesses by names and dimensions which parameters multiply tokens. A model without a head has the
// largest table for one. Returns true if FLOPs are known: convolutions' are not. Adds warnings.
bool guess_products(Parameters& parameters, std::vector<std::string>& warnings);

// Returns the number of elements of a shape; nullopt: more than a tensor may have.
std::optional<std::int64_t> elements_of(const std::vector<std::int64_t>& shape);

// Returns the parameters in backward order with the FLOPs of kTokens tokens, given them in the
// order of use. Those of frozen ones are the forward ones and, if an earlier parameter is trained,
// those of their inputs' gradients.
Json tensors_of(const Parameters& parameters, bool flops);

// Returns a workload of those tensors.
Json workload_of(const std::string& name, const std::string& source, Json tensors);

}  // namespace syncline::job::models
