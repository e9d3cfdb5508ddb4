// Links measured by the ranks themselves: a live executor runs ring all-reduces of many sizes, as a
// plan would, inside the groups of each tier. A round's time by the bytes that a rank sends in it
// is the tier's curve (core/cost/cost_model_provider.h), which gives the cost of collectives. As a
// check, all-gathers and all-reduces across groups are measured too. The device's rate of encoding
// is fitted.
#pragma once

#include <string>
#include <vector>

#include "core/cost/cost_model_provider.h"
#include "live/live_executor.h"
#include "studies/fidelity/validation.h"

namespace syncline::live {

struct LinkCalibration {
  Cluster cluster;  // as given, with the measured figures, and the curves as its cost model
  std::vector<cost::StepCurve> curves;  // by tier
  std::vector<measure::LinkSample> samples;
};

// Makes a backend that runs the workload's operators on `device`, with `channels` channels per
// communicator; 0: the library's own choice.
using ComputingExecutor = std::function<LiveExecutorFactory(const Device& device, int channels)>;

// Slowdowns of computation and all-reduces at the same time, as shares of their times alone.
struct InterferenceSample {
  int channels = 0;  // 0: the library's own choice
  Seconds computation = 0;
  Seconds collective = 0;
  double slowdown = 0;
  double collective_slowdown = 0;
};

// Measures products of `edge` x `edge` matrices during all-reduces of `payload` bytes. A collective
// call; the figures are each rank's own. Empty if ranks share a device.
std::vector<InterferenceSample> interference_samples(ControlChannel& channel,
                                                     const ComputingExecutor& computing,
                                                     std::int64_t edge, std::int64_t payload,
                                                     int repeats);

struct LinkCalibrationSettings {
  std::int64_t largest = 32 << 20;  // bytes of the largest payload
  int repeats = 5;
  // Times the encodings of this codec too; nullptr: the device's rate stays unchanged.
  const compress::Codec* codec = nullptr;
  // Measures interference; null: the device's stays unchanged.
  ComputingExecutor computing = nullptr;
};

// Returns a step of equal collectives one after the other: during a computation, or after one that
// takes no time.
plan::Plan equal_collectives(const collective::Collective& collective, int ranks, int count,
                             Seconds computation);

// Returns a cluster of these nodes and ranks; its links are placeholders until measured.
Cluster unmeasured_cluster(const std::string& name, int nodes, int ranks_per_node);

// Measures the links of `shape`: its nodes, ranks per node and tiers stay, their figures are
// replaced. A collective call; the result is the same on all ranks. Requires a shape of the
// channel's number of ranks.
LinkCalibration calibrate_links(ControlChannel& channel, const LiveExecutorFactory& backend,
                                const Cluster& shape, const LinkCalibrationSettings& settings);

// Puts the measured keys into `json`, a cluster as in scenarios.
void set_measured_links(const LinkCalibration& measured, Json& json);

// A time of encoding or decoding for one size. The ranks encode and decode as in a plan, all at
// once, and the device's figures are fitted to the times.
struct CodecSample {
  measure::LinkSample sample;
  double traffic = 0;  // bytes of memory that the codec reads and writes, by its own count
  bool encode = true;
};

// Measures encodings and decodings. A collective call; the figures are each rank's own.
std::vector<CodecSample> codec_samples(ControlChannel& channel, const LiveExecutorFactory& backend,
                                       const compress::Codec& codec, int repeats);

// Fits seconds = launch + traffic / memory by least squares of relative errors, both >= 0. Only
// encodings are fitted: they delay the computation, while a decoding is short and overlaps with the
// backward pass. Decodings stay among the samples as a check. Sets launch and memory of the device,
// and the fitted time of each sample.
void fit_device(std::vector<CodecSample>& samples, Device& device);

}  // namespace syncline::live
