// What the network between groups must carry: the bandwidth of the outermost links at which plain
// data parallelism, LocalSGD or DiLoCo is as busy as asked, and how busy it is at the links as
// given. utilisation = a step of a group by itself / a step of all groups. Everything but those
// links' bandwidth stays as it is, their latency too; a fabric's links grow with its ports.
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
  Seconds alone = 0;                     // a step of a group by itself
  double given = 0;                      // utilisation at the links as they are
  std::optional<BytesPerSecond> needed;  // of a group's port, rated; none: no bandwidth does
  std::vector<double> curve;             // utilisation at each of Utilisation::bandwidths
};

struct Utilisation {
  Scenario scenario;
  double target = 0.95;
  int groups = 1;
  int ranks = 1;  // of a group
  Tier link;      // as given
  std::vector<BytesPerSecond> bandwidths;
  std::vector<Utilised> rows;  // plain first
  std::vector<std::string> warnings;
};

// Of the document's scenario around its baseline; strategies of its own with local_sgd in these
// groups come last. Measured times of collectives hold for the links as they are alone and are left
// out, which a warning says. Throws InputError where there is one rank, or a job is cut.
Utilisation utilisation_of(const input::Document& document, double target);

}  // namespace syncline::tune
