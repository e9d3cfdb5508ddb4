#include "core/collective/critical_path.h"

#include <algorithm>

namespace syncline::collective {
namespace {

// What a message holds its sender's wire for, and after how long it is there.
struct Duration {
  Seconds wire = 0;
  Seconds arrival = 0;
};

class CriticalPath {
 public:
  CriticalPath(const Footprint& footprint, double bytes)
      : footprint_(footprint),
        bytes_(bytes),
        work_(footprint.link_kinds(), 0.0),
        durations_(footprint.ways().size()),
        free_(footprint.rank_classes(), 0.0),
        received_(footprint.rank_classes(), 0.0) {}

  // Goes through the rounds of a stage; returns when the last rank is through with them.
  Seconds pass(const Stage& stage, const StagePrice& price) {
    set_durations(stage, price);
    for (std::int64_t round = 0; round < stage.repeat; ++round) {
      next_free_ = free_;
      next_received_ = received_;
      for (std::size_t s = stage.first; s < stage.last; ++s) send(footprint_.sets()[s].messages);
      free_.swap(next_free_);
      received_.swap(next_received_);
    }
    return *std::max_element(free_.begin(), free_.end());
  }

 private:
  // How long each way takes beside all that is under way in the stage.
  void set_durations(const Stage& stage, const StagePrice& price) {
    for (const auto& [kind, seconds] : price.links) {
      work_[static_cast<std::size_t>(kind)] = seconds / static_cast<double>(stage.repeat);
    }
    for (std::size_t s = stage.first; s < stage.last; ++s) {
      for (const int id : footprint_.sets()[s].ways) {
        const Way& way = footprint_.ways()[static_cast<std::size_t>(id)];
        double seconds = stage.fraction / way.flow_cap;
        for (const int kind : way.links) {
          seconds = std::max(seconds, work_[static_cast<std::size_t>(kind)]);
        }
        durations_[static_cast<std::size_t>(id)] = {footprint_.fastest() + seconds * bytes_,
                                                    way.latency + seconds * bytes_};
      }
    }
  }

  // Every message after its sender's last round and its receiver's last message.
  void send(const std::vector<MessageKind>& messages) {
    for (const MessageKind& m : messages) {
      const auto from = static_cast<std::size_t>(m.from);
      const auto to = static_cast<std::size_t>(m.to);
      const Duration& duration = durations_[static_cast<std::size_t>(m.way)];
      const Seconds begin = std::max(free_[from], received_[to]);
      const Seconds left = begin + duration.wire;
      next_free_[from] = std::max(next_free_[from], left);
      next_free_[to] = std::max(next_free_[to], begin + duration.arrival);
      next_received_[to] = std::max(next_received_[to], left);
    }
  }

  const Footprint& footprint_;
  double bytes_;
  std::vector<double> work_;         // of the stage at hand, by kind of link
  std::vector<Duration> durations_;  // of the stage at hand, by way
  // By class of ranks: when it begins its next round, and when its last awaited message was off
  // the wire.
  std::vector<Seconds> free_, received_, next_free_, next_received_;
};

}  // namespace

std::vector<Seconds> stage_latencies(const Footprint& footprint, const Stages& stages,
                                     const std::vector<StagePrice>& prices, double bytes) {
  std::vector<Seconds> added;
  added.reserve(stages.size());
  if (footprint.uniform()) {
    for (const Stage& stage : stages) {
      added.push_back(static_cast<double>(stage.repeat) * footprint.fastest());
    }
    return added;
  }
  CriticalPath path(footprint, bytes);
  Seconds last = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Seconds now = path.pass(stages[s], prices[s]);
    added.push_back(std::max(0.0, now - last - prices[s].seconds_per_byte * bytes));
    last = now;
  }
  return added;
}

}  // namespace syncline::collective
