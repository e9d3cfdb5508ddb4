// Owners of the executor's CUDA objects: streams, events, memory. Every call is checked; a failed
// one throws a DeviceError that names it.
#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>

#include <cstddef>
#include <string>

#include "core/base/error.h"
#include "kernels/host_device.h"

namespace syncline::nccl_backend {

// A failure of this rank's own device or of NCCL on it; its catcher adds the operation.
struct DeviceError : MachineError {
  using MachineError::MachineError;
};

void check_cuda(cudaError_t error, const std::string& call);
void check_kernel(const kernels::Status& status);
// Throws DeviceError if the call failed. ncclInProgress is no failure: the outcome comes later.
void check_nccl(ncclResult_t result, const std::string& call, ncclComm_t communicator = nullptr);

class CudaStream {
 public:
  // Creates a stream of the highest priority (`urgent`) or the lowest.
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
  // Records during a capture: the graph records the event, and the host can read it.
  void record_outside(cudaStream_t stream) const;
  // Returns true if all work before the event is done.
  bool is_done() const;

 private:
  cudaEvent_t event_ = nullptr;
};

// Returns seconds from one timed event to another. Requires that both have passed.
double seconds_between(const CudaEvent& from, const CudaEvent& to);

// Memory on the device, or memory of the host that the device can reach.
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

// CUDA's libraries are loaded on first use, so that the program also runs without CUDA and NCCL.

// Returns the library `name` ("libnccl.so.2") from the loader's folders or else the build's. It
// stays loaded. Throws DeviceError with the loader's message.
void* load_library(const std::string& name);

// Sets `function` to the library's function of that name. Throws DeviceError if there is none.
template <typename Function>
void find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw DeviceError(std::string("dlsym ") + name + ": " + dlerror());
}

}  // namespace syncline::nccl_backend
