// Clusters on fabrics that several tests use: nodes of 10 Gbit/s, as in plans.h.
#pragma once

#include <memory>
#include <utility>

#include "core/fabric/kinds.h"
#include "formats/scenario/scenario.h"
#include "tests/support/plans.h"

namespace syncline {

inline constexpr BytesPerSecond kNodePort = 1.25e9;  // of plans.h's clusters

// A cluster on the first nodes of a fabric, or on those named.
inline Cluster on_fabric(Cluster cluster, fabric::Topology topology, std::vector<int> nodes = {}) {
  if (nodes.empty()) {
    nodes = fabric::place_nodes(topology, cluster.nodes, fabric::Placement::kPacked, 1);
  }
  topology.nodes = std::move(nodes);
  if (!topology.hashed) topology = fabric::merge_pools(topology);
  cluster.topology = std::make_shared<const fabric::Topology>(std::move(topology));
  return cluster;
}

// A job of one gradient of 64 MiB, by a ring.
inline Scenario ring_job(Cluster cluster, Seconds backward) {
  Scenario scenario;
  scenario.cluster = std::move(cluster);
  Tensor tensor;
  tensor.name = "w";
  tensor.shape = {1 << 24};
  tensor.elements = 1 << 24;
  tensor.backward = backward;
  scenario.workload.name = "one";
  scenario.workload.batch = 1;
  scenario.workload.tensors = {tensor};
  Strategy strategy;
  strategy.name = "ring";
  strategy.algorithm = "ring";
  scenario.strategies = {strategy};
  scenario.baseline = "ring";
  return scenario;
}

// Leaves of so many nodes with one cable a node upwards, narrowed.
inline fabric::Topology leaves(int nodes, int nodes_per_leaf, double oversubscription,
                               int rails = 1) {
  fabric::LeafSpine shape;
  shape.nodes = nodes;
  shape.nodes_per_leaf = nodes_per_leaf;
  shape.spines = nodes_per_leaf;
  shape.speed = kNodePort / rails / oversubscription;
  shape.rails = rails;
  return fabric::leaf_spine(shape);
}

}  // namespace syncline
