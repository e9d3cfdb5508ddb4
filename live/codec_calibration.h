// What encoding costs on this machine, measured by the ranks themselves: they encode and decode as
// in a plan, all at once, and the figures of the device that price it are fitted to the times.
#pragma once

#include <vector>

#include "core/measure/validation.h"
#include "live/live_executor.h"

namespace syncline::live {

// One of several sizes.
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
