// The functions of nccl.h that this folder calls. Each loads NCCL on first use and calls the
// library's own function. They throw DeviceError if it is missing.
#include <nccl.h>

#include "backend_nccl/device.h"

namespace {

// Returns the library's own function that is declared as `declared`.
template <typename Function>
Function* own(Function* /*declared*/, const char* name) {
  // The version of the header that this was built with.
  static void* const kLibrary =
      syncline::nccl_backend::load_library("libnccl.so." + std::to_string(NCCL_MAJOR));
  Function* function = nullptr;
  syncline::nccl_backend::find_function(kLibrary, name, function);
  return function;
}

}  // namespace

// Each function calls the one of its name in the library that was opened.
ncclResult_t ncclGetVersion(int* version) {
  static const auto kOwn = own(ncclGetVersion, "ncclGetVersion");
  return kOwn(version);
}

const char* ncclGetErrorString(ncclResult_t result) {
  static const auto kOwn = own(ncclGetErrorString, "ncclGetErrorString");
  return kOwn(result);
}

const char* ncclGetLastError(ncclComm_t communicator) {
  static const auto kOwn = own(ncclGetLastError, "ncclGetLastError");
  return kOwn(communicator);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static const auto kOwn = own(ncclGetUniqueId, "ncclGetUniqueId");
  return kOwn(id);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  static const auto kOwn = own(ncclCommInitRankConfig, "ncclCommInitRankConfig");
  return kOwn(communicator, ranks, id, rank, config);
}

ncclResult_t ncclCommSplit(ncclComm_t communicator, int color, int key, ncclComm_t* made,
                           ncclConfig_t* config) {
  static const auto kOwn = own(ncclCommSplit, "ncclCommSplit");
  return kOwn(communicator, color, key, made, config);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  static const auto kOwn = own(ncclCommGetAsyncError, "ncclCommGetAsyncError");
  return kOwn(communicator, state);
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  static const auto kOwn = own(ncclCommFinalize, "ncclCommFinalize");
  return kOwn(communicator);
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  static const auto kOwn = own(ncclCommDestroy, "ncclCommDestroy");
  return kOwn(communicator);
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  static const auto kOwn = own(ncclCommAbort, "ncclCommAbort");
  return kOwn(communicator);
}

ncclResult_t ncclGroupStart() {
  static const auto kOwn = own(ncclGroupStart, "ncclGroupStart");
  return kOwn();
}

ncclResult_t ncclGroupEnd() {
  static const auto kOwn = own(ncclGroupEnd, "ncclGroupEnd");
  return kOwn();
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
  static const auto kOwn = own(ncclAllReduce, "ncclAllReduce");
  return kOwn(send, receive, count, type, op, communicator, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
  static const auto kOwn = own(ncclReduceScatter, "ncclReduceScatter");
  return kOwn(send, receive, count, type, op, communicator, stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  static const auto kOwn = own(ncclAllGather, "ncclAllGather");
  return kOwn(send, receive, count, type, communicator, stream);
}

ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t communicator, cudaStream_t stream) {
  static const auto kOwn = own(ncclReduce, "ncclReduce");
  return kOwn(send, receive, count, type, op, root, communicator, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type,
                           int root, ncclComm_t communicator, cudaStream_t stream) {
  static const auto kOwn = own(ncclBroadcast, "ncclBroadcast");
  return kOwn(send, receive, count, type, root, communicator, stream);
}

ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  static const auto kOwn = own(ncclSend, "ncclSend");
  return kOwn(send, count, type, peer, communicator, stream);
}

ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  static const auto kOwn = own(ncclRecv, "ncclRecv");
  return kOwn(receive, count, type, peer, communicator, stream);
}
