// Collectives as flows over links: the load of the simulated network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "core/collective/network.h"
#include "core/cost.h"
#include "core/plan.h"

namespace syncline::sim {

// A way through the network of some message: link ids into FlowSet::links.
using Route = std::vector<int>;

// Messages along one route.
struct Flow {
  int route = 0;        // index into FlowSet::routes
  double fraction = 0;  // share of the collective's payload
};

// Messages that begin together.
using FlowStage = std::vector<Flow>;

// One kind of collective, for all its groups at once.
using FlowPlan = std::vector<FlowStage>;

struct FlowLink {
  BytesPerSecond capacity = 0;
  bool per_flow = false;
};

// Input of Fluid.
struct FluidPlan {
  std::vector<FlowLink> links;
  std::vector<Route> routes;
};

// Returns all links of a network, in its order.
std::vector<FlowLink> links_of(const collective::Network& network);

// The routes of messages, created on demand. `with_ranks`: each begins with the two ranks at its
// ends; ranks and links share one numbering, ranks first.
class RouteTable {
 public:
  explicit RouteTable(const collective::Network& network, bool with_ranks = false)
      : network_(network), with_ranks_(with_ranks) {}

  // Returns the first route of a message; those of its other parts follow it.
  int find(const collective::Groups& groups, int from, int to);

  std::vector<Route> routes;

 private:
  const collective::Network& network_;
  bool with_ranks_;
  // Routes by step between the group's members, which decides a message's lanes.
  std::map<int, std::unordered_map<std::uint64_t, int>> known_;
};

// Routes of messages, edge by edge, as a plan's collectives list them.
struct Traffic : FluidPlan {
  // Routes by set of edges (collective::EdgeSets), for each pattern of communication; one for each
  // part of a message.
  using RouteSets = std::vector<std::vector<int>>;
  std::vector<RouteSets> patterns;
  // Collectives over one pattern with the same number of chunks.
  struct FlowBytes {
    std::size_t pattern = 0;
    collective::Stages stages;
    bool at_once = false;  // true: costed as one stage, and sent as one
    int parts = 1;         // of a message
  };
  std::vector<FlowBytes> payloads;
  std::vector<int> payload_of_op;  // by operation; -1 for anything but a collective
};

Traffic traffic_of(const plan::Plan& plan, const collective::Network& network,
                   collective::CostCache& cache);

// Joins jobs on one fabric with common links there: each job's operations follow those of the
// previous one.
Traffic join_traffic(std::vector<Traffic> jobs, const std::vector<collective::Network>& networks);

// A plan's load on the network, at merged grain.
struct FlowSet : FluidPlan {
  std::vector<FlowPlan> plans;
  std::vector<int> plan_of_op;  // by operation; -1 for anything but a collective
};

// Returns all stages of a plan as one, in flows of one size: those of a link then end together.
FlowPlan at_once(const FlowPlan& plan);

// Returns every edge of every collective as a flow of its own.
FlowSet every_flow(const Traffic& traffic);

// Returns one flow per stage for plans without overlapping collectives (plan::overlaps): all bytes
// of the stage's busiest link, over only that link. A stage's flows have one size and begin
// together, so the busiest link gives each of its flows the smallest share, is full from the begin
// and ends last. No other link delays the stage.
FlowSet busiest_flows(const plan::Plan& plan, collective::CostCache& cache);

// Returns each message as a flow over one link, for plans of very many messages with overlapping
// collectives, on links that no other link dominates. If one link carries no less in any stage of
// any collective than another and is no faster, no flow on the other ends later: it delays no
// stage. Equal links are one. The messages of a stage keep pace with those on its busiest link.
FlowSet heaviest_flows(const plan::Plan& plan, collective::CostCache& cache);

}  // namespace syncline::sim
