// The stand-ins on the GPU: they take their time, move at their rate, and leave the buffer alone.

#include "kernels/busy.h"
#include "kernels/check/check.cuh"

namespace syncline::kernels {
namespace {

template <typename Launch>
double seconds_of(Launch launch) {
  cudaEvent_t begin;
  cudaEvent_t end;
  require(cudaEventCreate(&begin), "cudaEventCreate");
  require(cudaEventCreate(&end), "cudaEventCreate");
  require(cudaEventRecord(begin), "cudaEventRecord");
  require(launch());
  require(cudaEventRecord(end), "cudaEventRecord");
  wait_for_gpu();
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return milliseconds / 1e3;
}

void check_occupy(Checks& checks, const Occupation& occupation) {
  const double seconds = seconds_of([&] { return occupy(occupation, nullptr); });
  // The clock may advance by a microsecond at a time; a launch takes some more.
  const bool passed =
      seconds >= occupation.seconds - 2e-6 && seconds <= occupation.seconds * 1.05 + 5e-5;
  checks.line(std::to_string(occupation.blocks) + " blocks of " +
                  std::to_string(occupation.threads) + " threads for " +
                  std::to_string(occupation.seconds * 1e6) + " us",
              passed, std::to_string(seconds * 1e6) + " us");
}

void check_traffic(Checks& checks, int blocks, double rate, bool exact) {
  const auto values = random_elements<float>(64 << 20, 1);
  DeviceArray<float> buffer(values);
  unsigned long long* moved = nullptr;
  require(cudaMalloc(&moved, sizeof *moved), "cudaMalloc");
  require(cudaMemset(moved, 0, sizeof *moved), "cudaMemset");
  const Traffic traffic{
      blocks, rate, 0.02, buffer.data(), static_cast<std::int64_t>(values.size() * sizeof(float)),
      moved};
  const double seconds = seconds_of([&] { return move_bytes(traffic, nullptr); });
  unsigned long long bytes = 0;
  require(cudaMemcpy(&bytes, moved, sizeof bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  cudaFree(moved);
  const double got = static_cast<double>(bytes) / seconds;
  const bool paced = exact ? std::fabs(got / rate - 1) < 0.05 : got <= rate * 1.05;
  const auto wrong = different(buffer.get(), values);
  checks.line(std::to_string(blocks) + " blocks at " + std::to_string(rate / 1e9) + " GB/s",
              paced && wrong == 0 && buffer.intact(),
              std::to_string(got / 1e9) + " GB/s, " + std::to_string(wrong) + " elements differ");
}

}  // namespace
}  // namespace syncline::kernels

int main() {
  using namespace syncline::kernels;
  Checks checks("busy");
  require(occupy({1, 512, 1e-3, true}, nullptr));  // loads the module
  wait_for_gpu();
  check_occupy(checks, {1, 512, 1e-3, true});
  check_occupy(checks, {32, 640, 5e-3, true});
  check_occupy(checks, {32, 640, 5e-3, false});
  check_occupy(checks, {100, 32, 1e-4, true});
  check_traffic(checks, 8, 50e9, true);
  check_traffic(checks, 32, 200e9, true);
  check_traffic(checks, 132, 1e15, false);  // as fast as it goes
  return checks.result();
}
