#include "core/sim/programs.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "core/sim/fold.h"

namespace syncline::sim {
namespace {

using Message = Program::Message;

int find_place(std::vector<collective::Collective>& known,
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
void visit_messages(const collective::Network& network, const collective::Collective& collective,
                    RouteTable& ways, const Visit& visit) {
  const collective::Schedule rounds = plan::lower(collective);
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    for (const auto& t : rounds[r]) {
      if (t.elements.size() == 0) continue;
      const Seconds latency = network.latency(t.from, t.to);
      const int parts = network.parts(t.from, t.to);
      const double bytes = static_cast<double>(t.elements.size() * collective.unit) / parts;
      const int way = ways.find(collective.groups, t.from, t.to);
      for (int part = 0; part < parts; ++part) {
        visit(static_cast<int>(r),
              Message{t.from, t.to, 0, 0, way + part, bytes, latency - network.fastest()});
      }
    }
  }
}

// Returns the folding: ways differ by their messages and rounds, ranks and links by properties.
Folding folding_of_ranks(const collective::Network& network,
                         const std::vector<collective::Collective>& collectives, RouteTable& ways,
                         bool fold) {
  Colours of_ways;
  for (std::size_t at = 0; at < collectives.size(); ++at) {
    visit_messages(network, collectives[at], ways, [&](int round, const Message& message) {
      of_ways.resize(ways.routes.size(), 1);
      const collective::Colour when = collective::mix(at, static_cast<unsigned>(round));
      const collective::Colour what =
          collective::mix(collective::bits(message.bytes), collective::bits(message.extra_latency));
      of_ways[index(message.route)] += collective::mix(when, what);
    });
  }
  Colours of_links = colours_of(links_of(network));
  of_links.insert(of_links.begin(), index(network.ranks()), 0);
  if (!fold) return {no_kinds(of_ways.size()), no_kinds(of_links.size())};
  return folding_of(ways.routes, std::move(of_ways), std::move(of_links));
}

// Adds links and routes by kind; returns the number of kinds of ranks.
int add_network(const collective::Network& network, const std::vector<Route>& ways,
                const Folding& folding, FluidPlan& fluid) {
  int ranks = 0;
  const int links = static_cast<int>(fluid.links.size());
  for (const std::size_t first : folding.links.first) {
    const int link = static_cast<int>(first) - network.ranks();
    if (link < 0) {
      ++ranks;
    } else {
      fluid.links.push_back({network.link(link).capacity, network.link(link).per_flow});
    }
  }
  for (const Route& way : folded_routes(ways, folding)) {
    Route& route = fluid.routes.emplace_back();
    for (const int kind : way) {
      if (kind >= ranks) route.push_back(links + kind - ranks);
    }
  }
  return ranks;
}

// True if two rounds of a rank send the same, to the same rounds after their own.
bool sends_alike(const Program& program, int one, int other) {
  const auto first = program.sends.begin();
  const auto begin = [&](int round) { return first + program.send_begin[index(round)]; };
  const auto same = [&](int a, int b) {
    const auto& of_one = program.messages[index(a)];
    const auto& of_other = program.messages[index(b)];
    const auto key = [](const Program::Message& m) {
      return std::tie(m.to, m.route, m.bytes, m.extra_latency);
    };
    return key(of_one) == key(of_other) && of_other.to_round - of_one.to_round == other - one &&
           of_one.to_round == program.first_round[index(of_one.to)];
  };
  return std::equal(begin(one), begin(one + 1), begin(other), begin(other + 1), same);
}

// Sets the program's `alike`: 0 unless all ranks have the same number of rounds, and each round the
// messages of the first.
void count_alike(Program& program) {
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

// Numbers each rank's rounds, only those with its own messages, and counts its events in each.
void number_rounds(Program& program, const std::vector<std::vector<End>>& by_rank) {
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

}  // namespace

Programs::Programs(const plan::Plan& plan, const collective::Network& network, bool fold)
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

// Adds the programs of collectives that may be under way at the same time.
void Programs::add(const std::vector<collective::Collective>& collectives, bool fold) {
  RouteTable ways(network_, true);
  const Folding folding = folding_of_ranks(network_, collectives, ways, fold);
  const int first_route = static_cast<int>(fluid_.routes.size());
  const int ranks = add_network(network_, ways.routes, folding, fluid_);
  for (const auto& collective : collectives) {
    Program& program = all_.emplace_back();
    // Messages that leave or reach each kind of rank, by round.
    std::vector<std::vector<End>> ends(index(ranks));
    const auto end_of = [&](int rank) -> std::vector<End>& { return ends[index(rank)]; };
    visit_messages(network_, collective, ways, [&](int round, Message message) {
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

// Marks the links of the last collective, from first_link on, that carry one flow at a time:
// their messages leave one rank, or reach one, in different rounds.
void Programs::mark_unshared(std::size_t first_link) {
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

}  // namespace syncline::sim
