// Checks and then times the kernels on this machine's GPU (kHelp). Exit codes: 0 all passed, 1 a
// failure, 2 unknown options, 3 no GPU, so no measurement.
#include <cstdio>
#include <fstream>
#include <map>

#include "kernels/check/check.h"
#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

constexpr const char* kHelp =
    "gpu_check [--out FILE] [--date TEXT] [--commit TEXT] [--sizes small]\n"
    "Checks the kernels on this GPU against the host, then times them, with the bytes that they\n"
    "must move and what memory gives. Writes JSON for `syncline calibrate kernels`. Of small "
    "sizes\n"
    "only the checks run.\n";

void print(const Measurements& measured) {
  for (const Ceiling& ceiling : measured.ceilings) {
    std::printf("memory  R%dW%d %38.0f GB/s\n", ceiling.reads, ceiling.writes,
                1e-9 * ceiling.bytes / ceiling.seconds);
  }
  std::printf("launch  %.2f us by the host, %.2f us from kernel to kernel\n",
              1e6 * measured.submit_seconds, 1e6 * measured.gap_seconds);
  for (const TimedCase& timed : measured.cases) {
    if (!timed.failed.empty()) {
      std::printf("FAILED  %s: %s\n", timed.name.c_str(), timed.failed.c_str());
      continue;
    }
    std::printf("time    %-34s %9.1f us %6.0f GB/s", timed.name.c_str(), 1e6 * timed.seconds.median,
                1e-9 * timed.bytes / timed.seconds.median);
    if (timed.unfused_bytes > 0) {
      std::printf(
          "  unfused %9.1f us: %.2f times, %.2f by bytes", 1e6 * timed.unfused_seconds.median,
          timed.unfused_seconds.median / timed.seconds.median, timed.unfused_bytes / timed.bytes);
    }
    std::printf("\n");
  }
}

int run(const std::map<std::string, std::string>& options) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    std::printf("No GPU was used, nothing was measured: %s\n", cudaGetErrorString(error));
    return 3;
  }
  cudaDeviceProp properties{};
  require(cuda_status(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties"));
  const auto text = [&](const char* key) {
    const auto found = options.find(key);
    return found == options.end() ? std::string() : found->second;
  };
  const bool large = text("--sizes") != "small";
  Checks checks(large);
  check_all(checks);
  int failed = 0;
  for (const CheckedCase& checked : checks.cases()) {
    if (checked.passed) continue;
    ++failed;
    std::printf("FAILED  %s: %s\n", checked.name.c_str(), checked.detail.c_str());
  }
  std::printf("%zu cases, %d failed\n", checks.cases().size(), failed);
  if (!large) return failed == 0 ? 0 : 1;
  const Measurements measured = measure_kernels(true);
  print(measured);
  if (!text("--out").empty()) {
    std::ofstream file(text("--out"));
    file << as_json(measured, checks, properties.name, text("--date"), text("--commit"), false);
    if (!file.flush()) {
      std::printf("FAILED  %s cannot be written\n", text("--out").c_str());
      return 1;
    }
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace syncline::kernels

int main(int count, char** arguments) {
  std::map<std::string, std::string> options;
  for (int i = 1; i < count; i += 2) {
    const std::string key = arguments[i];
    const bool known = key == "--out" || key == "--date" || key == "--commit" || key == "--sizes";
    if (!known || i + 1 == count) {
      std::fputs(syncline::kernels::kHelp, key == "--help" ? stdout : stderr);
      return key == "--help" ? 0 : 2;
    }
    options[key] = arguments[i + 1];
  }
  return syncline::kernels::run(options);
}
