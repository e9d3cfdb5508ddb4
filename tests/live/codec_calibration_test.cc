// The device's cost of encoding, fitted to samples whose cost model is known.
#include "live/link_calibration.h"

#include <gtest/gtest.h>

namespace syncline::live {
namespace {

std::vector<CodecSample> samples_of(Seconds launch, BytesPerSecond memory) {
  std::vector<CodecSample> samples;
  for (const double traffic : {1e5, 1e6, 1e7, 1e8}) {
    CodecSample encode;
    encode.traffic = traffic;
    encode.sample.measured = launch + traffic / memory;
    samples.push_back(encode);
    CodecSample decode = encode;
    decode.encode = false;
    decode.sample.measured = 1e-9;  // of no weight
    samples.push_back(decode);
  }
  return samples;
}

TEST(CodecCalibration, FindsTheCostModelOfTheEncodings) {
  auto samples = samples_of(5e-5, 1e10);
  Device device;
  fit_device(samples, device);
  EXPECT_NEAR(device.launch, 5e-5, 1e-12);
  EXPECT_NEAR(device.memory, 1e10, 1);
  for (const auto& s : samples) {
    if (!s.encode) continue;
    EXPECT_NEAR(s.sample.fitted, s.sample.measured, 1e-12);
  }
}

TEST(CodecCalibration, NoLaunchIsBelowZero) {
  auto samples = samples_of(0, 1e10);
  for (auto& s : samples) s.sample.measured = s.traffic * s.traffic / 1e17;
  Device device;
  fit_device(samples, device);
  EXPECT_EQ(device.launch, 0);
  EXPECT_GT(device.memory, 0);
}

}  // namespace
}  // namespace syncline::live
