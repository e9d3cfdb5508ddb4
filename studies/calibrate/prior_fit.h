// Fits the table of core/collective/library.h to published logs again, and tests it on networks
// left out of the fit.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/collective/library.h"
#include "studies/fidelity/fidelity.h"

namespace syncline::calibrate {

// Classes of payloads: up to 64 KiB, 4 MiB, 128 MiB, and larger; each is represented by its middle.
inline constexpr std::array<double, 4> kPayloads = {8.0 * kKiB, 512.0 * kKiB, 23.17 * kMiB,
                                                    1.0 * kGiB};
using ByPayload = std::array<double, kPayloads.size()>;

// One site's rows for one kind of path, per class: a payload in bytes, and log(measured time /
// time). The second time is that of NCCL's model with rates from the data sheet.
struct PriorUnit {
  std::string site;
  collective::Path path;
  std::array<std::vector<std::pair<double, double>>, kPayloads.size()> rows;
};

// Reads the rows of the logs in `list`. Throws InputError for a wrong list or log.
std::vector<PriorUnit> prior_units(const std::string& list);

struct PriorFit {
  ByPayload bias;
  ByPayload spread;
};

// Fits a kind of path. The bias is a mean: each site counts once, the median of all kinds once, a
// published survey of the kind twice. The spread is the root of a mean of squared errors: of each
// site by a fit without it, and once of the mean of all kinds.
PriorFit prior_fit(const std::vector<PriorUnit>& units, const collective::Path& path);
// Fits a network of unknown kind.
PriorFit unnamed_fit(const std::vector<PriorUnit>& units);

// Returns a table per kind of path: every site's rows as predicted from the other sites.
std::vector<measure::FidelityTable> prior_fidelity(const std::string& list);

}  // namespace syncline::calibrate
