// Knobs that cannot be had together, or not with this job on this cluster. What a knob needs in
// order to mean anything at all stands in its table (knobs.cc).
#pragma once

#include <optional>
#include <string>

#include "core/scenario/cluster.h"
#include "core/scenario/strategy.h"
#include "core/scenario/workload.h"

namespace syncline::input {

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
