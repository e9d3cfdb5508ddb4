// From strategy to plan, by way of what it communicates (communication.h). One call for one point
// of the training; `training_phases` says which points a run consists of.
#pragma once

#include <cstdint>
#include <vector>

#include "core/communication.h"
#include "core/job.h"

namespace syncline::plan {

// Returns how long each of so many equal blocks of ranks computes in a step, over what the workload
// says: by its speed, and by its own steps of a period of LocalSGD over their mean.
std::vector<double> block_times(const Cluster& cluster, const LocalSgd& local);

// LocalSGD: when parameters are averaged instead of gradients, by the rules of Paddle's
// localsgd_optimizer (2021). Steps count from 1; up to begin_step every step communicates; then
// every k-th. The adaptive form sets k = clamp(ceil(sqrt(lr_0 L / (lr loss_0) init_period)), 1,
// max_period) at each averaging, with the loss L and learning rate lr of that moment (init_period
// stands inside the root, unlike in AdaComm, Wang and Joshi 2018).

double learning_rate_at(const Training& training, std::int64_t step);
double loss_at(const Training& training, std::int64_t step);

// Returns the adaptive rule at one averaging.
std::int64_t adaptive_period(const LocalSgd& local, double first_rate, double first_loss,
                             double rate, double loss);

// Returns how many steps of the run are spent in periods of each length, by period. A run that
// begins inside a period has one that is as short as what is left of it; the steps behind the last
// averaging, which are not averaged, come last.
std::vector<TrainingPhase> period_shares(const LocalSgd& local, const Training& training);

}  // namespace syncline::plan
