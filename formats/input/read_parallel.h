// The layout of a job that is cut beyond data parallelism, read from its JSON object and written
// back, and the parts of its model.
#pragma once

#include "core/cluster.h"
#include "core/job.h"
#include "formats/json/reader.h"

namespace syncline::operators {
struct Generated;
}

namespace syncline::input {

// Reads a workload's "parallel". The layout must fit the cluster.
Parallel read_parallel(Reader reader, const Cluster& cluster);
// Writes it as read_parallel reads it, without what is so anyway; an object without keys if nothing
// is cut.
Json parallel_json(const Parallel& parallel);
// Sets which part of a cut model each tensor belongs to, and the model's time with what its inner
// collectives take. `generated`: the model, if it was made of an architecture.
void cut_workload(const Reader& reader, bool parts_given, const operators::Generated* generated,
                  const Cluster& cluster, Workload& workload);

}  // namespace syncline::input
