#include "core/calibrate/cluster_from_fit.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/digits.h"
#include "core/input/law_json.h"

namespace syncline {
namespace {

// Five digits: tiers are read by people and changed by hand.
double rounded(double value) { return significant(value, 5); }

Json tier(Seconds latency, BytesPerSecond bandwidth) {
  return {{"latency_us", rounded(latency / kMicrosecond)},
          {"bandwidth_gbps", rounded(bandwidth / kGigabitPerSecond)}};
}

// The best rate of a table: bytes that a rank sends in a ring over the time, at the largest size.
BytesPerSecond bus_rate(const TableLaw& table) {
  const double ranks = static_cast<double>(table.nodes) * table.gpus_per_node;
  const double times = ring_steps(table.kind, table.nodes, table.gpus_per_node).all / ranks;
  return times * table.max_bytes / size_time(table.law, table.max_bytes);
}

bool ring_like(CollectiveKind kind) {
  return kind != CollectiveKind::kReduce && kind != CollectiveKind::kBroadcast;
}

// A step of the ring between nodes, from the path that shows latency best.
Seconds step_latency(const ScaleLaw& scale) {
  constexpr StepPath kRing{false, NcclProtocol::kLl};
  return step_law_of(scale, kRing).latency;
}

}  // namespace

Json cluster_json(const MeasuredLaw& law, const std::string& name) {
  int nodes = 1;
  int gpus = 1;
  BytesPerSecond inside = 0;
  BytesPerSecond between = 0;
  std::set<std::string> sources;
  for (const TableLaw& table : law.tables) {
    nodes = std::max(nodes, table.nodes);
    gpus = std::max(gpus, table.gpus_per_node);
    sources.insert(table.source);
    if (!ring_like(table.kind)) continue;
    BytesPerSecond& rate = table.nodes == 1 ? inside : between;
    rate = std::max(rate, bus_rate(table));
  }
  Json json = {{"name", name}};
  std::string source = "calibrated by syncline from nccl-tests:";
  for (const std::string& file : sources) source += " " + file + ",";
  source.back() = '.';
  json["source"] = source;
  std::string about =
      "Latencies are those of a small step, bandwidths the best that was measured; "
      "the algorithm 'nccl' takes its times from the calibration below.";
  if (gpus > 1 && inside == 0) {
    about +=
        " No table of one node was given: the inside of a node is assumed as fast as its "
        "network, with NCCL's own latency.";
  }
  json["about"] = about;
  json["nodes"] = nodes;
  json["gpus_per_node"] = gpus;
  constexpr StepPath kSmall{false, NcclProtocol::kLl};
  if (gpus > 1) {
    const Seconds latency = inside > 0 ? law.node.step : nccl_step_latency(kSmall, false);
    // A broadcast alone says nothing of a ring: a rate must stand here, its own.
    BytesPerSecond rate = inside > 0 ? inside : between;
    if (rate == 0) rate = bus_rate(law.tables.front());
    json["intra"] = tier(latency, rate);
  }
  if (nodes > 1) {
    if (law.scale) {
      json["inter"] = tier(step_latency(*law.scale), law.scale->prior.bandwidth);
    } else {
      json["inter"] = tier(nccl_step_latency(kSmall, true), bus_rate(law.tables.front()));
    }
  }
  const Seconds base =
      nodes > 1 && law.scale ? step_law_of(*law.scale, kSmall).base : law.node.base;
  json["collective_overhead_us"] = rounded(base / kMicrosecond);
  json["calibration"] = law_json(law);
  return json;
}

}  // namespace syncline
