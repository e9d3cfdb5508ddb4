// What the executor holds of CUDA, each with an owner: streams, events, memory. And errors: every
// call is checked; a failed one is a DeviceError that names it.
#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>

#include <cstddef>
#include <string>

#include "core/base/error.h"
#include "kernels/host_device.h"

namespace syncline::nccl_backend {

// A failure of this rank's own device or of NCCL on it; who catches it adds where it was.
struct DeviceError : MachineError {
  using MachineError::MachineError;
};

void check_cuda(cudaError_t error, const std::string& call);
void check_kernel(const kernels::Status& status);
// ncclInProgress is not a failure: the communicator reports the outcome later.
void check_nccl(ncclResult_t result, const std::string& call, ncclComm_t communicator = nullptr);

class CudaStream {
 public:
  // Of the highest priority, or the lowest.
  explicit CudaStream(bool urgent);
  ~CudaStream();
  CudaStream(CudaStream&& other) noexcept;
  CudaStream& operator=(CudaStream&&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaEvent {
 public:
  explicit CudaEvent(bool timed);
  ~CudaEvent();
  CudaEvent(CudaEvent&& other) noexcept;
  CudaEvent& operator=(CudaEvent&&) = delete;
  cudaEvent_t get() const { return event_; }

  void record(cudaStream_t stream) const;
  // While the stream is captured: the graph records it, for the host to read.
  void record_outside(cudaStream_t stream) const;
  // Returns whether all that was before it is done.
  bool passed() const;

 private:
  cudaEvent_t event_ = nullptr;
};

// Seconds from one timed event to another, both passed.
double seconds_between(const CudaEvent& from, const CudaEvent& to);

// Memory on the device, or of the host where the device can reach it.
class CudaMemory {
 public:
  enum class Where { kDevice, kHost };
  CudaMemory() = default;
  CudaMemory(Where where, std::size_t bytes);
  ~CudaMemory();
  CudaMemory(CudaMemory&& other) noexcept;
  CudaMemory& operator=(CudaMemory&& other) noexcept;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  Where where_ = Where::kDevice;
  void* data_ = nullptr;
};

// Libraries of CUDA's that are loaded when they are asked for, so that the program runs where there
// is neither CUDA nor NCCL.

// Returns the library of that name ("libnccl.so.2"): where the loader finds it, else where the
// build did. It stays loaded. Throws DeviceError with the loader's own words.
void* load_library(const std::string& name);

// Its function of that name. Throws DeviceError where it has none.
template <typename Function>
void find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw DeviceError(std::string("dlsym ") + name + ": " + dlerror());
}

}  // namespace syncline::nccl_backend
