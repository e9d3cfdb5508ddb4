// Schemes: who holds a model's weights, gradients and optimizer. A framework has several of them,
// from whole copies on each rank to shards of everything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/dialect/dialect.h"

namespace syncline::dialect {

// A scheme as a scenario has it.
struct Scheme {
  std::string name;
  std::string dialect;
  Json config;

  Json entry() const { return {{"name", name}, {"dialect", dialect}, {"config", config}}; }
};

// Returns the schemes that a job of this framework may take in place of its own, those that are
// simpler to set first. Other keys of `config`, the job's own in that framework, stay; null: it has
// none. Empty: the framework has one scheme. A framework may refuse some of them on this job.
std::vector<Scheme> schemes_beside(std::string_view dialect, const Json& config,
                                   const Workload& workload, const Cluster& cluster);

// Sets the samples of a micro-batch and the micro-batches of a step in a configuration that says
// them.
void set_batches(std::int64_t batch, std::int64_t micro_batches, Json& config);

}  // namespace syncline::dialect
