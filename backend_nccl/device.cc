#include "backend_nccl/device.h"

#include <utility>

namespace syncline::nccl_backend {

void check_cuda(cudaError_t error, const std::string& call) {
  if (error == cudaSuccess) return;
  throw DeviceError(call + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error));
}

void check_kernel(const kernels::Status& status) {
  if (!status.ok()) throw DeviceError(status.text);
}

void check_nccl(ncclResult_t result, const std::string& call, ncclComm_t communicator) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  std::string text = call + ": " + ncclGetErrorString(result);
  const char* last = ncclGetLastError(communicator);
  if (last != nullptr && *last != '\0') text += ": " + std::string(last);
  throw DeviceError(text);
}

CudaStream::CudaStream(bool urgent) {
  int least = 0;
  int greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest),
             "cudaDeviceGetStreamPriorityRange");
  check_cuda(
      cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, urgent ? greatest : least),
      "cudaStreamCreateWithPriority");
}

CudaStream::CudaStream(CudaStream&& other) noexcept
    : stream_(std::exchange(other.stream_, nullptr)) {}

CudaStream::~CudaStream() {
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

CudaEvent::CudaEvent(bool timed) {
  check_cuda(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming),
             "cudaEventCreateWithFlags");
}

CudaEvent::CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

CudaEvent::~CudaEvent() {
  if (event_ != nullptr) cudaEventDestroy(event_);
}

void CudaEvent::record(cudaStream_t stream) const {
  check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord");
}

void CudaEvent::record_outside(cudaStream_t stream) const {
  check_cuda(cudaEventRecordWithFlags(event_, stream, cudaEventRecordExternal),
             "cudaEventRecordWithFlags");
}

bool CudaEvent::is_done() const {
  const cudaError_t state = cudaEventQuery(event_);
  if (state == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());  // else the next launch looks failed
    return false;
  }
  check_cuda(state, "cudaEventQuery");
  return true;
}

double seconds_between(const CudaEvent& from, const CudaEvent& to) {
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, from.get(), to.get()), "cudaEventElapsedTime");
  constexpr double kMilli = 1e-3;
  return static_cast<double>(milliseconds) * kMilli;
}

CudaMemory::CudaMemory(Where where, std::size_t bytes) : where_(where) {
  if (bytes == 0) return;
  const std::string amount = "(" + std::to_string(bytes) + " bytes)";
  if (where == Where::kDevice) {
    check_cuda(cudaMalloc(&data_, bytes), "cudaMalloc" + amount);
  } else {
    check_cuda(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault), "cudaHostAlloc" + amount);
  }
}

CudaMemory::CudaMemory(CudaMemory&& other) noexcept
    : where_(other.where_), data_(std::exchange(other.data_, nullptr)) {}

CudaMemory& CudaMemory::operator=(CudaMemory&& other) noexcept {
  std::swap(where_, other.where_);
  std::swap(data_, other.data_);
  return *this;
}

CudaMemory::~CudaMemory() {
  if (data_ == nullptr) return;
  where_ == Where::kDevice ? cudaFree(data_) : cudaFreeHost(data_);
}

}  // namespace syncline::nccl_backend
