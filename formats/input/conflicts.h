// Conflicts of knobs with each other, with the job or with the cluster. The needs of a knob by
// itself are in its table (knobs.cc).
#pragma once

#include <optional>
#include <string>

#include "core/cluster.h"
#include "core/job.h"
#include "core/strategy.h"

namespace syncline::input {

// A knob that another one, the job or the cluster rules out: the key at fault and why; nothing
// where all fit together.
struct Conflict {
  std::string key;
  std::string why;
};
// Finds, of these, what is not modelled beside other kinds of parallelism.
std::optional<Conflict> whole_job_conflict(const Strategy& strategy, const Workload& workload);
std::optional<Conflict> conflict_of(const Strategy& strategy, const Workload& workload,
                                    const Cluster& cluster);

}  // namespace syncline::input
