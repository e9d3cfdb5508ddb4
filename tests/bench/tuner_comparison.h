// The tuners against each other under noise: ours and Horovod's emulated one, on steps whose truth
// is known, graded by the optimum of the dynamic programme.
#pragma once

#include <string>
#include <vector>

#include "studies/machines/bayesian_search.h"
#include "tests/bench/horovod_autotune.h"
#include "tests/support/bucket_search.h"

namespace syncline::test {

struct NoisyCase {
  std::string model;
  std::string network;
  StepTrace trace;
  AffineCost truth;
};

// What the guiding model takes the truth's latency and time a byte to be, as factors of them.
struct MemberError {
  double latency = 1;
  double transfer = 1;
};

struct NoisySettings {
  double noise = 0.02;  // standard deviation of one step, relative
  int seeds = 20;       // searches a case, seeded 1, 2, ...
  tune::SearchSettings search;
};

// Percent over the optimum, over all seeds.
struct TunerScore {
  double median = 0;
  double least = 0;
  double most = 0;
  double tuning_cost = 0;  // mean over evaluations and seeds
  double evaluations = 0;  // mean over seeds
  int most_evaluations = 0;
};
TunerScore score_bayesian_search(const NoisyCase& noisy, const MemberError& error,
                                 const NoisySettings& settings);
TunerScore score_horovod(const NoisyCase& noisy, const NoisySettings& settings);

// Both tuners on every case, ours under every error of its guiding model; one line a case and
// error.
struct ComparedTuners {
  NoisyCase noisy;
  Seconds optimum = 0;
  double horovod_default = 0;  // percent over the optimum: 128 MiB, 1 ms
  TunerScore horovod;
  std::vector<std::pair<MemberError, TunerScore>> ours;
};
ComparedTuners compare_tuners(const NoisyCase& noisy, const std::vector<MemberError>& errors,
                              const NoisySettings& settings);
std::string comparison_table(const std::vector<ComparedTuners>& rows);

}  // namespace syncline::test
