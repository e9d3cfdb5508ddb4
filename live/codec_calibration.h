// What encoding costs on this machine, measured by the ranks themselves: encode and decode as a
// plan has them, all ranks at once, and the device's figures that price them.
#pragma once

#include <vector>

#include "core/measure/validation.h"
#include "live/live_executor.h"

namespace syncline {

// One of several sizes.
struct CodecSample {
  LinkSample sample;
  double traffic = 0;  // bytes of memory, as the codec reckons
  bool encode = true;
};

// Called on all ranks together; the figures are each rank's own.
std::vector<CodecSample> codec_samples(ControlChannel& channel, const LiveExecutorFactory& backend,
                                       const Codec& codec, int repeats);

// Seconds = launch + traffic / memory by least squares of relative errors, neither below zero.
// Encodings alone are fitted: they hold the computation up, while a decoding is next to nothing
// beside them and hides behind the backward pass. Decodings stay among the samples as a check.
// Sets launch and memory of the device, and what they foretell for each sample.
void fit_device(std::vector<CodecSample>& samples, Device& device);

}  // namespace syncline
