// What the closed form and the simulation say that a plan takes.
#pragma once

#include <string>

#include "core/sim/sim_executor.h"
#include "tests/support/plans.h"

namespace syncline {

using Granularity = Simulation::Granularity;

inline Seconds modelled(const Cluster& cluster, const plan::Plan& plan) {
  return time_of(*run::make_model_executor({cluster, {}, 1}), plan);
}

inline Seconds simulated(const Cluster& cluster, const plan::Plan& plan, Granularity granularity,
                         bool fold = true) {
  run::ExecutorSettings settings{cluster, {}, 1};
  settings.simulation.granularity = granularity;
  settings.simulation.fold = fold;
  return time_of(*sim::make_sim_executor(settings), plan);
}

// An all-reduce over all ranks.
inline collective::Collective all_reduce(int ranks, const std::string& algorithm,
                                         std::int64_t elements) {
  return collective_of(collective::CollectiveKind::kAllReduce, algorithm,
                       collective::world_group(ranks), elements);
}
inline plan::Plan all_reduce_plan(int ranks, const std::string& algorithm, std::int64_t elements) {
  return plan_of(ranks, {{1, all_reduce(ranks, algorithm, elements)}});
}

}  // namespace syncline
