#include "core/job/chakra/walk.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "core/error.h"

namespace syncline::job::chakra {
namespace {

// Which nodes wait for each, and for how many each waits.
struct Dependencies {
  std::vector<std::vector<std::size_t>> after;
  std::vector<std::size_t> open;
};

Dependencies dependencies_of(const std::string& name, const std::vector<Node>& nodes) {
  std::unordered_map<std::uint64_t, std::size_t> places;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!places.emplace(nodes[i].id, i).second) {
      throw InputError(name + ": two nodes have the id " + std::to_string(nodes[i].id) +
                       ": damaged, or two traces in one file");
    }
  }
  Dependencies all{std::vector<std::vector<std::size_t>>(nodes.size()),
                   std::vector<std::size_t>(nodes.size())};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::uint64_t id : nodes[i].dependencies) {
      const auto found = places.find(id);
      if (found == places.end()) continue;
      all.after[found->second].push_back(i);
      ++all.open[i];
    }
  }
  return all;
}

// What runs one after the other: (on the host, collective, stream or thread).
using Lane = std::tuple<bool, bool, std::int64_t>;

Lane lane_of(const Node& node) {
  const bool moves = node.type == NodeType::kCollective || node.type == NodeType::kSend ||
                     node.type == NodeType::kReceive;
  return {node.host, moves && !node.host, node.lane};
}

}  // namespace

std::vector<Span> walk(const std::string& name, const std::vector<Node>& nodes) {
  Dependencies dependencies = dependencies_of(name, nodes);
  std::vector<Span> spans(nodes.size());
  // (ready, id, place): among those that are ready at once the lower id is first.
  using Ready = std::tuple<Seconds, std::uint64_t, std::size_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (dependencies.open[i] == 0) ready.emplace(0, nodes[i].id, i);
  }
  std::map<Lane, Seconds> free;
  std::size_t done = 0;
  for (; !ready.empty(); ++done) {
    const std::size_t i = std::get<2>(ready.top());
    ready.pop();
    Span& span = spans[i];
    Seconds& lane = free[lane_of(nodes[i])];
    span.begin = std::max(span.ready, lane);
    span.end = span.begin + nodes[i].duration;
    // What takes no time holds up nobody: labels and metadata.
    if (nodes[i].duration > 0) lane = span.end;
    for (const std::size_t next : dependencies.after[i]) {
      spans[next].ready = std::max(spans[next].ready, span.end);
      if (--dependencies.open[next] == 0) ready.emplace(spans[next].ready, nodes[next].id, next);
    }
  }
  if (done < nodes.size()) {
    throw InputError(name + ": the dependencies of " + std::to_string(nodes.size() - done) +
                     " nodes form a circle");
  }
  return spans;
}

}  // namespace syncline::job::chakra
