#include "core/collective/algorithm.h"

#include <algorithm>
#include <array>

namespace syncline::collective {

std::span<const Algorithm> algorithms() {
  static const std::array kRows = {
      ring_algorithm(),
      to_one_algorithm(),
      double_binary_tree_algorithm(),
      halving_doubling_algorithm(),
  };
  return kRows;
}

const Algorithm* find_algorithm(std::string_view name) {
  const auto rows = algorithms();
  const auto row = std::ranges::find(rows, name, &Algorithm::name);
  if (row != rows.end()) return &*row;
  return name == all_to_all()->name ? all_to_all() : nullptr;
}

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names;
  for (const Algorithm& row : algorithms()) names.emplace_back(row.name);
  return names;
}

std::int64_t pipeline_chunks(std::int64_t elements) {
  const std::int64_t full = elements / kChunkElements;
  const std::int64_t begun = elements % kChunkElements == 0 ? full : full + 1;
  return std::clamp<std::int64_t>(begun, 1, kMaxChunks);
}

}  // namespace syncline::collective
