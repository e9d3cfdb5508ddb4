#include "core/algorithm.h"

#include <algorithm>

#include "core/base/internal_error.h"

namespace syncline::collective {

namespace {

std::vector<Algorithm>& algorithm_rows() {
  static std::vector<Algorithm> rows{ring_algorithm(), to_one_algorithm(),
                                     double_binary_tree_algorithm(), halving_doubling_algorithm()};
  return rows;
}

}  // namespace

std::span<const Algorithm> algorithms() { return algorithm_rows(); }

void hand_in(const Algorithm& row) {
  if (find_algorithm(row.name) != nullptr) {
    throw InternalError("two algorithms have the name '" + std::string(row.name) + "'");
  }
  algorithm_rows().push_back(row);
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

Stages pipelined_stages(std::int64_t sets, std::int64_t chunks, double fraction) {
  Stages stages;
  for (std::int64_t r = 0; r < chunks + sets - 1; ++r) {
    if (r >= sets && r < chunks) {  // the same edges as in the round before are busy
      ++stages.back().repeat;
      continue;
    }
    const auto first = std::max<std::int64_t>(0, r - chunks + 1);
    stages.push_back({static_cast<std::size_t>(first),
                      static_cast<std::size_t>(std::min(r, sets - 1)) + 1, fraction, 1});
  }
  return stages;
}

EdgeSet edges_of(const Round& round) {
  EdgeSet edges;
  for (const Transfer& transfer : round) edges.push_back({transfer.from, transfer.to});
  return edges;
}

}  // namespace syncline::collective
