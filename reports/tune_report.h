// What a tuning says: the best strategies, how good they are, why, and where others would pay. The
// same content for a terminal, as Markdown, as CSV (one line a strategy) and as JSON.
#pragma once

#include <string>
#include <vector>

#include "reports/answer.h"
#include "reports/table.h"
#include "studies/tune/tuning.h"

namespace syncline::reports {

// Plain sentences, the most important first.
std::vector<std::string> tune_verdicts(const tune::Tuning& tuning);

Answer answer_of(const tune::Tuning& tuning);

// Returns how sure the answer is (tune_verdicts.cc), and what comes first: the best, what it gains
// and how likely; or that nothing is to be gained.
std::string headline(const tune::Tuning& tuning);

// Returns whether it is the network, where its bandwidth was fitted to measured steps; else empty.
std::string network_sentence(const tune::Tuning& tuning);

// What limits the step of the best, and the shares of its parts.
std::string bottleneck_sentence(const measure::Bottleneck& bottleneck);

// Returns the cheapest measurement that settles an open choice, with its command; else empty.
std::string next_sentence(const tune::Tuning& tuning);

// What a framework's configuration says of the best, or of the alternative asked for; may be empty.
std::vector<std::string> emitted_sentences(const tune::Tuning& tuning);

// Returns the sizes that are as good, what the frameworks' defaults cost, and which uncertainty
// decides.
std::vector<std::string> certainty_sentences(const tune::Tuning& tuning);

Json certainty_json(const tune::Tuning& tuning);

// What could be done in place of the baseline (studies/tune/tuning.h), in every form of an
// answer: the same rows, with how each trains, what it gains and how it is set.

// How the best that was found trains, compared with the baseline.
measure::TrainingChange training_of_best(const tune::Tuning& tuning);

// Which other training gains clearly more than the best that was named first; of a best that itself
// changes the training, what the best takes that does not. A sentence each.
std::vector<std::string> beyond_sentences(const tune::Tuning& tuning);

// Of the configuration that says the alternative that was asked for. Requires both.
std::string taken_sentence(const tune::Tuning& tuning);

Table alternatives_of(const tune::Tuning& tuning);

}  // namespace syncline::reports
