// Other schemes of the job's framework (formats/dialect/schemes.h), within memory: FSDP in place of
// DDP, stage 2 in place of 3.
#pragma once

#include <string>
#include <vector>

#include "formats/input/document.h"
#include "studies/rows/fitting.h"

namespace syncline::tune {

// Least gain over the best of the job's own scheme that justifies another scheme.
inline constexpr double kSchemeGain = 0.05;

// Returns the schemes of the baseline's framework, or of `emit`, that the document lacks, that fit
// the memory and train as the baseline does. Their names differ from those of all strategies.
std::vector<measure::ReadScheme> schemes_beside(const input::Document& document,
                                                const Scenario& scenario,
                                                const dialect::Dialect* emit);

}  // namespace syncline::tune
