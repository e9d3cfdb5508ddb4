// What a report's table says, in a plain sentence or two, worked out from its rows.
#pragma once

#include <string>
#include <vector>

#include "core/cluster.h"
#include "reports/grid.h"
#include "studies/rows/report.h"

namespace syncline::reports {

// Speedups within this ratio are called equal.
inline constexpr double kTie = 1.005;
// Below this, a strategy is slower.
inline constexpr double kPays = 0.9995;

// Which strategy is fastest at which sweep points, by how much over the baseline, and which do not
// pay: "dgc is the fastest at bandwidth_gbps 10 and 1 (1.47x and 6.55x over momentum); at 100 it
// is slower (0.985x)." Where some strategies do not fit in memory, the fastest of those that do,
// and which are faster and do not fit. Speaks about the first row's executor where there are
// several.
std::string verdict(const measure::Report& report);

// That no values of the fitted keys bring the fitted rows within 6 % of what was measured, in the
// mean: the rest of the answer is about another job. Empty where they do. The verdict begins so.
std::string fit_failure(const measure::Report& report);

// Whether it is the network that measured steps wait for, by its fitted bandwidth.
std::string network_sentence(const measure::NetworkFit& fit, const measure::Metrics& baseline);

// How each row of the report stands out: the fastest of its sweep point, as the verdict has it, and
// what is slower or does not fit there. Plain where there is nothing to compare with.
std::vector<Tone> tones_of(const measure::Report& report);

// What usually holds such a network below its ports' rates, and the settings to try.
std::string slow_network_causes(Fabric fabric, int nics);

}  // namespace syncline::reports
