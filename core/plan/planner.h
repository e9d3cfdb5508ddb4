// Plans from a strategy's communication (communication.h). One call plans one point of the
// training; `training_phases` lists the points of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "core/communication.h"
#include "core/job.h"

namespace syncline::plan {

// Returns the computation time of each of equal blocks of ranks in a step, relative to the
// workload's: by its speed, and by its steps per LocalSGD period over their mean.
std::vector<double> block_times(const Cluster& cluster, const LocalSgd& local);

// Returns the learning rate and the loss at a step. LocalSGD averages parameters instead of
// gradients by the rules of Paddle's localsgd_optimizer (2021). Steps count from 1. Up to
// begin_step every step communicates, then every k-th. At each averaging the adaptive form sets k =
// clamp(ceil(sqrt(lr_0 L / (lr loss_0) init_period)), 1, max_period), with that moment's loss L and
// rate lr (init_period is inside the root, unlike in AdaComm, Wang and Joshi 2018).
double learning_rate_at(const Training& training, std::int64_t step);
double loss_at(const Training& training, std::int64_t step);

// Returns the period by the adaptive rule at one averaging.
std::int64_t adaptive_period(const LocalSgd& local, double first_rate, double first_loss,
                             double rate, double loss);

// Returns the number of the run's steps in periods of each length, by period. A run that begins
// inside a period has a shorter one for the rest of it. The steps after the last averaging are not
// averaged and come last.
std::vector<TrainingPhase> period_shares(const LocalSgd& local, const Training& training);

}  // namespace syncline::plan
