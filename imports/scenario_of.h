// From what a job left behind to a scenario that `run` and `tune` take as it is.
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
  // The cluster as a scenario has it, given by the user; nothing: what the files tell, the rest
  // assumed.
  std::optional<Json> cluster;
  std::int64_t batch = 0;  // samples a rank and step, which no file tells; 0: nobody said
};

struct Imported {
  Json scenario;
  BucketRule rule;
  std::vector<std::string> assumed;  // what no file told, one sentence each
};

// Of a job that was seen, the step that is typical of its first rank: its gradients in ready order
// with their waits and copies, the strategy that it ran with (and the same with gradients as views,
// where copies were seen), its GPU time as a published row. Of a model file, its workload. Throws
// InputError where no gradient is known.
Imported scenario_of(const Observed& observed, const ImportOptions& options);

// The name of the strategy that the job ran with.
inline constexpr const char* kAsItRan = "as it ran";

}  // namespace syncline::job
