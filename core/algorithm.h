// The table of collective algorithms. Each is a file of its own and a row here. A program adds rows
// of its own by hand_in (examples/algorithm.cc).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/schedule.h"

namespace syncline::collective {

// Closed form on one tier with full-duplex ports: time = steps * latency + volume * payload bytes /
// bandwidth.
struct Cost {
  double steps = 0;
  double volume = 0;
};

struct Algorithm {
  std::string_view name;
  std::string_view summary;  // one line for `syncline list`
  bool (*fits)(CollectiveKind, int ranks);
  // Returns the exact transfers; none for one rank. Requires fits(kind, ranks).
  Schedule (*rounds)(CollectiveKind, int ranks, std::int64_t elements);
  // Returns the same, folded for costing: the edges that are busy together, for any payload, and
  // their rounds. Expanded by `repeat`, the stages have one entry per round, in order.
  EdgeSets (*edges)(CollectiveKind, int ranks);
  Stages (*stages)(CollectiveKind, int ranks, std::int64_t elements);
  // Returns the textbook formula, written down independently of the functions above.
  Cost (*cost)(CollectiveKind, int ranks, std::int64_t elements);
  // Returns the pipeline chunks of a payload (1 if the algorithm does not pipeline). Payloads with
  // the same number of chunks have the same stages.
  std::int64_t (*chunks)(CollectiveKind, int ranks, std::int64_t elements);
};

// Returns the rows that libraries sum by, in the order of their output.
std::span<const Algorithm> algorithms();

// Adds a row. Requires a new name, and that the table was not read before.
void hand_in(const Algorithm& row);

// Returns the row of that name, all_to_all() for its name, or nullptr.
const Algorithm* find_algorithm(std::string_view name);

// Returns the names of all rows.
std::vector<std::string> algorithm_names();

// Pipelined algorithms cut a payload into at most kMaxChunks chunks. A chunk has at least
// kChunkElements (512 KiB of fp32, the chunk of NCCL's Simple protocol on trees).
inline constexpr std::int64_t kChunkElements = 131072;
inline constexpr std::int64_t kMaxChunks = 128;
std::int64_t pipeline_chunks(std::int64_t elements);

// Returns 1, for algorithms that do not pipeline.
inline std::int64_t one_chunk(CollectiveKind, int, std::int64_t) { return 1; }

// Returns the fill, steady state and drain of a pipeline of `sets` sets of edges. One set starts
// per round and is busy for `chunks` rounds with `fraction` of the payload. Rounds in a row with
// the same busy sets are one stage.
Stages pipelined_stages(std::int64_t sets, std::int64_t chunks, double fraction);

// Returns the edges of a round, in order.
EdgeSet edges_of(const Round& round);

// The ring: every member sends only to the next one, so each port carries the minimum of bytes of
// any all-reduce, for 2(N-1) start-up times. Use it for large payloads on few ranks. P. Patarasuk
// and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel
// and Distributed Computing 69 (2009).

// Returns its row: all kinds; reduce and broadcast, along an open chain, up to 1024 ranks.
Algorithm ring_algorithm();

// All to one: every member sends its whole payload to member 0, which sums and sends the sum back,
// like workers and one parameter server. It has the fewest steps; member 0's port is the bottleneck
// with N-1 payloads each way. Use it for tiny payloads, and as the baseline of the others.

// Returns its row: all_reduce, reduce and broadcast.
Algorithm to_one_algorithm();

// Recursive halving and doubling: the ring's bytes in 2 log2 N steps instead of 2(N-1). Its
// partners are far away and share links if the network is thinner at the top. Use it for
// middle-sized payloads on a power of two of well connected ranks.

// Returns its row: all_reduce on any number of ranks; reduce_scatter, all_gather on powers of two.
Algorithm halving_doubling_algorithm();

// Two binary trees at once, each carrying half of the payload: log N start-up times like a tree.
// For large payloads its bandwidth is nearly the ring's: ranks with children in one tree are leaves
// of the other, so no port idles. Use it on many ranks. P. Sanders, J. Speck and J. L. Traff,
// "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35
// (2009); NCCL's tree algorithm since version 2.4.

// Returns its row: all_reduce, reduce and broadcast.
Algorithm double_binary_tree_algorithm();

// All to all: each member sends each other member its shard directly; the receiver sums its shards
// and sends the sum to all. Two rounds with the ring's bytes. A number is rounded twice, for any
// number of members, so it suits gradients of low precision (compress::Codec::block), which no
// library sums. It is no row of algorithms(): the links cannot cost many messages that arrive at
// once, and searches would choose it everywhere.

// Fits all_reduce, reduce_scatter (the exchange, with a sum) and all_gather, among at most
// kMaxAllToAll members: any two of them exchange a message.
inline constexpr int kMaxAllToAll = 1024;
const Algorithm* all_to_all();

}  // namespace syncline::collective
