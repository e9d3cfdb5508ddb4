// How long the rounds of a collective take where tiers of different speed mix. A rank's next round
// begins when all that it sent in the last one has left it and all that it awaited has arrived; a
// receiver takes messages in the order of its rounds, the next as soon as the last is off the wire.
// A message holds the wire for the fastest tier's latency and its bytes; what a slower tier adds to
// the latency delays the receiver alone. The time is the longest chain of messages that wait for
// each other: neither the sum of the slowest messages of all rounds nor their average.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/collective/groups.h"
#include "core/collective/network.h"
#include "core/collective/schedule.h"

namespace syncline::collective {

class CriticalPath {
 public:
  // All groups work side by side and share the links.
  CriticalPath(const Network& network, const Groups& groups, const Stages& stages);

  // Whether every message pays the fastest tier's latency; then a round takes that and its busiest
  // link's time.
  bool uniform() const { return uniform_; }

  // For a payload of `bytes`: the time that each stage adds beyond its transfer at nominal speed
  // (repeat * seconds per byte of its busiest link, or flow). Not negative.
  std::vector<Seconds> latencies(double bytes) const;

 private:
  // Ranks whose messages are all alike are one class; a message stands for all alike.
  struct Message {
    std::size_t from = 0;
    std::size_t to = 0;
    Seconds latency = 0;
    double seconds_per_byte = 0;
    bool operator<(const Message& other) const;
    bool operator==(const Message& other) const = default;
  };
  void merge_alike(int ranks);

  std::vector<std::vector<Message>> stages_;
  std::vector<std::int64_t> repeats_;
  std::vector<double> nominal_;  // seconds per payload byte of each stage
  std::size_t classes_ = 0;
  Seconds fastest_ = 0;
  bool uniform_ = true;
};

}  // namespace syncline::collective
