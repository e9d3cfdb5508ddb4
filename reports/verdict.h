// The message of a report's table in a sentence or two, derived from its rows.
#pragma once

#include <string>
#include <vector>

#include "core/cluster.h"
#include "reports/grid.h"
#include "studies/rows/report.h"

namespace syncline::reports {

// Speedups within this ratio count as equal.
inline constexpr double kTie = 1.005;
// Speedup below which a strategy is called slower.
inline constexpr double kPays = 1 / kTie;

// Returns the fastest strategies by sweep point, their speedup over the baseline, and the slower
// ones: "dgc is the fastest at bandwidth_gbps 10 and 1 (1.47x and 6.55x over momentum); at 100 it
// is slower (0.985x)." If some do not fit in memory: the fastest that does, and the faster ones
// that do not. Uses the rows of one executor, the first row's.
std::string verdict(const measure::Report& report);

// Returns a sentence if no values of the fitted keys bring the fitted rows within 6 % of the
// measured ones in the mean: then the figures may be those of another job. Else empty. The verdict
// begins with it.
std::string fit_failure(const measure::Report& report);

// Returns a sentence that tells if measured steps wait for the network, by its fitted bandwidth.
std::string network_sentence(const measure::NetworkFit& fit, const measure::Metrics& baseline);

// Returns the tone of each row: best for the fastest of its sweep point, as in the verdict; faint
// for slower ones and those that do not fit. Plain if there is no other to compare with.
std::vector<Tone> tones_of(const measure::Report& report);

// Returns usual reasons why such a network is slower than its ports, and the settings to try.
std::string slow_network_causes(Fabric fabric, int nics);

}  // namespace syncline::reports
