// The answer of `syncline validate`.
#pragma once

#include <string>

#include "core/measure/validation.h"
#include "core/scenario/cluster.h"

namespace syncline {

std::string validation_text(const Validation& validation);
std::string validation_markdown(const Validation& validation);
std::string validation_csv(const Validation& validation);
// {"backend", "ranks", "rows": [{"strategy", "predicted_s", "measured_median_s", ...}], ...}
std::string validation_json(const Validation& validation);

// Latency and bandwidth of each tier, and what a collective and encoding cost besides.
std::string links_in_words(const Cluster& cluster);

// Only the samples by which links were calibrated.
std::string links_text(const Validation& validation);
std::string links_markdown(const Validation& validation);

}  // namespace syncline
