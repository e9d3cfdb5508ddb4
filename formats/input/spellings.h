// Spellings of values that several places of a scenario have.
#pragma once

#include <string>
#include <vector>

#include "core/strategy.h"
#include "formats/input/knob_table.h"

namespace syncline::input {

constexpr std::int64_t kMaxSteps = std::int64_t{1} << 40;

// Returns the spelling of the algorithms that a strategy may name.
Spelling<std::string> algorithm();
// Returns the spelling of the ranks per group, for groups that cover all ranks; 0, if it is the
// least: no groups. "leaf": the ranks below one switch, as the job is placed on the fabric.
Spelling<int> ranks_in_a_group(int least = 1);
// Returns the spelling of lists of tensor places, perhaps with buffers; each place at most once.
Spelling<std::vector<std::vector<int>>> groups(bool with_buffers);

// Returns the spelling of ascending places, each the last of a run.
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
