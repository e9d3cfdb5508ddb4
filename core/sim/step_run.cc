#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/base/index.h"
#include "core/plan.h"
#include "core/sim/collective_run.h"
#include "core/sim/pace.h"
#include "core/sim/programs.h"

namespace syncline::sim {
namespace {

struct Progress {
  Program* program = nullptr;
  Seconds begin = 0;
  std::vector<int> round;    // by rank: its current round
  std::vector<int> missing;  // by round: events still to come
  // Receivers take messages in the order of rounds: by rank, the first round with messages still on
  // the wire, and by round, the number of these and the senders that wait for it.
  std::vector<int> receiving;
  std::vector<int> on_wire;
  std::vector<std::vector<int>> waiting;
  std::size_t left = 0;  // messages that have not arrived
  int rounds = 0;        // of each rank, at most: others are skipped
  Pace pace;
  Seconds skipped = 0;  // duration of those
};

class StepRun final : public CollectiveRun {
 public:
  // Prepares the plan's collectives. Every message waits the fastest tier's latency before it
  // begins; a slower tier's extra latency comes after it.
  StepRun(const plan::Plan& plan, const Cluster& cluster, bool fold)
      : network_(cluster),
        latency_(network_.fastest()),
        overhead_(cluster.collective_overhead),
        alone_(!plan::overlaps(plan)),
        skips_(fold && alone_),
        programs_(plan, network_, fold) {}

  FluidPlan fluid_plan() const override { return programs_.fluid(); }

  bool start(Fluid& fluid, int instance, plan::OpId op) override {
    Program& program = programs_.of(op);
    if (program.took >= 0) {
      fluid.start_timer(program.took, {kArrived, instance, -1});
      return false;
    }
    Progress& progress = running_[instance];
    progress.program = &program;
    progress.begin = fluid.now();
    progress.left = program.messages.size();
    progress.missing = program.events;
    progress.round.assign(program.first_round.begin(), program.first_round.end() - 1);
    progress.receiving = progress.round;
    progress.on_wire = program.receives;
    progress.waiting.resize(program.events.size());
    progress.rounds = static_cast<int>(program.events.size());
    for (int rank = 0; rank < program.ranks(); ++rank) skip_received(progress, rank);
    if (overhead_ > 0) {
      fluid.start_timer(overhead_, {kWoke, instance, -1});
      return false;
    }
    if (progress.left == 0) {
      running_.erase(instance);
      return true;
    }
    begin(fluid, instance, progress);
    return false;
  }

  int handle(Fluid& fluid, Fluid::Token token) override {
    if (token.kind == kArrived && token.b < 0) return token.a;
    Progress& progress = running_.at(token.a);
    if (token.kind == kWoke && token.b < 0) {
      if (progress.left == 0) return end(fluid, token.a, progress);
      begin(fluid, token.a, progress);
      return -1;
    }
    const auto& message = progress.program->messages[index(token.b)];
    if (token.kind == kWoke) {
      note(fluid, progress, Pace::kSetOut, message.to);
      fluid.start_flow(message.route, message.bytes, {kFlowDone, token.a, token.b});
      return -1;
    }
    // The sender is free once the message has left it; a slow tier delays only the receiver.
    if (token.kind == kFlowDone) {
      note(fluid, progress, Pace::kOffWire, message.to);
      take_off_wire(fluid, token.a, progress, message.to, message.to_round);
      happen(fluid, token.a, progress, message.from, message.from_round);
      if (message.extra_latency > 0) {
        fluid.start_timer(message.extra_latency, {kArrived, token.a, token.b});
        return -1;
      }
    }
    if (--progress.left == 0) return end(fluid, token.a, progress);
    note(fluid, progress, Pace::kArrival, message.to);
    happen(fluid, token.a, progress, message.to, message.to_round);
    return -1;
  }

 private:
  // Ends the collective, once skipped rounds have passed. Alone on the network, it takes the same
  // time in each period.
  int end(Fluid& fluid, int instance, const Progress& progress) {
    const Seconds skipped = progress.skipped;
    if (alone_) progress.program->took = fluid.now() + skipped - progress.begin;
    running_.erase(instance);
    if (skipped == 0) return instance;
    fluid.start_timer(skipped, {kArrived, instance, -1});
    return -1;
  }

  void begin(Fluid& fluid, int instance, Progress& progress) {
    if (skips_ && progress.program->alike > 0) {
      look_for_pace(*progress.program, progress.pace, fluid.now());
    }
    for (int rank = 0; rank < progress.program->ranks(); ++rank)
      send(fluid, instance, progress, rank);
  }

  // Sends the messages of the rank's current round, if one is left.
  void send(Fluid& fluid, int instance, Progress& progress, int rank) {
    const Program& program = *progress.program;
    const int round = progress.round[index(rank)];
    if (round == end_of(progress, rank)) return;
    const int last = program.send_begin[index(round) + 1];
    for (int s = program.send_begin[index(round)]; s < last; ++s) {
      const int id = program.sends[index(s)];
      const auto& message = program.messages[index(id)];
      if (progress.receiving[index(message.to)] < message.to_round) {
        progress.waiting[index(message.to_round)].push_back(id);
        continue;
      }
      fluid.start_timer(latency_, {kWoke, instance, id});
    }
  }

  // Returns the number after the rank's last round.
  static int end_of(const Progress& progress, int rank) {
    const Program& program = *progress.program;
    return std::min(program.first_round[index(rank) + 1],
                    program.first_round[index(rank)] + progress.rounds);
  }

  // Moves the rank's receiving end past rounds without messages on the wire.
  static void skip_received(Progress& progress, int rank) {
    int& at = progress.receiving[index(rank)];
    const int end = end_of(progress, rank);
    while (at < end && progress.on_wire[index(at)] == 0) ++at;
  }

  // Takes a message to `rank` off the wire: senders that waited for its round may send.
  void take_off_wire(Fluid& fluid, int instance, Progress& progress, int rank, int round) {
    --progress.on_wire[index(round)];
    const int before = progress.receiving[index(rank)];
    skip_received(progress, rank);
    const int now = progress.receiving[index(rank)];
    const int end = end_of(progress, rank);
    for (int r = before + 1; r <= std::min(now, end - 1); ++r) {
      for (const int id : progress.waiting[index(r)]) {
        fluid.start_timer(latency_, {kWoke, instance, id});
      }
      progress.waiting[index(r)].clear();
    }
  }

  // Counts a message that has left or reached the rank. Once its round is complete the rank goes
  // on, also past later complete rounds.
  void happen(Fluid& fluid, int instance, Progress& progress, int rank, int round) {
    --progress.missing[index(round)];
    int& at = progress.round[index(rank)];
    const int end = end_of(progress, rank);
    while (at < end && progress.missing[index(at)] == 0) {
      ++at;
      note(fluid, progress, Pace::kRound, rank);
      send(fluid, instance, progress, rank);
    }
  }

  void look_for_pace(const Program& program, Pace& pace, Seconds now) const {
    std::vector<int> messages;
    for (int rank = 0; rank < program.ranks(); ++rank) {
      messages.push_back(program.receives[index(program.first_round[index(rank)])]);
    }
    Seconds memory = 0;
    for (const auto& message : program.messages) memory = std::max(memory, message.extra_latency);
    pace.begin(std::move(messages), latency_ + memory, now);
  }

  static void note(const Fluid& fluid, Progress& progress, Pace::Event event, int rank) {
    if (!progress.pace.looks() || !progress.pace.note(event, rank, fluid.now())) return;
    skip_rounds(progress);
  }

  // Skips all rounds but the next, as all that is to come repeats: from the end, as they are alike.
  static void skip_rounds(Progress& progress) {
    const Program& program = *progress.program;
    int furthest = 0;
    for (int rank = 0; rank < program.ranks(); ++rank) {
      const int round = progress.round[index(rank)] - program.first_round[index(rank)];
      furthest = std::max(furthest, round);
    }
    const int skipped = std::max(0, program.alike - furthest - 2);
    progress.rounds = program.alike - skipped;
    progress.left -= program.messages.size() / index(program.alike) * index(skipped);
    progress.skipped = skipped * progress.pace.round();
    progress.pace.stop();
  }

  collective::Network network_;
  Seconds latency_;
  Seconds overhead_;
  bool alone_;  // no two collectives are under way at the same time
  bool skips_;  // rounds that repeat
  Programs programs_;
  std::unordered_map<int, Progress> running_;
};

}  // namespace

std::unique_ptr<CollectiveRun> make_step_run(const plan::Plan& plan, const Cluster& cluster,
                                             bool fold) {
  return std::make_unique<StepRun>(plan, cluster, fold);
}

}  // namespace syncline::sim
