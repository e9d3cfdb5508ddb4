// Data-parallel training with all workers in one process: what a rule of synchronisation does to
// the loss, which neither the model nor the simulation can say. Workers take turns; the gradients,
// what is sent and what stays behind are exactly those of as many machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/local_sgd.h"
#include "core/scenario/scenario.h"
#include "core/train/network.h"

namespace syncline::train {

// What all methods have in common.
struct Course {
  int workers = 8;
  int batch = 8;      // samples a worker and step
  Training training;  // learning rate; `steps` is required
  double momentum = 0.9;
  // Each worker clips its own gradient to this norm over the root of the workers (Lin et al. 2018,
  // section 3.2), whatever the method, so that methods differ in nothing else. 0: it does not.
  double clip = 0;
  std::int64_t look = 0;  // steps between two looks at the test set; 0: none before the end
};

// How the workers agree. Without compression and LocalSGD: gradients are averaged at every step,
// then momentum.
struct TrainingMethod {
  std::string name;
  // DGC (Lin et al. 2018), where compression.codec is "dgc". Tensors below min_elements and steps
  // before the ramp are dense.
  Compression compression;
  // Velocities are accumulated for sending. Off: gradients are, and momentum follows behind the
  // exchange.
  bool momentum_correction = true;
  // Where a value was sent, the velocity begins anew. Requires momentum_correction.
  bool masking = true;
  bool clipping = true;  // as the course says
  // LocalSGD (core/plan/local_sgd.h): parameters are averaged every so many steps. Momentum stays
  // each worker's own, as in Paddle. Needs `enabled`; subgroups are not trained here.
  LocalSgd local_sgd;
};

// The test set after so many steps, with the mean of the workers' parameters.
struct SeenAt {
  std::int64_t step = 0;
  Score test;
};

struct Trained {
  Score train;  // over the whole sets, with the final parameters
  Score test;
  bool diverged = false;  // the loss was no number any more: the scores are 0
  std::int64_t steps = 0;
  std::int64_t synchronisations = 0;
  double sent_bytes = 0;  // by a worker, all steps: 4 a dense element, 8 a sparse one
  std::vector<plan::PeriodShare> periods;  // LocalSGD: how many steps were spent in which period
  std::vector<SeenAt> seen;                // as often as the course says, from step 0 on
};

// The same seed gives all methods the same first parameters and the same batches.
Trained train(const Task& task, const MlpShape& network, const Course& course,
              const TrainingMethod& method, std::uint64_t seed);

}  // namespace syncline::train
