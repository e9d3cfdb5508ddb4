// Which groups of ranks a trace's collectives are of, and what each shares out: by its description
// (Megatron's and torch's device meshes), else by its ranks and the kinds of its collectives.
#pragma once

#include <string>
#include <vector>

#include "imports/kineto/timeline.h"
#include "imports/observed.h"

namespace syncline::job::kineto {

// The role that a description names: "mesh_tp", "INTER_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP".
Role role_named(std::string_view description);

// By Message::place. `calls`: of the whole trace.
std::vector<RankGroup> groups_of(const Trace& trace, const TraceTimeline& timeline,
                                 const std::vector<Arrival>& arrivals);

// Of a trace that names none: all collectives are of one group, of all ranks, if reduce-scatters
// and all-gathers take in and give what that makes of them. Throws InputError where they are of
// fewer ranks, as nothing tells which. Without reduce-scatters it does nothing.
void group_by_shapes(const Trace& trace, TraceTimeline& timeline, std::vector<RankGroup>& groups);

// Throws InputError where a group lies: its ranks are not those of its size, of the job or of this
// rank, it overlaps another, or its collectives take in and give other amounts than it says.
void check_groups(const Trace& trace, const TraceTimeline& timeline,
                  const std::vector<RankGroup>& groups);

// Whether a group says that the model is cut, or its gradients go to shards.
bool tells_a_cut(const TraceTimeline& timeline, const std::vector<RankGroup>& groups);

// Sizes and order of the layout. Throws InputError where the groups are none that divide the
// world, or stand in another order than tensor, context, data, pipeline.
Parallel layout_of(const Trace& trace, const std::vector<RankGroup>& groups);

// The largest group of that role that carries something, or that is described; null: there is none.
const RankGroup* group_of(const std::vector<RankGroup>& groups, Role role);

}  // namespace syncline::job::kineto
