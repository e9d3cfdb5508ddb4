// Collectives as flows over links: what the simulated network is asked to carry.
#pragma once

#include <cstdint>
#include <vector>

#include "core/collective/network.h"
#include "core/plan/plan.h"

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

// What a plan needs of the network, at merged grain.
struct FlowSet {
  std::vector<FlowLink> links;
  std::vector<Route> routes;
  std::vector<FlowPlan> plans;
  std::vector<int> plan_of_op;  // by operation; -1 for anything but a collective
};

// Every edge of every collective as a flow of its own.
FlowSet merged_flows(const plan::Plan& plan, const collective::Network& network);

}  // namespace syncline::sim
