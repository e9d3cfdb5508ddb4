// Memory and time of the device: the part of the checks that knows CUDA, or its emulation.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>

#include "kernels/check/check.h"
#include "kernels/kernels.h"
#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

#if defined(__CUDACC__)
void require(cudaError_t error, const char* call) { kernels::require(cuda_status(error, call)); }
#endif

struct Arrays {
  float* at[4];
};

// Copies at the memory's speed. The last arrays are written, so that the first ones stay.
template <int kReads, int kWrites>
__global__ void __launch_bounds__(kBlockThreads)
    ceiling_kernel(Arrays arrays, std::int64_t groups, float* sink) {
  KernelBlock block;
  block.each([&](int thread) {
    float sum = 0;
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + thread;
         i < groups; i += stride) {
      float total[4] = {0, 0, 0, 0};
      SYNCLINE_UNROLL
      for (int array = 0; array < kReads; ++array) {
        float read[4];
        load_vector<Reuse::kStream>(arrays.at[array] + 4 * i, read);
        for (int j = 0; j < 4; ++j) total[j] += read[j];
      }
      for (int j = 0; j < 4; ++j) total[j] *= 0.5f;  // written values stay bounded
      SYNCLINE_UNROLL
      for (int array = 0; array < kWrites; ++array) {
        constexpr int kFirst = kReads > kWrites ? kReads - kWrites : 1;
        store_vector<Reuse::kStream>(arrays.at[kFirst + array] + 4 * i, total);
      }
      sum += total[0] + total[1] + total[2] + total[3];
    }
    if (kWrites == 0 && sum == 1.25e-38f) *sink = sum;  // never, which the compiler cannot know
  });
}

__global__ void nothing_kernel() {}

template <int kReads, int kWrites>
Ceiling ceiling_of(std::deque<DeviceArray<float>>& arrays, std::int64_t elements) {
  DeviceArray<float> sink(1);
  const Arrays all{{arrays[0].data(), arrays[1].data(), arrays[2].data(), arrays[3].data()}};
  Ceiling ceiling{kReads, kWrites, 4.0 * (kReads + kWrites) * static_cast<double>(elements), 0};
  const auto kernel = ceiling_kernel<kReads, kWrites>;
  LaunchGrid held;
  require(blocks_for(kernel, elements / 4 / kBlockThreads, &held));
  for (const unsigned blocks : {held.x, 4 * held.x}) {
    std::vector<double> times;
    for (int i = 0; i < 12; ++i) {
      times.push_back(seconds_of([&] {
        require(
            launch("ceiling_kernel", kernel, {blocks}, nullptr, all, elements / 4, sink.data()));
      }));
    }
    const double median = range_of({times.begin() + 2, times.end()}).median;
    if (ceiling.seconds == 0 || median < ceiling.seconds) ceiling.seconds = median;
  }
  return ceiling;
}

}  // namespace

#if defined(__CUDACC__)
void wait_for_gpu() { require(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  require(cudaMalloc(&memory, bytes), "cudaMalloc");
  require(cudaMemset(memory, 0xff, bytes), "cudaMemset");
  return memory;
}

void release(void* memory) { cudaFree(memory); }

void copy(void* to, const void* from, std::size_t bytes) {
  require(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
}

double seconds_of(const std::function<void()>& work) {
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "cudaEventCreate");
  require(cudaEventCreate(&end), "cudaEventCreate");
  require(cudaEventRecord(begin), "cudaEventRecord");
  work();
  require(cudaEventRecord(end), "cudaEventRecord");
  require(cudaEventSynchronize(end), "cudaEventSynchronize");
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return milliseconds * 1e-3;
}
#else
void wait_for_gpu() {}

void* allocate(std::size_t bytes) {
  void* memory = std::aligned_alloc(256, (bytes + 511) / 256 * 256);
  return std::memset(memory, 0xff, bytes);
}

void release(void* memory) { std::free(memory); }

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

double seconds_of(const std::function<void()>& work) {
  const double begin = now();
  work();
  return now() - begin;
}
#endif

void measure_memory(bool large, Measurements& to) {
  const std::int64_t elements = large ? std::int64_t{1} << 28 : 1 << 14;
  std::deque<DeviceArray<float>> arrays;
  const std::vector<float> ones(static_cast<std::size_t>(elements), 1.0f);
  for (int i = 0; i < 4; ++i) arrays.emplace_back(ones);
  to.ceilings = {ceiling_of<1, 0>(arrays, elements), ceiling_of<1, 1>(arrays, elements),
                 ceiling_of<2, 1>(arrays, elements), ceiling_of<3, 2>(arrays, elements),
                 ceiling_of<4, 3>(arrays, elements)};
}

// Measures launches. All kernels after a timer are in the queue before the first of them runs: the
// GPU goes from one to the next without the host.
void measure_launches(Measurements& to) {
  const auto nothing = [] { require(launch("nothing_kernel", nothing_kernel, {}, nullptr)); };
  for (int i = 0; i < 1000; ++i) nothing();
  wait_for_gpu();
  constexpr int kMany = 500;
  const double begin = now();
  for (int i = 0; i < kMany; ++i) nothing();
  to.submit_seconds = (now() - begin) / kMany;
  wait_for_gpu();
  DeviceArray<TimerState> timer(std::vector<TimerState>(1, TimerState{0, 0}));
  const auto behind = [&](int kernels) {
    return seconds_of([&] {
      require(timer_begin(timer.data(), false, nullptr));
      require(timer_end(timer.data(), 5'000'000, nullptr));
      for (int i = 0; i < kernels; ++i) nothing();
    });
  };
  std::vector<double> gaps;
  for (int i = 0; i < 9; ++i) gaps.push_back((behind(kMany) - behind(0)) / kMany);
  to.gap_seconds = std::max(0.0, range_of(gaps).median);
}

}  // namespace syncline::kernels
