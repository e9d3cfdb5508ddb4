// What could be done in place of the baseline (core/tune/alternatives.h), in every form of an
// answer: the same rows, with how each trains, what it gains and how it is set.
#pragma once

#include <string>
#include <vector>

#include "core/tune/tuning.h"
#include "reports/answer.h"

namespace syncline::reports {

// How the best that was found trains, compared with the baseline.
measure::Training training_of_best(const tune::Tuning& tuning);

// Which other training gains clearly more than the best that was named first; of a best that itself
// changes the training, what the best takes that does not. A sentence each.
std::vector<std::string> beyond_sentences(const tune::Tuning& tuning);

// Of the configuration that says the alternative that was asked for. Requires both.
std::string taken_sentence(const tune::Tuning& tuning);

Grid alternatives_grid(const tune::Tuning& tuning);
// How to set them, one line each; may have no items.
Items alternatives_set(const tune::Tuning& tuning);

// [{"strategy", "training", "step_time_s", "step_time_low_s", "step_time_high_s", "speedup",
// "speedup_low", "speedup_high", "clearly_faster", "memory_bytes", "set_with", "outcome":
// {"quantity", "end", "end_half_width", "baseline_end", "published"} where it is known}]
Json alternatives_json(const tune::Tuning& tuning);
// Gives lines of strategies a training and how they are set, and adds the lines that are missing.
void add_alternatives(CsvTable& table, const tune::Tuning& tuning);

}  // namespace syncline::reports
