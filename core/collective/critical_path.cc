#include "core/collective/critical_path.h"

#include <algorithm>
#include <cmath>

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
    const auto period = static_cast<std::int64_t>(footprint_.rank_classes());
    std::int64_t left = stage.repeat;
    while (left > kFewPeriods * period) {
      const std::vector<Seconds> free = free_;
      const std::vector<Seconds> received = received_;
      for (std::int64_t round = 0; round < period; ++round) pass_round(stage);
      left -= period;
      const Seconds shift = common_shift(stage, free, received);
      if (shift <= 0) continue;
      // All that matters is later by the same: so it will be after each period from here on.
      const std::int64_t skipped = left / period;
      move_on(stage, shift * static_cast<double>(skipped));
      left -= skipped * period;
    }
    for (; left > 0; --left) pass_round(stage);
    return *std::max_element(free_.begin(), free_.end());
  }

 private:
  // Stages shorter than this are gone through round by round.
  static constexpr std::int64_t kFewPeriods = 8;

  void pass_round(const Stage& stage) {
    next_free_ = free_;
    next_received_ = received_;
    for (std::size_t s = stage.first; s < stage.last; ++s) send(footprint_.sets()[s].messages);
    free_.swap(next_free_);
    received_.swap(next_received_);
  }

  // By how much every clock that the stage's messages read has gone on; 0 where they differ.
  Seconds common_shift(const Stage& stage, const std::vector<Seconds>& free,
                       const std::vector<Seconds>& received) const {
    constexpr double kRounding = 4e-15;
    const Seconds tolerance = kRounding * *std::max_element(free_.begin(), free_.end());
    Seconds shift = -1;
    bool common = true;
    const auto compare = [&](Seconds now, Seconds before) {
      if (shift < 0) shift = now - before;
      common = common && std::abs(now - before - shift) <= tolerance;
    };
    for_each_end(stage, [&](std::size_t from, std::size_t to) {
      compare(free_[from], free[from]);
      compare(free_[to], free[to]);
      compare(received_[to], received[to]);
    });
    return common ? shift : 0;
  }

  void move_on(const Stage& stage, Seconds by) {
    next_free_ = free_;
    next_received_ = received_;
    for_each_end(stage, [&](std::size_t from, std::size_t to) {
      next_free_[from] = free_[from] + by;
      next_free_[to] = free_[to] + by;
      next_received_[to] = received_[to] + by;
    });
    free_.swap(next_free_);
    received_.swap(next_received_);
  }

  template <typename Visit>
  void for_each_end(const Stage& stage, const Visit& visit) const {
    for (std::size_t s = stage.first; s < stage.last; ++s) {
      for (const MessageKind& m : footprint_.sets()[s].messages) {
        visit(static_cast<std::size_t>(m.from), static_cast<std::size_t>(m.to));
      }
    }
  }

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
    added.push_back(now - last - prices[s].seconds_per_byte * bytes);
    last = now;
  }
  return added;
}

}  // namespace syncline::collective
