// Division on the GPU has the same bits as on the host.

#include "kernels/check/check.cuh"
#include "kernels/divide.h"

namespace syncline::kernels {
namespace {

void check_divide(Checks& checks, std::size_t size, float divisor, int offset) {
  const auto values = random_elements<float>(size, 7);
  DeviceArray<float> device(values, offset);
  require(divide(device.data(), static_cast<std::int64_t>(size), divisor, nullptr));
  wait_for_gpu();
  std::vector<float> expected = values;
  for (auto& value : expected) value /= divisor;
  const std::size_t wrong = different(device.get(), expected);
  checks.line(std::to_string(size) + " by " + std::to_string(divisor),
              wrong == 0 && device.intact(), std::to_string(wrong) + " differ");
}

}  // namespace
}  // namespace syncline::kernels

int main() {
  using namespace syncline::kernels;
  Checks checks("divide");
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{255}, std::size_t{4097}, std::size_t{10000019}}) {
    for (const float divisor : {2.0f, 3.0f, 7.0f}) check_divide(checks, size, divisor, 1);
  }
  return checks.result();
}
