// Finds the bandwidth of the outermost links at which plain data parallelism, LocalSGD or DiLoCo
// reaches a utilisation, and the utilisation at the given links. utilisation = a step of one group
// by itself / a step of all groups. Only the bandwidth of these links varies, not their latency; a
// fabric's links grow with its ports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/input/document.h"
#include "formats/scenario/scenario.h"

namespace syncline::tune {

struct Utilised {
  Strategy strategy;
  Seconds alone = 0;                     // a step of one group by itself
  double given = 0;                      // utilisation at the given links
  std::optional<BytesPerSecond> needed;  // rated, of a group's port; nullopt: none suffices
  std::vector<double> curve;             // utilisation at each of Utilisation::bandwidths
};

struct Utilisation {
  Scenario scenario;
  double target = 0.95;
  int groups = 1;
  int ranks = 1;  // in a group
  Tier link;      // as given
  std::vector<BytesPerSecond> bandwidths;
  std::vector<Utilised> rows;  // plain first
  std::vector<std::string> warnings;
};

// Returns the utilisation of the document's scenario around its baseline; its own strategies with
// local_sgd in these groups come last. Measured times of collectives hold only for the given links:
// they are dropped with a warning. Throws InputError for one rank, or a partitioned model.
Utilisation utilisation_of(const input::Document& document, double target);

}  // namespace syncline::tune
