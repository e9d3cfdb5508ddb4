// The answer of a search: the best strategies, how good they are, why, and alternatives. The same
// content for a terminal, as Markdown, as CSV (one line per strategy) and as JSON.
#pragma once

#include <string>
#include <vector>

#include "reports/answer.h"
#include "reports/table.h"
#include "studies/tune/tuning.h"

namespace syncline::reports {

// Returns plain sentences, the most important first.
std::vector<std::string> tune_verdicts(const tune::Tuning& tuning);

Answer answer_of(const tune::Tuning& tuning);

// Returns the main result and how sure it is (tune_verdicts.cc): the best, its gain and the
// probability of a gain; or that no strategy gains.
std::string headline(const tune::Tuning& tuning);

// Returns a sentence on what gains more and the framework cannot set; empty: nothing does.
std::string outside_sentence(const tune::Tuning& tuning);

// Returns a sentence on the network as bottleneck if its bandwidth was fitted to steps; else empty.
std::string network_sentence(const tune::Tuning& tuning);

// Returns the bottleneck of the best strategy's step, and the shares of its parts.
std::string bottleneck_sentence(const measure::Bottleneck& bottleneck);

// Returns the cheapest measurement that decides an open choice, with its command; else empty.
std::string next_sentence(const tune::Tuning& tuning);

// Returns sentences on the configuration of the best or chosen alternative; may be empty.
std::vector<std::string> emitted_sentences(const tune::Tuning& tuning);

// Returns the sizes that are as good, the cost of the frameworks' defaults, and the uncertainty
// that decides.
std::vector<std::string> certainty_sentences(const tune::Tuning& tuning);

Json certainty_json(const tune::Tuning& tuning);

// Alternatives to the baseline (studies/tune/tuning.h), in every form of an answer: the same rows,
// with the training, gain and settings of each.

// Returns how the best strategy changes the training, compared with the baseline.
measure::TrainingChange training_of_best(const tune::Tuning& tuning);

// Returns a sentence for each other kind of training that gains clearly more than the best. If the
// best changes the training, also its accuracy and the best that does not.
std::vector<std::string> beyond_sentences(const tune::Tuning& tuning);

// Returns a sentence on the configuration of the chosen alternative. Requires tuning.emitted and
// tuning.taken.
std::string taken_sentence(const tune::Tuning& tuning);

Table alternatives_of(const tune::Tuning& tuning);

}  // namespace syncline::reports
