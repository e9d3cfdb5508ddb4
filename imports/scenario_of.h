// Makes a scenario of an observed job that `run` and `tune` take as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/json/json.h"
#include "imports/bucket_rule.h"
#include "imports/observed.h"

namespace syncline::job {

struct ImportOptions {
  // The cluster in a scenario's form, given by the user; nullopt: taken from the files, the rest is
  // assumed.
  std::optional<Json> cluster;
  std::int64_t batch = 0;  // samples per rank and step, which no file has; 0: not given
};

struct Imported {
  Json scenario;
  BucketRule rule;
  std::vector<std::string> assumed;  // facts that no file had, one sentence each
};

// Returns the typical step of an observed job's first rank: its gradients in ready order, with
// waits and copies. Adds the job's strategy (and the same with gradients as views, if copies were
// seen) and its GPU time as a published row. For a model file, returns its workload. Throws
// InputError if no gradient is known.
Imported scenario_of(const Observed& observed, const ImportOptions& options);

// Name of the strategy that the job ran with.
inline constexpr const char* kAsItRan = "as it ran";

}  // namespace syncline::job
