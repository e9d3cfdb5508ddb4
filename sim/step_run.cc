#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/plan/lower.h"
#include "sim/collective_run.h"

namespace syncline::sim {
namespace {

// A collective's messages, and for each rank the rounds that it takes part in. Rounds are numbered
// through, rank by rank: rank r's are [first_round[r], first_round[r + 1]).
struct Program {
  struct Message {
    int from = 0;
    int to = 0;
    int from_round = 0;
    int to_round = 0;
    int route = 0;
    double bytes = 0;
    Seconds extra_latency = 0;  // beyond what every message pays; delays the receiver
  };
  std::vector<Message> messages;
  std::vector<int> first_round;
  std::vector<int> events;      // by round: messages that leave or reach the rank in it
  std::vector<int> receives;    // by round: messages that reach it
  std::vector<int> send_begin;  // by round: range in `sends`
  std::vector<int> sends;       // message ids
};

struct Progress {
  const Program* program = nullptr;
  std::vector<int> round;    // by rank: where it stands
  std::vector<int> missing;  // by round: events that have not happened yet
  // Receivers take messages in the order of rounds: by rank, the first round whose messages are not
  // all off the wire, and by round, how many of them are missing and which senders wait for it.
  std::vector<int> receiving;
  std::vector<int> on_wire;
  std::vector<std::vector<int>> waiting;
  std::size_t left = 0;  // messages that have not arrived
};

class StepRun final : public CollectiveRun {
 public:
  StepRun(const plan::Plan& plan, const Cluster& cluster)
      : network_(cluster), ranks_(cluster.ranks()), overhead_(cluster.collective_overhead) {
    // Every message pays the fastest tier's latency before it sets out; what a slower tier adds
    // comes after it.
    latency_ = network_.fastest();
    for (const auto& op : plan.ops) {
      const auto* collective = std::get_if<collective::Collective>(&op.work);
      programs_.push_back(collective == nullptr ? nullptr : program_of(*collective));
    }
  }

  FluidPlan fluid_plan() const override {
    FluidPlan plan{{}, routes_};
    for (int id = 0; id < network_.link_count(); ++id) {
      plan.links.push_back({network_.link(id).capacity, network_.link(id).per_flow});
    }
    return plan;
  }

  bool start(Fluid& fluid, int instance, plan::OpId op) override {
    const Program* program = programs_[static_cast<std::size_t>(op)];
    Progress& progress = running_[instance];
    progress.program = program;
    progress.left = program->messages.size();
    progress.missing = program->events;
    progress.round.assign(program->first_round.begin(), program->first_round.end() - 1);
    progress.receiving = progress.round;
    progress.on_wire = program->receives;
    progress.waiting.resize(program->events.size());
    for (int rank = 0; rank < ranks_; ++rank) skip_received(progress, rank);
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
    Progress& progress = running_.at(token.a);
    if (token.kind == kWoke && token.b < 0) {
      if (progress.left > 0) {
        begin(fluid, token.a, progress);
        return -1;
      }
      running_.erase(token.a);
      return token.a;
    }
    const auto& message = progress.program->messages[static_cast<std::size_t>(token.b)];
    if (token.kind == kWoke) {
      fluid.start_flow(message.route, message.bytes, {kFlowDone, token.a, token.b});
      return -1;
    }
    // The sender is free once the message has left it; a slow tier holds up the receiver alone.
    if (token.kind == kFlowDone) {
      take_off_wire(fluid, token.a, progress, message.to, message.to_round);
      happen(fluid, token.a, progress, message.from, message.from_round);
      if (message.extra_latency > 0) {
        fluid.start_timer(message.extra_latency, {kArrived, token.a, token.b});
        return -1;
      }
    }
    if (--progress.left == 0) {
      running_.erase(token.a);
      return token.a;
    }
    happen(fluid, token.a, progress, message.to, message.to_round);
    return -1;
  }

 private:
  const Program* program_of(const collective::Collective& collective) {
    const auto same = std::find_if(known_.begin(), known_.end(), [&](const auto& known) {
      const collective::Collective& other = known.first;
      return other.kind == collective.kind && other.algorithm == collective.algorithm &&
             other.groups == collective.groups && other.elements == collective.elements &&
             other.unit == collective.unit;
    });
    if (same != known_.end()) return same->second.get();

    auto program = std::make_unique<Program>();
    number_rounds(*program, messages_by_rank(collective, *program));
    known_.emplace_back(collective, std::move(program));
    return known_.back().second.get();
  }

  // A message as one of its ends sees it.
  struct End {
    int round = 0;  // of the collective
    int message = 0;
    bool leaves = false;  // the rank; otherwise it reaches it
  };

  // Lists the collective's messages; returns for each rank those that leave or reach it, by round.
  std::vector<std::vector<End>> messages_by_rank(const collective::Collective& collective,
                                                 Program& program) {
    std::vector<std::vector<End>> by_rank(static_cast<std::size_t>(ranks_));
    const collective::Schedule rounds = plan::lower(collective);
    for (std::size_t r = 0; r < rounds.size(); ++r) {
      for (const auto& t : rounds[r]) {
        if (t.elements.size() == 0) continue;
        const Seconds latency = network_.latency(network_.crossing(t.from, t.to));
        const int parts = network_.parts(t.from, t.to);
        const double bytes = static_cast<double>(t.elements.size() * collective.unit) / parts;
        const int route = first_route(collective.groups, t.from, t.to);
        for (int part = 0; part < parts; ++part) {
          const int id = static_cast<int>(program.messages.size());
          program.messages.push_back({t.from, t.to, 0, 0, route + part, bytes, latency - latency_});
          by_rank[static_cast<std::size_t>(t.from)].push_back({static_cast<int>(r), id, true});
          by_rank[static_cast<std::size_t>(t.to)].push_back({static_cast<int>(r), id, false});
        }
      }
    }
    return by_rank;
  }

  // Numbers each rank's rounds through, those alone in which it sends or receives, and counts what
  // happens to it in each.
  static void number_rounds(Program& program, const std::vector<std::vector<End>>& by_rank) {
    for (const auto& list : by_rank) {
      program.first_round.push_back(static_cast<int>(program.events.size()));
      int open = -1;
      for (const auto& [round, id, leaves] : list) {
        if (round != open) {
          program.events.push_back(0);
          program.receives.push_back(0);
          program.send_begin.push_back(static_cast<int>(program.sends.size()));
        }
        open = round;
        ++program.events.back();
        auto& message = program.messages[static_cast<std::size_t>(id)];
        const int number = static_cast<int>(program.events.size()) - 1;
        (leaves ? message.from_round : message.to_round) = number;
        if (leaves) program.sends.push_back(id);
        if (!leaves) ++program.receives.back();
      }
    }
    program.first_round.push_back(static_cast<int>(program.events.size()));
    program.send_begin.push_back(static_cast<int>(program.sends.size()));
  }

  // The route of a message's first part. The routes of its other parts have the next numbers.
  int first_route(const collective::Groups& groups, int from, int to) {
    const std::uint64_t pair =
        static_cast<std::uint64_t>(from) << 32U | static_cast<std::uint32_t>(to);
    auto& known = route_ids_[groups.member_step];
    const auto [it, fresh] = known.try_emplace(pair, static_cast<int>(routes_.size()));
    for (int part = 0; fresh && part < network_.parts(from, to); ++part) {
      network_.route(groups, from, to, part, routes_.emplace_back());
    }
    return it->second;
  }

  void begin(Fluid& fluid, int instance, Progress& progress) {
    for (int rank = 0; rank < ranks_; ++rank) send(fluid, instance, progress, rank);
  }

  // Sends what the rank's round asks for, if there is one left.
  void send(Fluid& fluid, int instance, Progress& progress, int rank) {
    const Program& program = *progress.program;
    const int round = progress.round[static_cast<std::size_t>(rank)];
    if (round == program.first_round[static_cast<std::size_t>(rank) + 1]) return;
    const int last = program.send_begin[static_cast<std::size_t>(round) + 1];
    for (int s = program.send_begin[static_cast<std::size_t>(round)]; s < last; ++s) {
      const int id = program.sends[static_cast<std::size_t>(s)];
      const auto& message = program.messages[static_cast<std::size_t>(id)];
      if (progress.receiving[static_cast<std::size_t>(message.to)] < message.to_round) {
        progress.waiting[static_cast<std::size_t>(message.to_round)].push_back(id);
        continue;
      }
      fluid.start_timer(latency_, {kWoke, instance, id});
    }
  }

  // Moves the rank's receiving end past rounds that have nothing on the wire.
  static void skip_received(Progress& progress, int rank) {
    int& at = progress.receiving[static_cast<std::size_t>(rank)];
    const int end = progress.program->first_round[static_cast<std::size_t>(rank) + 1];
    while (at < end && progress.on_wire[static_cast<std::size_t>(at)] == 0) ++at;
  }

  // A message to `rank` has left the wire: whoever waited for the rank to get so far may send.
  void take_off_wire(Fluid& fluid, int instance, Progress& progress, int rank, int round) {
    --progress.on_wire[static_cast<std::size_t>(round)];
    const int before = progress.receiving[static_cast<std::size_t>(rank)];
    skip_received(progress, rank);
    const int now = progress.receiving[static_cast<std::size_t>(rank)];
    const int end = progress.program->first_round[static_cast<std::size_t>(rank) + 1];
    for (int r = before + 1; r <= std::min(now, end - 1); ++r) {
      for (const int id : progress.waiting[static_cast<std::size_t>(r)]) {
        fluid.start_timer(latency_, {kWoke, instance, id});
      }
      progress.waiting[static_cast<std::size_t>(r)].clear();
    }
  }

  // A message has left or reached the rank. Once its round is complete it goes on, past rounds
  // that were completed early too.
  void happen(Fluid& fluid, int instance, Progress& progress, int rank, int round) {
    --progress.missing[static_cast<std::size_t>(round)];
    int& at = progress.round[static_cast<std::size_t>(rank)];
    const int end = progress.program->first_round[static_cast<std::size_t>(rank) + 1];
    while (at < end && progress.missing[static_cast<std::size_t>(at)] == 0) {
      ++at;
      send(fluid, instance, progress, rank);
    }
  }

  collective::Network network_;
  int ranks_;
  Seconds overhead_;
  Seconds latency_ = 0;
  std::vector<Route> routes_;
  std::map<int, std::unordered_map<std::uint64_t, int>> route_ids_;  // by step of the members
  std::vector<std::pair<collective::Collective, std::unique_ptr<Program>>> known_;
  std::vector<const Program*> programs_;  // by operation
  std::unordered_map<int, Progress> running_;
};

}  // namespace

std::unique_ptr<CollectiveRun> make_step_run(const plan::Plan& plan, const Cluster& cluster) {
  return std::make_unique<StepRun>(plan, cluster);
}

}  // namespace syncline::sim
