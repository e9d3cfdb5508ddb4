// The table of collective algorithms. Each lives in a file of its own and is one row here; a new
// algorithm is a new file and a new row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/schedule.h"

namespace syncline::collective {

// Closed form on one tier whose ports are full duplex:
// time = steps * latency + volume * payload bytes / bandwidth.
struct Cost {
  double steps = 0;
  double volume = 0;
};

struct Algorithm {
  std::string_view name;
  std::string_view summary;  // one line for `syncline list`
  bool (*fits)(CollectiveKind, int ranks);
  // The exact transfers. Requires fits(kind, ranks). Empty for one rank.
  Schedule (*rounds)(CollectiveKind, int ranks, std::int64_t elements);
  // The same, folded for costing: which edges are busy together, whatever the payload, and when
  // they are. Expanded by `repeat`, the stages have one entry a round, in order.
  EdgeSets (*edges)(CollectiveKind, int ranks);
  Stages (*stages)(CollectiveKind, int ranks, std::int64_t elements);
  // The textbook formula, written down independently of the two above.
  Cost (*cost)(CollectiveKind, int ranks, std::int64_t elements);
  // How many pipeline chunks a payload is cut into (1 where the algorithm does not pipeline):
  // schedules of payloads with the same number of chunks have the same stages.
  std::int64_t (*chunks)(CollectiveKind, int ranks, std::int64_t elements);
};

// All rows that libraries sum by, in the order in which they are listed to users.
std::span<const Algorithm> algorithms();

// The row of that name, or all_to_all(), or nullptr.
const Algorithm* find_algorithm(std::string_view name);

// The names of all rows.
std::vector<std::string> algorithm_names();

// Pipelined algorithms cut a payload into chunks of at least kChunkElements (512 KiB of fp32, the
// chunk of NCCL's Simple protocol on trees), at most kMaxChunks of them.
inline constexpr std::int64_t kChunkElements = 131072;
inline constexpr std::int64_t kMaxChunks = 128;
std::int64_t pipeline_chunks(std::int64_t elements);

}  // namespace syncline::collective
