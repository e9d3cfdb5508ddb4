// The table of core/collective/library.h, found again on published logs, and how wrong it is on
// each network that it was not found on.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/collective/library.h"
#include "studies/fidelity/fidelity.h"

namespace syncline::calibrate {

// Classes of payloads: up to 64 KiB, 4 MiB, 128 MiB, and beyond; a class stands at its middle.
inline constexpr std::array<double, 4> kPayloads = {8.0 * kKiB, 512.0 * kKiB, 23.17 * kMiB,
                                                    1.0 * kGiB};
using ByPayload = std::array<double, kPayloads.size()>;

// What the rows of one site say of one kind of path, by class: a payload in bytes, and
// log(measured time / time said by NCCL's model on the data sheet).
struct PriorUnit {
  std::string site;
  collective::Path path;
  std::array<std::vector<std::pair<double, double>>, kPayloads.size()> rows;
};

// Throws InputError for a wrong list or log.
std::vector<PriorUnit> prior_units(const std::string& list);

struct PriorFit {
  ByPayload bias;
  ByPayload spread;
};

// A kind's bias is the mean of its sites', of a survey's, which counts twice, and, once, of the
// median over all kinds: the fewer sites the nearer to that. The spread is that of its sites, each
// left out, and once of all kinds.
PriorFit prior_fit(const std::vector<PriorUnit>& units, const collective::Path& path);
// Of a network whose kind nobody names.
PriorFit unnamed_fit(const std::vector<PriorUnit>& units);

// A table for each kind of path: every site's rows as predicted from the other sites.
std::vector<measure::FidelityTable> prior_fidelity(const std::string& list);

}  // namespace syncline::calibrate
