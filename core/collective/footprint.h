// The load of a collective's edges on the network, folded: thousands of ranks have few kinds of
// links and few kinds of messages. It depends only on the edges, not on the payload, and is
// computed in one pass over them, before all else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "core/collective/collective.h"
#include "core/collective/network.h"
#include "core/collective/schedule.h"

namespace syncline::collective {

// The way of a message: the properties that decide its time.
struct Way {
  Seconds latency = 0;
  BytesPerSecond flow_cap = 0;  // minimum on the way; infinite without one
  std::vector<int> links;       // by kind, each once
  int out = 0;                  // the kind of its sender's own port, which no other rank uses
  int in = 0;                   // and of its receiver's
};

// Equal messages: between classes of ranks that send and await the same, by the same way.
struct TransferKind {
  int from = 0;
  int to = 0;
  int way = 0;
  auto operator<=>(const TransferKind&) const = default;  // NOLINT(modernize-use-nullptr): no 0
};

// The edges of one set, in all groups.
struct SetFootprint {
  // (kind of link, messages on each such link, counted in parts: parts() are one message)
  std::vector<std::pair<int, int>> load;
  BytesPerSecond flow_cap = 0;         // minimum of any message; infinite without one
  std::vector<TransferKind> messages;  // empty if all messages cost the same (uniform)
  std::vector<int> ways;               // of those messages, each once
};

class Footprint {
 public:
  // Counts the edges of all groups together: they work at the same time and share the links.
  Footprint(const Network& network, const Groups& groups, const EdgeSets& sets);

  // Returns the number of kinds. Links of a kind have equal capacity and carry equally many
  // messages of each set. The first link represents its kind.
  std::size_t link_kinds() const { return capacities_.size(); }
  BytesPerSecond capacity(int kind) const { return capacities_[static_cast<std::size_t>(kind)]; }
  // Returns kinds by link id; -1 for unused links and for caps of single flows.
  const std::vector<int>& kind_of_link() const { return kind_of_link_; }
  int first_link(int kind) const { return first_link_[static_cast<std::size_t>(kind)]; }
  int parts() const { return parts_; }

  const std::vector<SetFootprint>& sets() const { return sets_; }

  // True if every message crosses the same tier with the fastest latency; ways and classes are
  // empty then.
  bool uniform() const { return uniform_; }
  Seconds fastest() const { return fastest_; }
  const std::vector<Way>& ways() const { return ways_; }
  std::size_t rank_classes() const { return rank_classes_; }

 private:
  void distinguish_links(const Network& network, const Groups& groups, const EdgeSets& sets);
  void load_links(const Network& network, const Groups& groups, const EdgeSets& sets);
  void list_messages(const Network& network, const Groups& groups, const EdgeSets& sets);
  void merge_alike(int ranks);

  std::vector<int> kind_of_link_;
  std::vector<BytesPerSecond> capacities_;  // by kind
  std::vector<int> first_link_;             // by kind
  std::vector<SetFootprint> sets_;
  std::vector<Way> ways_;
  std::size_t rank_classes_ = 0;
  int parts_ = 1;
  Seconds fastest_ = 0;
  bool uniform_ = true;
};

// Colours for colour refinement (Weisfeiler and Leman 1968; the coarsest equitable partition):
// things that touch equal things get the same colour, and are then handled once.

using Colour = std::uint64_t;

// Returns a hash of both; the order matters (the finaliser of MurmurHash3).
inline Colour mix(Colour a, Colour b) {
  a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6U) + (a >> 2U);
  a *= 0xff51afd7ed558ccdULL;
  return a ^ (a >> 33U);
}

// Returns the bits of a value in memory.
inline Colour bits(double value) {
  Colour out = 0;
  std::memcpy(&out, &value, sizeof out);
  return out;
}

}  // namespace syncline::collective
