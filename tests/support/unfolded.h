// What a collective costs, worked out edge by edge and rank by rank: the twin of the folded costs.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "core/base/index.h"
#include "core/collective/collective.h"
#include "core/collective/network.h"

namespace syncline::test {

class UnfoldedCost {
 public:
  struct Stage {
    double seconds_per_byte = 0;  // of payload, all rounds
    std::map<int, double> links;  // by link id: seconds per payload byte, all rounds
  };

  UnfoldedCost(const Cluster& cluster, const collective::Collective& collective)
      : network_(cluster), sent_(index(cluster.ranks()), 0.0) {
    const collective::Groups& groups = collective.groups;
    const auto sets = collective.algorithm->edges(collective.kind, groups.size);
    for (const auto& stage :
         collective.algorithm->stages(collective.kind, groups.size, collective.elements)) {
      auto& messages = messages_.emplace_back();
      for (std::size_t s = stage.first; s < stage.last; ++s) {
        for (int g = 0; g < groups.count; ++g) {
          for (const auto& edge : sets[s]) {
            messages.push_back(message(groups.rank(g, edge.from), groups.rank(g, edge.to)));
          }
        }
      }
      repeats_.push_back(stage.repeat);
      cost(messages, stage.fraction, static_cast<double>(stage.repeat));
    }
  }

  const std::vector<Stage>& stages() const { return stages_; }
  double payloads_sent(int rank) const { return sent_[index(rank)]; }

  // The longest chain of messages, every rank by itself (critical_path.h).
  std::vector<Seconds> latencies(double bytes) const {
    std::vector<Seconds> free(sent_.size(), 0.0);
    std::vector<Seconds> received(sent_.size(), 0.0);
    std::vector<Seconds> added;
    Seconds last = 0;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      for (std::int64_t round = 0; round < repeats_[s]; ++round) {
        pass_round(messages_[s], bytes, free, received);
      }
      const Seconds now = *std::max_element(free.begin(), free.end());
      added.push_back(now - last - stages_[s].seconds_per_byte * bytes);
      last = now;
    }
    return added;
  }

 private:
  struct Message {
    std::size_t from = 0;
    std::size_t to = 0;
    Seconds latency = 0;
    std::vector<int> route;
    double seconds_per_byte = 0;
  };

  Message message(int from, int to) const {
    Message m{index(from), index(to), network_.latency(from, to), {}, 0};
    network_.route(collective::Groups{}, from, to, m.route);
    return m;
  }

  void cost(std::vector<Message>& messages, double fraction, double repeat) {
    Stage& stage = stages_.emplace_back();
    std::map<int, double> shares;
    for (const Message& m : messages) {
      sent_[m.from] += fraction * repeat;
      for (const int id : m.route) shares[id] += fraction;
    }
    double slowest = 0;
    for (Message& m : messages) {
      for (const int id : m.route) {
        const collective::Link& link = network_.link(id);
        const double seconds = (link.per_flow ? fraction : shares[id]) / link.capacity;
        m.seconds_per_byte = std::max(m.seconds_per_byte, seconds);
        if (!link.per_flow) stage.links[id] = seconds * repeat;
      }
      slowest = std::max(slowest, m.seconds_per_byte);
    }
    stage.seconds_per_byte = slowest * repeat;
  }

  void pass_round(const std::vector<Message>& messages, double bytes, std::vector<Seconds>& free,
                  std::vector<Seconds>& received) const {
    auto next_free = free;
    auto next_received = received;
    for (const Message& m : messages) {
      const Seconds begin = std::max(free[m.from], received[m.to]);
      const Seconds left = begin + network_.fastest() + m.seconds_per_byte * bytes;
      const Seconds arrived = begin + m.latency + m.seconds_per_byte * bytes;
      next_free[m.from] = std::max(next_free[m.from], left);
      next_free[m.to] = std::max(next_free[m.to], arrived);
      next_received[m.to] = std::max(next_received[m.to], left);
    }
    free = std::move(next_free);
    received = std::move(next_received);
  }

  collective::Network network_;
  std::vector<Stage> stages_;
  std::vector<std::vector<Message>> messages_;  // by stage
  std::vector<std::int64_t> repeats_;
  std::vector<double> sent_;
};

}  // namespace syncline::test
