// The trace of one rank of a job that is cut into groups of ranks: its layout and its steps.
#pragma once

#include <string>
#include <vector>

#include "core/job/kineto/timeline.h"
#include "core/job/observed.h"

namespace syncline::job::kineto {

// Whether it is such a job's; then its collectives know their groups, which `groups` lists.
bool is_whole(const Trace& trace, TraceTimeline& timeline, const std::vector<Arrival>& arrivals,
              std::vector<RankGroup>& groups);

// Sets layout, groups and steps of `observed`. Throws InputError where groups lie or tell too
// little.
void read_whole(const Trace& trace, TraceTimeline& timeline, const std::vector<Arrival>& arrivals,
                std::vector<RankGroup> groups, Observed& observed, std::vector<std::string>& notes);

bool same_layout(const std::optional<Whole>& a, const std::optional<Whole>& b);

// Of the ranks together: groups that several ranks tell are one, with what they took and who came
// late. `told`: by rank, of which Exchange::in is the place.
void join_groups(std::vector<std::vector<RankGroup>> told, Observed& observed);

}  // namespace syncline::job::kineto
