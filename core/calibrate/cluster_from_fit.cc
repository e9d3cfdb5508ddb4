#include "core/calibrate/cluster_from_fit.h"

#include <algorithm>
#include <set>

#include "core/calibrate/fitted_digits.h"
#include "core/hardware/device.h"
#include "core/input/scenario_json.h"

namespace syncline::calibrate {
namespace {

// Tiers are read by people and changed by hand.

// The best rate of a table: bytes that a rank sends in a ring over the time, at the largest size.
BytesPerSecond bus_rate(const cost::TableLaw& table) {
  const double ranks = static_cast<double>(table.nodes) * table.gpus_per_node;
  const double times = cost::ring_steps(table.kind, table.nodes, table.gpus_per_node).all / ranks;
  return times * table.max_bytes / cost::size_time(table.law, table.max_bytes);
}

bool ring_like(collective::CollectiveKind kind) {
  return kind != collective::CollectiveKind::kReduce &&
         kind != collective::CollectiveKind::kBroadcast;
}

// A step of the ring between nodes, from the path that shows latency best.
Seconds step_latency(const cost::ScaleLaw& scale) {
  constexpr cost::StepPath kRing{false, collective::NcclProtocol::kLl};
  return cost::step_law_of(scale, kRing).latency;
}

}  // namespace

Json cluster_from_fit(const cost::MeasuredLaw& law, const std::string& name,
                      const std::string& device) {
  Cluster cluster;
  cluster.name = name;
  cluster.device.name = device;
  BytesPerSecond inside = 0;
  BytesPerSecond between = 0;
  std::set<std::string> sources;
  for (const cost::TableLaw& table : law.tables) {
    cluster.nodes = std::max(cluster.nodes, table.nodes);
    cluster.gpus_per_node = std::max(cluster.gpus_per_node, table.gpus_per_node);
    sources.insert(table.source);
    if (!ring_like(table.kind)) continue;
    BytesPerSecond& rate = table.nodes == 1 ? inside : between;
    rate = std::max(rate, bus_rate(table));
  }
  const int nodes = cluster.nodes;
  const int gpus = cluster.gpus_per_node;
  cluster.source = "calibrated by syncline from measured collectives:";
  for (const std::string& file : sources) cluster.source += " " + file + ",";
  cluster.source.back() = '.';
  input::ClusterNotes notes;
  notes.about =
      "Latencies are those of a small step, bandwidths the best that was measured; "
      "the algorithm 'nccl' takes its times from the calibration below.";
  if (gpus > 1 && inside == 0) {
    notes.about +=
        " No table of one node was given: the inside of a node is assumed as fast as its "
        "network, with NCCL's own latency.";
  }
  constexpr cost::StepPath kSmall{false, collective::NcclProtocol::kLl};
  const auto add_tier = [&](const char* key, int span, Seconds latency, BytesPerSecond bandwidth) {
    Tier& tier = cluster.tiers.emplace_back();
    tier.name = key;
    tier.span = span;
    tier.latency = latency;
    tier.bandwidth = bandwidth;
  };
  if (gpus > 1) {
    const Seconds latency = inside > 0 ? law.node.step : cost::nccl_step_latency(kSmall, false);
    // A broadcast alone says nothing of a ring: a rate must stand here, its own.
    BytesPerSecond rate = inside > 0 ? inside : between;
    if (rate == 0) rate = bus_rate(law.tables.front());
    add_tier("intra", gpus, latency, rate);
  }
  if (nodes > 1 && law.scale) {
    add_tier("inter", cluster.ranks(), step_latency(*law.scale), law.scale->prior.bandwidth);
  } else if (nodes > 1) {
    const Seconds latency = cost::nccl_step_latency(kSmall, true);
    add_tier("inter", cluster.ranks(), latency, bus_rate(law.tables.front()));
  }
  cluster.collective_overhead =
      nodes > 1 && law.scale ? cost::step_law_of(*law.scale, kSmall).base : law.node.base;
  // Without rates the copies and encodings of its gradients would cost nothing.
  const hardware::KnownDevice* known = hardware::recognise_device(device);
  if (known != nullptr) {
    notes.about += " The device's own rates are what training reaches of its data sheet (" +
                   std::string(known->source) + ").";
  }
  notes.calibration = law;
  Json json = input::cluster_json(cluster, kFittedDigits, notes);
  if (known != nullptr) json["device"]["base"] = known->name;
  return json;
}

}  // namespace syncline::calibrate
