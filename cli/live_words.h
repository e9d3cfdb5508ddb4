// What a live search says while it goes on, and of the model that guides it.
#pragma once

#include <string>

#include "core/tune/guides.h"
#include "core/tune/watched_objective.h"

namespace syncline::cli {

// A line on stderr.
void say(const std::string& text);

// The guiding model, and how it was made wrong on purpose.
std::string guide_words(const tune::GuideFactors& error);

// Says "WHAT 3 of COUNT: ..." ahead of each measurement and behind it. `pace`: how long a second
// that was measured takes.
tune::MeasurementWatch announced(const std::string& what, const std::string& count,
                                 double pace = 0);

}  // namespace syncline::cli
