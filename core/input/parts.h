// The parts of a scenario, each read from its own JSON object.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json/reader.h"
#include "core/operators/architecture.h"
#include "core/scenario/cluster.h"
#include "core/scenario/scenario.h"
#include "core/scenario/search.h"
#include "core/scenario/strategy.h"
#include "core/scenario/workload.h"

namespace syncline::input {

// A device's figures that have a key each, in the order in which they are read and written.
struct DeviceFigure {
  const char* key;
  double Device::*figure;
  double unit;
  double most;  // in the file's unit
};
const std::vector<DeviceFigure>& device_figures();

// Hardware by name is filled in (scenario_json.h).
Cluster read_cluster(Reader named);
// "fabric", where it is an object; `inter` are the nodes' ports. The cluster's nodes must be known.
std::shared_ptr<const fabric::Topology> read_topology(Reader named, const Cluster& cluster,
                                                      const Tier& inter);
// Puts another job's cluster on the first one's fabric, on nodes that are not taken.
void join_fabric(Reader& entry, const Cluster& first, const std::vector<int>& taken,
                 Cluster& cluster);
// FLOPs without a measured time are evaluated by the cluster's device.
Workload read_workload(Reader reader, const Cluster& cluster);
// A workload's "parallel". The layout must fit the cluster.
Parallel read_parallel(Reader reader, const Cluster& cluster);
// As read_parallel reads it, without what is so anyway; an object without keys where nothing is
// cut.
Json parallel_json(const Parallel& parallel);
// Which part of a cut model each tensor belongs to, and the model's time with what its inner
// collectives take. `generated`: the model, where it was made of an architecture.
void cut_workload(const Reader& reader, bool parts_given, const operators::Generated* generated,
                  const Cluster& cluster, Workload& workload);
// Syncline's own keys, or a dialect's configuration as it comes out on this workload and cluster.
Strategy read_strategy(Reader reader, const Workload& workload, const Cluster& cluster);
// The axes of a search. Requires the scenario's strategies, baseline and cluster.
Search read_search(Reader reader, const Scenario& scenario);

// A workload's "operators": an architecture whose operators are generated, or an explicit list.
// Fills in workload.operators; with an architecture also tensors and buffers, where the workload
// names none (`given`: it does). Given tensors must be the architecture's gradients in its order,
// size by size: then their names, dtypes and times stand. Requires name, batch and, if given,
// tensors.
// Returns what an architecture was generated to, without its operators and tensors.
operators::Generated read_operators(Reader reader, Workload& workload, bool given);

// Named rules: what the keys of a strategy fall back on.
std::vector<std::string> preset_names();
// The strategy that a preset of that name starts from.
Strategy preset_of(std::string_view name);

// Knobs that cannot be had together, or not with this job on this cluster. What a knob needs in
// order to mean anything at all stands in its table (knobs.cc).

// A knob that another one, the job or the cluster rules out: the key at fault and why; nothing
// where all fit together.
struct Conflict {
  std::string key;
  std::string why;
};
// Of these, what is not modelled beside other kinds of parallelism.
std::optional<Conflict> whole_job_conflict(const Strategy& strategy, const Workload& workload);
std::optional<Conflict> conflict_of(const Strategy& strategy, const Workload& workload,
                                    const Cluster& cluster);

}  // namespace syncline::input
