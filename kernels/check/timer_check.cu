// A span takes the time that it was asked to, and the next one counts from its intended end.

#include "kernels/check/check.cuh"
#include "kernels/timer.h"

namespace syncline::kernels {
namespace {

void check_spans(Checks& checks, int spans, std::int64_t nanoseconds, bool follows) {
  const std::vector<TimerState> none(1, TimerState{0, 0});
  DeviceArray<TimerState> timer(none);
  cudaEvent_t begin;
  cudaEvent_t end;
  require(cudaEventCreate(&begin), "cudaEventCreate");
  require(cudaEventCreate(&end), "cudaEventCreate");
  require(timer_begin(timer.data(), false, nullptr));  // loads the kernels
  require(timer_end(timer.data(), 0, nullptr));
  wait_for_gpu();
  timer.put(none);
  require(cudaEventRecord(begin), "cudaEventRecord");
  for (int i = 0; i < spans; ++i) {
    require(timer_begin(timer.data(), follows && i > 0, nullptr));
    require(timer_end(timer.data(), nanoseconds, nullptr));
  }
  require(cudaEventRecord(end), "cudaEventRecord");
  wait_for_gpu();
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  const double seconds = milliseconds / 1e3;
  const double meant = spans * static_cast<double>(nanoseconds) / 1e9;
  // Those that follow lose nothing between them; the others at most a launch each.
  const double late = follows ? 1e-4 : spans * 5e-5;
  const bool passed = seconds >= meant - 2e-6 && seconds <= meant + late;
  checks.line(std::to_string(spans) + " spans of " + std::to_string(nanoseconds) + " ns" +
                  (follows ? ", each behind the last" : ""),
              passed && timer.intact(),
              std::to_string(seconds) + " s for " + std::to_string(meant));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

}  // namespace
}  // namespace syncline::kernels

int main() {
  using namespace syncline::kernels;
  Checks checks("timer");
  check_spans(checks, 1, 1000000, false);
  check_spans(checks, 1, 50000000, false);
  for (const bool follows : {false, true}) check_spans(checks, 200, 100000, follows);
  return checks.result();
}
