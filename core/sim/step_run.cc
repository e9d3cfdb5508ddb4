#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/base/index.h"
#include "core/plan.h"
#include "core/sim/collective_run.h"
#include "core/sim/fold.h"
#include "core/sim/pace.h"

namespace syncline::sim {
namespace {

// A collective's messages, and for each kind of rank its rounds. Rounds are numbered rank by rank:
// rank r's are [first_round[r], first_round[r + 1]).
struct Program {
  struct Message {
    int from = 0;
    int to = 0;
    int from_round = 0;
    int to_round = 0;
    int route = 0;
    double bytes = 0;
    Seconds extra_latency = 0;  // beyond the common latency; delays the receiver
  };
  int ranks() const { return static_cast<int>(first_round.size()) - 1; }
  std::vector<Message> messages;
  std::vector<int> first_round;
  std::vector<int> events;      // by round: messages that leave or reach the rank in it
  std::vector<int> receives;    // by round: messages that reach it
  std::vector<int> send_begin;  // by round: range in `sends`
  std::vector<int> sends;       // message ids
  Seconds took = -1;            // duration alone on the network; -1: unknown so far
  int alike = 0;                // rounds of each rank if all have the same messages; otherwise 0
};

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

// The messages of a plan's collectives, over one network for all.
class Programs {
 public:
  Programs(const plan::Plan& plan, const collective::Network& network, bool fold)
      : network_(network) {
    std::vector<collective::Collective> distinct;
    for (const auto& op : plan.ops) {
      const auto* collective = std::get_if<collective::Collective>(&op.work);
      of_op_.push_back(collective == nullptr ? -1 : find_place(distinct, *collective));
    }
    if (!fold || plan::overlaps(plan)) {
      add(distinct, fold);
    } else {
      // Each collective is alone on the network, and is folded by itself.
      for (const auto& collective : distinct) {
        const std::size_t first_link = fluid_.links.size();
        add({collective}, fold);
        mark_unshared(first_link);
        count_alike(all_.back());
      }
    }
  }

  const FluidPlan& fluid() const { return fluid_; }
  Program& of(plan::OpId op) { return all_[index(of_op_[index(op)])]; }

 private:
  using Message = Program::Message;

  static int find_place(std::vector<collective::Collective>& known,
                        const collective::Collective& collective) {
    const auto key = [](const collective::Collective& each) {
      return std::tie(each.kind, each.algorithm, each.groups, each.elements, each.unit);
    };
    const auto same = std::ranges::find(known, key(collective), key);
    const auto place = static_cast<int>(same - known.begin());
    if (same == known.end()) known.push_back(collective);
    return place;
  }

  // A message as seen by one of its ends.
  struct End {
    int round = 0;  // of the collective
    int message = 0;
    bool leaves = false;  // true: leaves the rank; false: reaches it
  };

  // Calls visit(round, message) for each message of the collective; its route is its way.
  template <typename Visit>
  void visit_messages(const collective::Collective& collective, RouteTable& ways,
                      const Visit& visit) const {
    const collective::Schedule rounds = plan::lower(collective);
    for (std::size_t r = 0; r < rounds.size(); ++r) {
      for (const auto& t : rounds[r]) {
        if (t.elements.size() == 0) continue;
        const Seconds latency = network_.latency(t.from, t.to);
        const int parts = network_.parts(t.from, t.to);
        const double bytes = static_cast<double>(t.elements.size() * collective.unit) / parts;
        const int way = ways.find(collective.groups, t.from, t.to);
        for (int part = 0; part < parts; ++part) {
          visit(static_cast<int>(r),
                Message{t.from, t.to, 0, 0, way + part, bytes, latency - network_.fastest()});
        }
      }
    }
  }

  // Returns the folding: ways differ by their messages and rounds, ranks and links by properties.
  Folding folding_of_ranks(const std::vector<collective::Collective>& collectives, RouteTable& ways,
                           bool fold) const {
    Colours of_ways;
    for (std::size_t at = 0; at < collectives.size(); ++at) {
      visit_messages(collectives[at], ways, [&](int round, const Message& message) {
        of_ways.resize(ways.routes.size(), 1);
        const collective::Colour when = collective::mix(at, static_cast<unsigned>(round));
        const collective::Colour what = collective::mix(collective::bits(message.bytes),
                                                        collective::bits(message.extra_latency));
        of_ways[index(message.route)] += collective::mix(when, what);
      });
    }
    Colours of_links = colours_of(links_of(network_));
    of_links.insert(of_links.begin(), index(network_.ranks()), 0);
    if (!fold) return {no_kinds(of_ways.size()), no_kinds(of_links.size())};
    return folding_of(ways.routes, std::move(of_ways), std::move(of_links));
  }

  // Adds the programs of collectives that may be under way at the same time.
  void add(const std::vector<collective::Collective>& collectives, bool fold) {
    RouteTable ways(network_, true);
    const Folding folding = folding_of_ranks(collectives, ways, fold);
    const int first_route = static_cast<int>(fluid_.routes.size());
    const int ranks = add_network(ways.routes, folding);
    for (const auto& collective : collectives) {
      Program& program = all_.emplace_back();
      // Messages that leave or reach each kind of rank, by round.
      std::vector<std::vector<End>> ends(index(ranks));
      const auto end_of = [&](int rank) -> std::vector<End>& { return ends[index(rank)]; };
      visit_messages(collective, ways, [&](int round, Message message) {
        const auto way = index(message.route);
        if (!folding.routes.stands(way)) return;
        message.route = first_route + folding.routes.of[way];
        message.from = folding.links.of[index(message.from)];
        message.to = folding.links.of[index(message.to)];
        const int id = static_cast<int>(program.messages.size());
        end_of(message.from).push_back({round, id, true});
        end_of(message.to).push_back({round, id, false});
        program.messages.push_back(message);
      });
      number_rounds(program, ends);
    }
  }

  // Adds links and routes by kind; returns the number of kinds of ranks.
  int add_network(const std::vector<Route>& ways, const Folding& folding) {
    int ranks = 0;
    const int links = static_cast<int>(fluid_.links.size());
    for (const std::size_t first : folding.links.first) {
      const int link = static_cast<int>(first) - network_.ranks();
      if (link < 0) {
        ++ranks;
      } else {
        fluid_.links.push_back({network_.link(link).capacity, network_.link(link).per_flow});
      }
    }
    for (const Route& way : folded_routes(ways, folding)) {
      Route& route = fluid_.routes.emplace_back();
      for (const int kind : way) {
        if (kind >= ranks) route.push_back(links + kind - ranks);
      }
    }
    return ranks;
  }

  // Marks the links of the last collective, from first_link on, that carry one flow at a time:
  // their messages leave one rank, or reach one, in different rounds.
  void mark_unshared(std::size_t first_link) {
    const Program& program = all_.back();
    // Rounds are numbered rank by rank: rounds of one rank between the first and the last.
    struct Crossing {
      int rank = -1;   // the only one
      int round = -1;  // of its last message
      void add(int at, int in_round) {
        rank = (rank == -1 || rank == at) && round < in_round ? at : -2;
        round = in_round;
      }
    };
    std::vector<Crossing> leaving(fluid_.links.size() - first_link);
    std::vector<Crossing> reaching = leaving;
    for (const auto& message : program.messages) {
      for (const int link : fluid_.routes[index(message.route)]) {
        const std::size_t at = index(link) - first_link;
        leaving[at].add(message.from, message.from_round);
        reaching[at].add(message.to, message.to_round);
      }
    }
    for (std::size_t at = 0; at < leaving.size(); ++at) {
      if (leaving[at].rank >= 0 || reaching[at].rank >= 0) {
        fluid_.links[first_link + at].per_flow = true;
      }
    }
  }

  // Sets the program's `alike`: 0 unless all ranks have as many rounds, and each round the messages
  // of the first.
  static void count_alike(Program& program) {
    const int rounds = program.first_round[1] - program.first_round[0];
    for (int rank = 0; rank < program.ranks(); ++rank) {
      const int first = program.first_round[index(rank)];
      if (program.first_round[index(rank) + 1] - first != rounds) return;
      for (int round = 0; round < rounds; ++round) {
        if (!sends_alike(program, first, first + round)) return;
      }
    }
    program.alike = rounds;
  }

  // True if two rounds of a rank send the same, to the same rounds after their own.
  static bool sends_alike(const Program& program, int one, int other) {
    const auto first = program.sends.begin();
    const auto begin = [&](int round) { return first + program.send_begin[index(round)]; };
    const auto same = [&](int a, int b) {
      const auto& of_one = program.messages[index(a)];
      const auto& of_other = program.messages[index(b)];
      const auto key = [](const Message& m) {
        return std::tie(m.to, m.route, m.bytes, m.extra_latency);
      };
      return key(of_one) == key(of_other) && of_other.to_round - of_one.to_round == other - one &&
             of_one.to_round == program.first_round[index(of_one.to)];
    };
    return std::equal(begin(one), begin(one + 1), begin(other), begin(other + 1), same);
  }

  // Numbers each rank's rounds, only those with its own messages, and counts its events in each.
  static void number_rounds(Program& program, const std::vector<std::vector<End>>& by_rank) {
    for (const auto& list : by_rank) {
      program.first_round.push_back(static_cast<int>(program.events.size()));
      int open = -1;  // the round of the previous message
      for (const auto& [round, id, leaves] : list) {
        if (round != open) {
          program.events.push_back(0);
          program.receives.push_back(0);
          program.send_begin.push_back(static_cast<int>(program.sends.size()));
        }
        open = round;
        ++program.events.back();
        auto& message = program.messages[index(id)];
        const int number = static_cast<int>(program.events.size()) - 1;
        (leaves ? message.from_round : message.to_round) = number;
        if (leaves) program.sends.push_back(id);
        if (!leaves) ++program.receives.back();
      }
    }
    program.first_round.push_back(static_cast<int>(program.events.size()));
    program.send_begin.push_back(static_cast<int>(program.sends.size()));
  }

  const collective::Network& network_;
  FluidPlan fluid_;
  std::vector<Program> all_;
  std::vector<int> of_op_;  // -1 for anything but a collective
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
