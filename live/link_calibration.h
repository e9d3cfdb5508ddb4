// Links measured by the ranks themselves: collectives of many sizes are run by a live executor, as
// a plan would run them, and latency and bandwidth of each tier, the fixed cost of a collective and
// the device's rate of encoding are fitted to their times. No step of any training is looked at:
// step times predicted from the result are predictions.
#pragma once

#include <string>
#include <vector>

#include "core/measure/validation.h"
#include "live/live_executor.h"

namespace syncline {

struct LinkCalibration {
  Cluster cluster;  // as given, with what was measured in place
  std::vector<LinkSample> samples;
  double median_error = 0;  // relative, of the samples
  double worst_error = 0;
};

struct LinkCalibrationSettings {
  std::int64_t largest = 32 << 20;  // bytes of the largest payload
  int repeats = 5;
  // Whose encodings are timed too; nullptr: none, and the device's rate stays as it is.
  const Codec* codec = nullptr;
};

// `shape`: nodes, ranks a node and tiers are taken from it, their figures replaced. Called on all
// ranks together; the result is the same everywhere. Requires as many ranks in the shape as have
// met.
LinkCalibration calibrate_links(Meeting& meeting, const LiveExecutorFactory& backend,
                                const Cluster& shape, const LinkCalibrationSettings& settings);

// The measured keys of a cluster's JSON, put into `json` (a cluster as scenarios have it).
void set_measured_links(const Cluster& measured, Json& json);

}  // namespace syncline
