// How values that stand in more than one place of a scenario are spelt.
#pragma once

#include <string>
#include <vector>

#include "core/strategy.h"
#include "formats/input/knob_table.h"

namespace syncline::input {

constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;

// What a strategy may name as its algorithm.
Spelling<std::string> algorithm();
// Ranks in a group, where groups are to take in all ranks; 0, where it is the least: no groups.
// "leaf": those below one switch, as the job is placed on the fabric.
Spelling<int> ranks_in_a_group(int least = 1);
// Lists of places among the workload's tensors and perhaps its buffers, each place at most once.
Spelling<std::vector<std::vector<int>>> groups(bool with_buffers);

// Places of the last of each run, ascending.
Spelling<std::vector<std::int64_t>> rising_ends();

Spelling<Bytes> mebibytes(bool zero_allowed);
Spelling<Seconds> milliseconds();
Spelling<std::int64_t> counts();
Spelling<int> streams();
Spelling<Fusion::Rule> rules();
Spelling<Fusion::Close> closes();
Spelling<Strategy::Exchange> exchanges();
Spelling<Strategy::Priority> priorities();

}  // namespace syncline::input
