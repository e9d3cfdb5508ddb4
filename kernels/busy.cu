#include "kernels/busy.h"

#include "kernels/busy_pace.h"
#include "kernels/cuda_status.cuh"
#include "kernels/vector_access.h"

namespace syncline::kernels {
namespace {

__device__ long long now_ns() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// One thread looks at the clock and then sleeps for part of a microsecond, so that looking takes
// nothing from others; the rest of the block waits at the barrier, holding its place.
__global__ void occupy_kernel(long long nanoseconds) {
  if (threadIdx.x == 0) {
    const long long start = now_ns();
    while (now_ns() - start < nanoseconds) __nanosleep(200);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kBlockThreads)
    move_bytes_kernel(unsigned char* buffer, std::int64_t bytes, double bytes_per_second,
                      long long nanoseconds, unsigned long long* moved) {
  __shared__ long long elapsed;
  constexpr int kWords = static_cast<int>(kPieceBytes) / kBlockThreads / 16;
  const int thread = static_cast<int>(threadIdx.x);
  const int blocks = static_cast<int>(gridDim.x);
  long long start = 0;
  if (thread == 0) start = now_ns();
  std::int64_t pieces = 0;
  for (;;) {
    if (thread == 0) elapsed = now_ns() - start;
    __syncthreads();
    const long long mine = elapsed;
    __syncthreads();  // all have read it before it changes
    if (mine >= nanoseconds) break;
    if (static_cast<double>(pieces) + 1 >
        pieces_due(bytes_per_second, blocks, static_cast<double>(mine))) {
      __nanosleep(100);
      continue;
    }
    const std::int64_t offset = piece_offset(bytes, blocks, static_cast<int>(blockIdx.x), pieces);
    auto* words = reinterpret_cast<Word<16>*>(buffer + offset) + thread;
    Word<16> held[kWords];
    SYNCLINE_UNROLL
    for (int i = 0; i < kWords; ++i) held[i] = load_word<Reuse::kStream>(words + i * kBlockThreads);
    SYNCLINE_UNROLL
    for (int i = 0; i < kWords; ++i) {
      store_word<Reuse::kStream>(words + i * kBlockThreads, held[i]);
    }
    ++pieces;
  }
  if (thread == 0 && moved != nullptr) {
    atomicAdd(moved, static_cast<unsigned long long>(pieces * 2 * kPieceBytes));
  }
}

long long in_nanoseconds(double seconds) { return static_cast<long long>(seconds * 1e9); }

}  // namespace

Status occupy(const Occupation& occupation, cudaStream_t stream) {
  if (auto status = check_occupation(occupation); !status.ok()) return status;
  if (occupation.blocks == 0 || occupation.seconds == 0) return {};
  int device = 0;
  int shared = 0;
  if (occupation.exclusive) {
    auto status = cuda_status(cudaGetDevice(&device), "cudaGetDevice");
    if (!status.ok()) return status;
    status = cuda_status(
        cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "cudaDeviceGetAttribute");
    if (!status.ok()) return status;
    status = cuda_status(
        cudaFuncSetAttribute(occupy_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
        "cudaFuncSetAttribute(occupy_kernel)");
    if (!status.ok()) return status;
  }
  occupy_kernel<<<static_cast<unsigned>(occupation.blocks),
                  static_cast<unsigned>(occupation.threads), static_cast<std::size_t>(shared),
                  stream>>>(in_nanoseconds(occupation.seconds));
  return launch_status("occupy_kernel");
}

Status move_bytes(const Traffic& traffic, cudaStream_t stream) {
  if (auto status = check_traffic(traffic); !status.ok()) return status;
  if (traffic.seconds == 0) return {};
  move_bytes_kernel<<<static_cast<unsigned>(traffic.blocks), kBlockThreads, 0, stream>>>(
      static_cast<unsigned char*>(traffic.buffer), traffic.buffer_bytes, traffic.bytes_per_second,
      in_nanoseconds(traffic.seconds), traffic.moved);
  return launch_status("move_bytes_kernel");
}

}  // namespace syncline::kernels
