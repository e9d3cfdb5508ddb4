// Reads and writes, as JSON, the layout of a job with a partitioned model (tensor, pipeline and
// other parallelism), and the parts of the model.
#pragma once

#include "core/cluster.h"
#include "core/job.h"
#include "formats/json/reader.h"

namespace syncline::operators {
struct Generated;
}

namespace syncline::input {

// Reads a workload's "parallel". Requires that the layout fits the cluster.
Parallel read_parallel(Reader reader, const Cluster& cluster);
// Writes it as read_parallel reads it, without defaults; an object without keys if the model is not
// partitioned.
Json parallel_json(const Parallel& parallel);
// Sets the part of a partitioned model that each tensor belongs to, and the model's time with its
// inner collectives. `generated`: the model, if it was made from an architecture.
void cut_workload(const Reader& reader, bool parts_given, const operators::Generated* generated,
                  const Cluster& cluster, Workload& workload);

}  // namespace syncline::input
