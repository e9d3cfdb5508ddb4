// How sure a tuned answer is, a sentence each.
#pragma once

#include <string>
#include <vector>

#include "core/tune/tuning.h"
#include "reports/answer.h"

namespace syncline::reports {

// What comes first: the best, what it gains and how likely; or that nothing is to be gained.
std::string headline(const tune::Tuning& tuning);

// The sizes that are as good, what the frameworks' defaults cost, and which doubt decides.
std::vector<std::string> certainty_sentences(const tune::Tuning& tuning);

// step_time_low_s, step_time_high_s, speedup_low, speedup_high, chance_of_gain, size
// {bytes, as_good_bytes [[from, to]]}, sensitivities [{doubt, end, best_bytes,
// lost_percent}], defaults {dialect: {percent, low, high}}.
Json certainty_json(const tune::Tuning& tuning);

}  // namespace syncline::reports
