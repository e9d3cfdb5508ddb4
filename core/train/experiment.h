// The experiments behind the table of numerics: what DGC's parts are for, and what LocalSGD trades.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/train/trainer.h"

namespace syncline::train {

struct Experiment {
  std::string name;
  std::string about;
  TaskShape task;
  MlpShape network;
  Course course;
  std::vector<TrainingMethod> methods;  // the first is what the others are compared with
};

// Dense momentum, DGC at 99.9 %, and DGC without each of its parts in turn. Of the rates 0.1, 0.2
// and 0.3 dense momentum does best at 0.2; at 0.5 it is nearly at its limit, and everything that
// makes a step coarser shows.
Experiment compression_experiment(std::string name, std::int64_t steps, double rate);

// Averaging at every step, at every second, fourth, eighth and sixteenth, and by the adaptive rule.
Experiment local_sgd_experiment(std::int64_t steps);

}  // namespace syncline::train
