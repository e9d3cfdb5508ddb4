// Collectives as flows over links: what the simulated network is asked to carry.
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

// A way through the network that some message takes: link ids into FlowSet::links.
using Route = std::vector<int>;

// Messages along one route.
struct Flow {
  int route = 0;        // index into FlowSet::routes
  double fraction = 0;  // share of the collective's payload
};

// Messages that set out together.
using FlowStage = std::vector<Flow>;

// One kind of collective, for all its groups at once.
using FlowPlan = std::vector<FlowStage>;

struct FlowLink {
  BytesPerSecond capacity = 0;
  bool per_flow = false;
};

// What Fluid is built from.
struct FluidPlan {
  std::vector<FlowLink> links;
  std::vector<Route> routes;
};

// Returns all links of a network, in its order.
std::vector<FlowLink> links_of(const collective::Network& network);

// The routes of messages, as they are asked for; `with_ranks`, each behind the two ranks at its
// ends, ranks and links numbered through, ranks first.
class RouteTable {
 public:
  explicit RouteTable(const collective::Network& network, bool with_ranks = false)
      : network_(network), with_ranks_(with_ranks) {}

  // Returns the first of a message's; those of its other parts follow it.
  int find(const collective::Groups& groups, int from, int to);

  std::vector<Route> routes;

 private:
  const collective::Network& network_;
  bool with_ranks_;
  // Which lanes a message takes is up to how far apart the group's members are: by that step.
  std::map<int, std::unordered_map<std::uint64_t, int>> known_;
};

// Who sends along which route, edge by edge, as a plan's collectives list them.
struct Traffic : FluidPlan {
  // Routes by set of edges (collective::EdgeSets), for each way in which ranks talk to each other;
  // of each message one for each of its parts.
  using RouteSets = std::vector<std::vector<int>>;
  std::vector<RouteSets> patterns;
  // Collectives over one pattern with the same number of chunks.
  struct FlowBytes {
    std::size_t pattern = 0;
    collective::Stages stages;
    bool at_once = false;  // evaluated as one stage, and sent as one
    int parts = 1;         // of a message
  };
  std::vector<FlowBytes> payloads;
  std::vector<int> payload_of_op;  // by operation; -1 for anything but a collective
};

Traffic traffic_of(const plan::Plan& plan, const collective::Network& network,
                   collective::CostCache& cache);

// Of jobs on one fabric, whose links there are the same: operations of one job behind those of the
// other.
Traffic joined(std::vector<Traffic> jobs, const std::vector<collective::Network>& networks);

// What a plan needs of the network, at merged grain.
struct FlowSet : FluidPlan {
  std::vector<FlowPlan> plans;
  std::vector<int> plan_of_op;  // by operation; -1 for anything but a collective
};

// Returns all stages of a plan as one, in flows of one size: those of a link then end together.
FlowPlan at_once(const FlowPlan& plan);

// Every edge of every collective as a flow of its own.
FlowSet every_flow(const Traffic& traffic);

// For plans whose collectives never overlap (plan::overlaps): each stage as one flow, of all that
// its busiest link carries, over that link alone. The flows of a stage are of one size and set out
// together, so the busiest link gives each of its own the least share of all, is full from the
// first moment and the last to be done; nothing else can hold up the stage.
FlowSet busiest_flows(const plan::Plan& plan, collective::CostCache& cache);

// For plans of very many messages whose collectives overlap: each message as a flow over one link
// alone, on those links that none other outdoes. Where one link carries no less in any stage of any
// collective than another does, and is no faster, the other never has a flow that ends later:
// nothing waits for it. One link stands for all that carry the same. The messages of a stage keep
// pace with those on its busiest link.
FlowSet heaviest_flows(const plan::Plan& plan, collective::CostCache& cache);

}  // namespace syncline::sim
