// Conflicts of knobs with each other, with the job or with the cluster. The knob's table has the
// needs of a knob by itself (knobs.cc).
#pragma once

#include <optional>
#include <string>

#include "core/cluster.h"
#include "core/job.h"
#include "core/strategy.h"

namespace syncline::input {

// A knob that another one, the job or the cluster rules out: the key at fault and the reason.
struct Conflict {
  std::string key;
  std::string why;
};
// Returns a conflict of knobs that are not modelled together with other kinds of parallelism.
std::optional<Conflict> whole_job_conflict(const Strategy& strategy, const Workload& workload);
std::optional<Conflict> conflict_of(const Strategy& strategy, const Workload& workload,
                                    const Cluster& cluster);

}  // namespace syncline::input
