// The time is the longest chain of messages that wait for each other: neither the sum of the
// slowest messages of all rounds nor their average.
#include "core/collective/critical_path.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

namespace syncline::collective {
namespace {

// Times of a message: it holds its sender's wire for `wire` and has arrived after `arrival`.
struct Duration {
  Seconds wire = 0;
  Seconds arrival = 0;
  Seconds transfer = 0;  // part of both
  Seconds out = 0;       // on its sender's port, of all that this sends in the round
  Seconds in = 0;        // on its receiver's port, of all that this receives in the round
};

std::atomic<std::size_t> walks_so_far = 0;

// Returns the later end. Values stay in registers, references would not.
StageEnd later(StageEnd a, StageEnd b) {
  const bool second = a.time < b.time;
  return {second ? b.time : a.time, second ? b.transfer : a.transfer};
}

// Walks the longest chain of messages. Example: three rounds of a ring over two nodes of two ranks.
// The latency is 1 us inside a node and 3 us across; the bytes of a message take 1 us and 2 us.
//
//   from    to      wire   arrives after  round 1  round 2  round 3
//   first   second  1 + 1  1 + 1          0..2     5..7     8..10 us;
//   second  first   1 + 2  3 + 2          0..5     3..8     7..12 us.
//
// The second rank begins round 2 at 3, once its own message is off the wire. The first one begins
// it at 5, once it has received. The longest chain is across, inside, across: 5 + 2 + 5 = 12 us.
// Three of the slowest messages would take 15 us, three average ones 10.5 us.
class CriticalPath {
 public:
  CriticalPath(const Footprint& footprint, double bytes, bool own_ports)
      : CriticalPath(footprint, bytes, own_ports, memory_of_thread()) {}

  // Returns one round's time in steady state, and its transfer.
  StageEnd stride(const Stage& stage, const StageCost& cost) {
    if (messages_.empty()) count_messages();
    set_durations(stage, cost);
    StageEnd slowest;
    StageEnd mean;
    double messages = 0;
    for (std::size_t s = stage.first; s < stage.last; ++s) {
      for (const auto& [way, count] : messages_[s]) {
        const Duration& duration = durations_[static_cast<std::size_t>(way)];
        slowest = later(slowest, {duration.wire, duration.transfer});
        mean.time += count * duration.arrival;
        mean.transfer += count * duration.transfer;
        messages += count;
      }
    }
    if (messages > 0) mean = {mean.time / messages, mean.transfer / messages};
    return later(slowest, mean);
  }

  // Walks the rounds of a stage; returns when the last rank has finished them.
  StageEnd pass(const Stage& stage, const StageCost& cost) {
    set_durations(stage, cost);
    const auto period =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(footprint_.rank_classes()));
    std::int64_t left = stage.repeat;
    while (left > kFewPeriods * period) {
      const std::vector<Clocks> before = now_;
      for (std::int64_t round = 0; round < period; ++round) pass_round(stage);
      left -= period;
      if (!shifted_alike(stage, before)) continue;
      // All relevant clocks have moved by the same time, as they will in each further period.
      const std::int64_t skipped = left / period;
      move_on(stage, before, static_cast<double>(skipped));
      left -= skipped * period;
    }
    for (; left > 0; --left) pass_round(stage);
    StageEnd last;
    for (const Clocks& clocks : now_) last = later(last, clocks.free);
    return last;
  }

 private:
  // Clocks of a class of ranks: when it begins its next round, and when its last awaited message
  // was off the wire.
  struct Clocks {
    StageEnd free;
    StageEnd received;
  };

  struct Memory {
    std::vector<double> work;
    std::vector<Duration> durations;
    std::vector<Clocks> now, next;
  };

  // Returns a thread's memory, which one path at a time uses: a search walks millions of short
  // ones.
  static Memory& memory_of_thread() {
    thread_local Memory own;
    return own;
  }

  CriticalPath(const Footprint& footprint, double bytes, bool own_ports, Memory& memory)
      : footprint_(footprint),
        bytes_(bytes),
        own_ports_(own_ports),
        work_(memory.work),
        durations_(memory.durations),
        now_(memory.now),
        next_(memory.next) {
    work_.assign(footprint.link_kinds(), 0.0);
    durations_.assign(footprint.ways().size(), {});
    now_.assign(footprint.rank_classes(), {});
    next_.assign(footprint.rank_classes(), {});
  }

  // Shorter stages are walked round by round.
  static constexpr std::int64_t kFewPeriods = 8;

  // Counts each set's messages by way: a stage has many sets, and a set is part of many stages.
  void count_messages() {
    std::vector<double> count(footprint_.ways().size(), 0.0);
    for (const SetFootprint& set : footprint_.sets()) {
      for (const TransferKind& m : set.messages) ++count[static_cast<std::size_t>(m.way)];
      auto& counted = messages_.emplace_back();
      for (const int way : set.ways) {
        counted.emplace_back(way, std::exchange(count[static_cast<std::size_t>(way)], 0.0));
      }
    }
  }

  void pass_round(const Stage& stage) {
    next_ = now_;
    for (std::size_t s = stage.first; s < stage.last; ++s) send(footprint_.sets()[s].messages);
    now_.swap(next_);
  }

  // True if every clock that the stage's messages read has moved by the same time.
  bool shifted_alike(const Stage& stage, const std::vector<Clocks>& before) const {
    constexpr double kRounding = 4e-15;
    Seconds latest = 0;
    for (const Clocks& clocks : now_) latest = std::max(latest, clocks.free.time);
    Seconds shift = -1;
    bool alike = true;
    const auto compare = [&](const StageEnd& now, const StageEnd& then) {
      if (shift < 0) shift = now.time - then.time;
      alike = alike && std::abs(now.time - then.time - shift) <= kRounding * latest;
    };
    for_each_end(stage, [&](std::size_t from, std::size_t to) {
      compare(now_[from].free, before[from].free);
      compare(now_[to].free, before[to].free);
      compare(now_[to].received, before[to].received);
    });
    return alike && shift > 0;
  }

  // Adds `times` the time since `before` to the stage's clocks.
  void move_on(const Stage& stage, const std::vector<Clocks>& before, double times) {
    next_ = now_;
    const auto moved = [&](const StageEnd& now, const StageEnd& then) {
      return StageEnd{now.time + times * (now.time - then.time),
                      now.transfer + times * (now.transfer - then.transfer)};
    };
    for_each_end(stage, [&](std::size_t from, std::size_t to) {
      next_[from].free = moved(now_[from].free, before[from].free);
      next_[to].free = moved(now_[to].free, before[to].free);
      next_[to].received = moved(now_[to].received, before[to].received);
    });
    now_.swap(next_);
  }

  template <typename Visit>
  void for_each_end(const Stage& stage, const Visit& visit) const {
    for (std::size_t s = stage.first; s < stage.last; ++s) {
      for (const TransferKind& m : footprint_.sets()[s].messages) {
        visit(static_cast<std::size_t>(m.from), static_cast<std::size_t>(m.to));
      }
    }
  }

  // Sets the duration of each way, which shares links with others of the stage.
  void set_durations(const Stage& stage, const StageCost& cost) {
    for (const auto& [kind, seconds] : cost.links) {
      work_[static_cast<std::size_t>(kind)] = seconds / static_cast<double>(stage.repeat);
    }
    for (std::size_t s = stage.first; s < stage.last; ++s) {
      for (const int id : footprint_.sets()[s].ways) {
        const Way& way = footprint_.ways()[static_cast<std::size_t>(id)];
        double seconds = stage.fraction / way.flow_cap;
        for (const int kind : way.links) {
          const double on_link =
              own_ports_ ? stage.fraction / footprint_.parts() / footprint_.capacity(kind)
                         : work_[static_cast<std::size_t>(kind)];
          seconds = std::max(seconds, on_link);
        }
        durations_[static_cast<std::size_t>(id)] = {
            footprint_.fastest() + seconds * bytes_, way.latency + seconds * bytes_,
            seconds * bytes_, work_[static_cast<std::size_t>(way.out)] * bytes_,
            work_[static_cast<std::size_t>(way.in)] * bytes_};
      }
    }
  }

  // Sends every message after its sender's last round and its receiver's last message.
  void send(const std::vector<TransferKind>& messages) {
    for (const TransferKind& m : messages) {
      const auto from = static_cast<std::size_t>(m.from);
      const auto to = static_cast<std::size_t>(m.to);
      const Duration& duration = durations_[static_cast<std::size_t>(m.way)];
      const StageEnd begin = later(now_[from].free, now_[to].received);
      const Seconds transfer = begin.transfer + duration.transfer;
      const StageEnd left{begin.time + duration.wire, transfer};
      next_[from].free = later(next_[from].free, left);
      next_[to].free = later(next_[to].free, {begin.time + duration.arrival, transfer});
      next_[to].received = later(next_[to].received, left);
      if (own_ports_) {
        next_[from].free = later(next_[from].free, on_port(now_[from].free, duration.out));
        const StageEnd received = on_port(now_[to].received, duration.in);
        next_[to].received = later(next_[to].received, received);
        next_[to].free = later(next_[to].free, received);
      }
    }
  }

  // Returns when a port has passed all of a round.
  StageEnd on_port(const StageEnd& begin, Seconds transfer) const {
    return {begin.time + footprint_.fastest() + transfer, begin.transfer + transfer};
  }

  const Footprint& footprint_;
  double bytes_;
  bool own_ports_;                    // a message shares only these (stage_ends)
  std::vector<double>& work_;         // of the current stage, by kind of link
  std::vector<Duration>& durations_;  // of the current stage, by way
  std::vector<Clocks>&now_, &next_;   // by class of ranks
  std::vector<std::vector<std::pair<int, double>>> messages_;  // by set, once counted
};

}  // namespace

std::size_t walks() { return walks_so_far; }

std::vector<StageEnd> stage_ends(const Footprint& footprint, const Stages& stages,
                                 const std::vector<StageCost>& costs, double bytes,
                                 bool own_ports) {
  walks_so_far.fetch_add(1, std::memory_order_relaxed);
  CriticalPath path(footprint, bytes, own_ports);
  std::vector<StageEnd> ends;
  ends.reserve(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) ends.push_back(path.pass(stages[s], costs[s]));
  return ends;
}

std::vector<StageEnd> steady_ends(const Footprint& footprint, const Stages& stages,
                                  const std::vector<StageCost>& costs, double bytes) {
  CriticalPath path(footprint, bytes, false);
  std::vector<StageEnd> ends;
  StageEnd end;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StageEnd round = path.stride(stages[s], costs[s]);
    const auto rounds = static_cast<double>(stages[s].repeat);
    end = {end.time + rounds * round.time, end.transfer + rounds * round.transfer};
    ends.push_back(end);
  }
  return ends;
}

namespace {

// A straight piece of the time over the payload: its latency, and its seconds per byte.
using Tangent = std::pair<Seconds, double>;

StageEnd end_of(const Tangent& tangent, double bytes) {
  const Seconds transfer = tangent.second * bytes;
  return {tangent.first + transfer, transfer};
}

Tangent tangent_at(double bytes, const LastEnds::Walk& walk) {
  const StageEnd end = walk(bytes);
  return {end.time - end.transfer, end.transfer / bytes};
}

// Adds tangents between two, until their maximum is the time everywhere there; false if there would
// be too many.
bool refine(double low, Tangent at_low, double high, Tangent at_high, const LastEnds::Walk& walk,
            std::vector<Tangent>& found) {
  constexpr std::size_t kMax = 32;
  constexpr double kRounding = 1e-12;
  const auto alike = [](Seconds a, Seconds b) { return std::abs(a - b) <= kRounding * a; };
  if (alike(end_of(at_high, high).time, end_of(at_low, high).time)) return true;
  const double knot = (at_low.first - at_high.first) / (at_high.second - at_low.second);
  if (!(knot > low && knot < high) || found.size() == kMax) return false;
  const Tangent at_knot = tangent_at(knot, walk);
  const Seconds time = end_of(at_knot, knot).time;
  if (alike(time, end_of(at_low, knot).time)) return true;
  if (time < end_of(at_low, knot).time) return false;  // not convex
  found.push_back(at_knot);
  return refine(low, at_low, knot, at_knot, walk, found) &&
         refine(knot, at_knot, high, at_high, walk, found);
}

}  // namespace

StageEnd LastEnds::at(double bytes, const Walk& walk) {
  if (bytes <= 0) return walk(bytes);
  int power = 0;
  std::frexp(bytes, &power);
  const auto [cell, fresh] = cells_.try_emplace(power);
  auto& tangents = cell->second;
  if (fresh) {
    const double low = std::ldexp(0.5, power);
    const double high = std::ldexp(1, power);
    tangents = {tangent_at(low, walk), tangent_at(high, walk)};
    const auto [at_low, at_high] = std::pair(tangents[0], tangents[1]);
    if (!refine(low, at_low, high, at_high, walk, tangents)) tangents.clear();
  }
  if (tangents.empty()) return walk(bytes);
  StageEnd last;
  for (const Tangent& each : tangents) last = later(last, end_of(each, bytes));
  return last;
}

std::vector<Seconds> stage_latencies(const std::vector<StageEnd>& ends,
                                     const std::vector<StageCost>& costs, double bytes) {
  std::vector<Seconds> added;
  added.reserve(ends.size());
  Seconds last = 0;
  for (const StageEnd& end : ends) {
    added.push_back(end.time - last - costs[added.size()].seconds_per_byte * bytes);
    last = end.time;
  }
  return added;
}

}  // namespace syncline::collective
