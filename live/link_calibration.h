// Links measured by the ranks themselves: ring all-reduces of many sizes are run by a live
// executor, as a plan would run them, inside the groups of each tier. What a round of them takes,
// by the bytes that a rank sends in it, is the tier's curve (core/cost/step_cost_model.h), which
// costs every other collective; all-gathers and all-reduces across groups are measured too, to show
// how well it does. The device's rate of encoding is fitted to encodings.
#pragma once

#include <string>
#include <vector>

#include "core/cost/cost_model_provider.h"
#include "live/live_executor.h"
#include "studies/fidelity/validation.h"

namespace syncline::live {

struct LinkCalibration {
  Cluster cluster;  // as given, with what was measured in place, and the curves as its cost model
  std::vector<cost::StepCurve> curves;  // by tier
  std::vector<measure::LinkSample> samples;
};

// A backend whose computation is the workload's operators on `device`, with so many channels for
// each communicator; 0: as many as its library takes by itself.
using ComputingExecutor = std::function<LiveExecutorFactory(const Device& device, int channels)>;

// What computation and all-reduces lose to each other, as shares of their time alone.
struct InterferenceSample {
  int channels = 0;  // 0: the library's own choice
  Seconds computation = 0;
  Seconds collective = 0;
  double slowdown = 0;
  double collective_slowdown = 0;
};

// Products of matrices of `edge` x `edge` beside all-reduces of `payload` bytes. Called on all
// ranks together; the figures are each rank's own. Empty where ranks share a device.
std::vector<InterferenceSample> interference_samples(ControlChannel& channel,
                                                     const ComputingExecutor& computing,
                                                     std::int64_t edge, std::int64_t payload,
                                                     int repeats);

struct LinkCalibrationSettings {
  std::int64_t largest = 32 << 20;  // bytes of the largest payload
  int repeats = 5;
  // Whose encodings are timed too; nullptr: none, and the device's rate stays as it is.
  const compress::Codec* codec = nullptr;
  // Measures interference; null: the device's stays as it is.
  ComputingExecutor computing = nullptr;
};

// Returns a step of equal collectives one behind the other: beside a computation, or behind one of
// no time.
plan::Plan equal_collectives(const collective::Collective& collective, int ranks, int count,
                             Seconds computation);

// Returns a cluster of so many nodes of so many ranks whose links all wait to be measured.
Cluster unmeasured_cluster(const std::string& name, int nodes, int ranks_per_node);

// `shape`: nodes, ranks a node and tiers are taken from it, their figures replaced. Called on all
// ranks together; the result is the same everywhere. Requires as many ranks in the shape as have
// joined.
LinkCalibration calibrate_links(ControlChannel& channel, const LiveExecutorFactory& backend,
                                const Cluster& shape, const LinkCalibrationSettings& settings);

// The measured keys of a cluster's JSON, put into `json` (a cluster as scenarios have it).
void set_measured_links(const LinkCalibration& measured, Json& json);

// What encoding costs on this machine, measured by the ranks themselves: they encode and decode as
// in a plan, all at once, and the figures of the device that cost it are fitted to the times.
// One of several sizes:
struct CodecSample {
  measure::LinkSample sample;
  double traffic = 0;  // bytes of memory that the codec reads and writes, as it counts them
  bool encode = true;
};

// Called on all ranks together; the figures are each rank's own.
std::vector<CodecSample> codec_samples(ControlChannel& channel, const LiveExecutorFactory& backend,
                                       const compress::Codec& codec, int repeats);

// Seconds = launch + traffic / memory by least squares of relative errors, neither below zero.
// Encodings alone are fitted: they delay the computation, while a decoding is next to nothing
// beside them and hides behind the backward pass. Decodings stay among the samples as a check. Sets
// launch and memory of the device, and what these predict for each sample.
void fit_device(std::vector<CodecSample>& samples, Device& device);

}  // namespace syncline::live
