#include <algorithm>
#include <unordered_map>

#include "core/plan/lower.h"
#include "sim/collective_run.h"

namespace syncline {
namespace {

// A collective's messages, and for each rank which of them make up its rounds.
struct Program {
  struct Message {
    int from = 0;
    int to = 0;
    int route = 0;
    double bytes = 0;
    Seconds extra_latency = 0;  // beyond what every flow pays
  };
  std::vector<Message> messages;
  // Rank r's rounds are [first_round[r], first_round[r + 1]); round i's messages are
  // members[round_begin[i]] .. members[round_begin[i + 1] - 1].
  std::vector<int> first_round;
  std::vector<int> round_begin;
  std::vector<int> members;
};

// A rank's place in the program.
struct Cursor {
  int round = 0;
  int outstanding = 0;
};

struct Progress {
  const Program* program = nullptr;
  std::vector<Cursor> ranks;
  std::vector<std::int8_t> missing_ends;  // by message: ends that are not there yet
  std::size_t left = 0;                   // messages that have not arrived
};

class StepRun final : public CollectiveRun {
 public:
  StepRun(const Plan& plan, const Cluster& cluster)
      : network_(cluster), ranks_(cluster.ranks()), overhead_(cluster.collective_overhead) {
    // Where all tiers delay alike there is nothing to add; otherwise the slower ones add a timer.
    for (std::size_t t = 0; t < cluster.tiers.size(); ++t) {
      latency_ = t == 0 ? cluster.tiers[t].latency : std::min(latency_, cluster.tiers[t].latency);
    }
    for (const auto& op : plan.ops) {
      const auto* collective = std::get_if<Collective>(&op.work);
      programs_.push_back(collective == nullptr ? nullptr : program_of(*collective));
    }
  }

  FluidPlan fluid_plan() const override {
    FluidPlan plan{{}, routes_, latency_};
    for (int id = 0; id < network_.link_count(); ++id) {
      plan.links.push_back({network_.link(id).capacity, network_.link(id).per_flow});
    }
    return plan;
  }

  bool start(Fluid& fluid, int instance, OpId op) override {
    const Program* program = programs_[static_cast<std::size_t>(op)];
    Progress& progress = running_[instance];
    progress.program = program;
    progress.left = program->messages.size();
    progress.missing_ends.assign(program->messages.size(), 2);
    progress.ranks.resize(static_cast<std::size_t>(ranks_));
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
    if (--progress.left == 0) {
      running_.erase(token.a);
      return token.a;
    }
    arrive(fluid, token.a, progress, message.from);
    arrive(fluid, token.a, progress, message.to);
    return -1;
  }

 private:
  const Program* program_of(const Collective& collective) {
    const auto same = std::find_if(known_.begin(), known_.end(), [&](const auto& known) {
      const Collective& other = known.first;
      return other.kind == collective.kind && other.algorithm == collective.algorithm &&
             other.groups == collective.groups && other.elements == collective.elements &&
             other.unit == collective.unit;
    });
    if (same != known_.end()) return same->second.get();

    auto program = std::make_unique<Program>();
    const Schedule rounds = lower(collective);
    std::vector<std::vector<std::pair<int, int>>> by_rank(static_cast<std::size_t>(ranks_));
    for (std::size_t r = 0; r < rounds.size(); ++r) {
      for (const auto& transfer : rounds[r]) {
        if (transfer.elements.size() == 0) continue;
        const int id = static_cast<int>(program->messages.size());
        const Seconds latency = network_.latency(network_.crossing(transfer.from, transfer.to));
        program->messages.push_back(
            {transfer.from, transfer.to, route_of(transfer.from, transfer.to),
             static_cast<double>(transfer.elements.size() * collective.unit), latency - latency_});
        for (const int rank : {transfer.from, transfer.to}) {
          by_rank[static_cast<std::size_t>(rank)].emplace_back(static_cast<int>(r), id);
        }
      }
    }
    program->first_round.push_back(0);
    for (const auto& list : by_rank) {
      int round = -1;
      for (const auto& [r, id] : list) {
        if (r != round) program->round_begin.push_back(static_cast<int>(program->members.size()));
        round = r;
        program->members.push_back(id);
      }
      program->first_round.push_back(static_cast<int>(program->round_begin.size()));
    }
    program->round_begin.push_back(static_cast<int>(program->members.size()));
    known_.emplace_back(collective, std::move(program));
    return known_.back().second.get();
  }

  int route_of(int from, int to) {
    const std::uint64_t pair =
        static_cast<std::uint64_t>(from) << 32U | static_cast<std::uint32_t>(to);
    const auto [it, fresh] = route_ids_.try_emplace(pair, static_cast<int>(routes_.size()));
    if (fresh) network_.route(from, to, routes_.emplace_back());
    return it->second;
  }

  void begin(Fluid& fluid, int instance, Progress& progress) {
    for (int rank = 0; rank < ranks_; ++rank) {
      progress.ranks[static_cast<std::size_t>(rank)].round =
          progress.program->first_round[static_cast<std::size_t>(rank)];
      enter_round(fluid, instance, progress, rank);
    }
  }

  // The rank takes part in its next round: its messages there have one end more.
  void enter_round(Fluid& fluid, int instance, Progress& progress, int rank) {
    const Program& program = *progress.program;
    Cursor& cursor = progress.ranks[static_cast<std::size_t>(rank)];
    if (cursor.round == program.first_round[static_cast<std::size_t>(rank) + 1]) return;
    const int first = program.round_begin[static_cast<std::size_t>(cursor.round)];
    const int last = program.round_begin[static_cast<std::size_t>(cursor.round) + 1];
    cursor.outstanding = last - first;
    for (int m = first; m < last; ++m) {
      const int id = program.members[static_cast<std::size_t>(m)];
      if (--progress.missing_ends[static_cast<std::size_t>(id)] > 0) continue;
      const auto& message = program.messages[static_cast<std::size_t>(id)];
      if (message.extra_latency > 0) {
        fluid.start_timer(message.extra_latency, {kWoke, instance, id});
      } else {
        fluid.start_flow(message.route, message.bytes, {kFlowDone, instance, id});
      }
    }
  }

  void arrive(Fluid& fluid, int instance, Progress& progress, int rank) {
    Cursor& cursor = progress.ranks[static_cast<std::size_t>(rank)];
    if (--cursor.outstanding > 0) return;
    ++cursor.round;
    enter_round(fluid, instance, progress, rank);
  }

  Network network_;
  int ranks_;
  Seconds overhead_;
  Seconds latency_ = 0;
  std::vector<Route> routes_;
  std::unordered_map<std::uint64_t, int> route_ids_;
  std::vector<std::pair<Collective, std::unique_ptr<Program>>> known_;
  std::vector<const Program*> programs_;  // by operation
  std::unordered_map<int, Progress> running_;
};

}  // namespace

std::unique_ptr<CollectiveRun> make_step_run(const Plan& plan, const Cluster& cluster) {
  return std::make_unique<StepRun>(plan, cluster);
}

}  // namespace syncline
