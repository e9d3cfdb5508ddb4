// Groups of ranks in a trace and their roles: by a group's description (Megatron's and torch's
// device meshes), else by its ranks and the kinds of its collectives.
#pragma once

#include <string>
#include <vector>

#include "imports/kineto/timeline.h"
#include "imports/observed.h"

namespace syncline::job::kineto {

// Returns the role in a description: "mesh_tp", "INTER_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP".
Role role_named(std::string_view description);

// Returns groups by Message::place. Their `calls` are of the whole trace.
std::vector<RankGroup> groups_of(const Trace& trace, const TraceTimeline& timeline,
                                 const std::vector<Arrival>& arrivals);

// Puts all collectives of a trace without groups into one group of all ranks, if the sizes of
// reduce-scatters and all-gathers fit it. Throws InputError if they fit fewer ranks, as the trace
// does not tell which. Without reduce-scatters it has no effect.
void group_by_shapes(const Trace& trace, TraceTimeline& timeline, std::vector<RankGroup>& groups);

// Throws InputError if a group is wrong: its ranks do not fit its size, the job or this rank, it
// overlaps another, or its collectives have sizes that contradict it.
void check_groups(const Trace& trace, const TraceTimeline& timeline,
                  const std::vector<RankGroup>& groups);

// Returns true if a gather of a group holds as much as its largest sum: all parameters, of an
// update in shards.
bool gathers_what_it_sums(const std::vector<ObservedExchange>& exchanges, int group);

// Returns true if a group shows that the model is partitioned, or that gradients go to shards.
bool tells_a_cut(const TraceTimeline& timeline, const std::vector<RankGroup>& groups);

// Returns sizes and order of the layout. Throws InputError if the groups do not divide the world,
// or have another order than tensor, context, data, pipeline.
Parallel layout_of(const Trace& trace, const std::vector<RankGroup>& groups);

// Returns the largest group of that role that carries data or has a description; null: none.
const RankGroup* group_of(const std::vector<RankGroup>& groups, Role role);

}  // namespace syncline::job::kineto
