// As much of CUDA's runtime and of NCCL as the NCCL backend calls, in host memory, for tests where
// there is no GPU: streams are threads that carry out what was put on them in order, events are
// events, collectives wait for their members. Everything that may be asynchronous is. Ranks are
// threads of one process, each with a device of its own. Kernels are the real ones, compiled
// without nvcc and run block after block.
//
// Strict where the real ones are lenient or undefined: waiting for an event that nobody recorded is
// an error, so is a collective that its members do not agree on.
#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/run/payload.h"
#include "kernels/launch.h"

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void broken(const char* what) {
  std::cerr << "emulated GPU: " << what << std::endl;
  std::abort();
}

std::set<struct Stream*>& own_streams() {
  thread_local std::set<Stream*> streams;
  return streams;
}

struct Stream {
  Stream() : thread([this] { work(); }) { own_streams().insert(this); }
  ~Stream() {
    own_streams().erase(this);
    put([this] { ending = true; });
    thread.join();
  }
  void put(std::function<void()> job) {
    const std::lock_guard lock(mutex);
    jobs.push_back(std::move(job));
    changed.notify_all();
  }
  void drain() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return jobs.empty(); });
  }
  void work() {
    while (!ending) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return !jobs.empty(); });
      auto job = jobs.front();
      lock.unlock();
      job();
      lock.lock();
      jobs.pop_front();
      changed.notify_all();
    }
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  bool ending = false;
  std::thread thread;
};

Stream& of(cudaStream_t stream) {
  if (stream == nullptr) broken("work on the legacy stream");
  return *reinterpret_cast<Stream*>(stream);
}

struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  int recorded = 0;
  int passed = 0;
  Clock::time_point time;
};

Event& of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

// What has been allocated: moves outside of it are errors.
std::mutex memory_mutex;
std::map<std::byte*, std::size_t> memory;

void* allocate(std::size_t bytes) {
  auto* data = static_cast<std::byte*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  std::memset(data, 0xAB, bytes);
  const std::lock_guard lock(memory_mutex);
  memory[data] = bytes;
  return data;
}

void release(void* data) {
  const std::lock_guard lock(memory_mutex);
  if (memory.erase(static_cast<std::byte*>(data)) == 0) broken("memory freed that is none");
  std::free(data);
}

void inside(const void* data, std::size_t bytes) {
  const std::lock_guard lock(memory_mutex);
  auto* at = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  auto it = memory.upper_bound(at);
  if (it == memory.begin()) broken("an address outside of the device's memory");
  --it;
  if (at + bytes > it->first + it->second) broken("a range that ends outside of the memory");
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
thread_local int current_device = 0;
cudaError_t cudaSetDevice(int device) { return current_device = device, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = current_device, cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "an error"; }
const char* cudaGetErrorString(cudaError_t) { return "of the emulated GPU"; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "emulated GPU");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  for (Stream* stream : own_streams()) stream->drain();
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = reinterpret_cast<cudaStream_t>(new Stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete &of(stream), cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return of(stream).drain(), cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete &of(event), cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  Event& event = of(handle);
  const std::lock_guard lock(event.mutex);
  const int number = ++event.recorded;
  of(stream).put([&event, number] {
    const std::lock_guard inner(event.mutex);
    event.passed = number;
    event.time = Clock::now();
    event.changed.notify_all();
  });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned) {
  Event& event = of(handle);
  const std::lock_guard lock(event.mutex);
  const int number = event.recorded;
  if (number == 0) broken("a stream waits for an event that was never recorded");
  of(stream).put([&event, number] {
    std::unique_lock inner(event.mutex);
    event.changed.wait(inner, [&] { return event.passed >= number; });
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  Event& event = of(handle);
  const std::lock_guard lock(event.mutex);
  return event.passed == event.recorded ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Event& event = of(handle);
  std::unique_lock lock(event.mutex);
  event.changed.wait(lock, [&] { return event.passed == event.recorded; });
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  for (const auto each : {from, to}) {
    const std::lock_guard lock(of(each).mutex);
    if (of(each).recorded == 0 || of(each).passed != of(each).recorded) return cudaErrorNotReady;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(of(to).time - of(from).time).count();
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  return *data = allocate(bytes), cudaSuccess;
}
cudaError_t cudaFree(void* data) { return release(data), cudaSuccess; }
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  return *data = allocate(bytes), cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) { return release(data), cudaSuccess; }
cudaError_t cudaMemset(void* data, int value, std::size_t bytes) {
  inside(data, bytes);
  return std::memset(data, value, bytes), cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
  inside(data, bytes);
  of(stream).put([=] { std::memset(data, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  inside(kind == cudaMemcpyHostToDevice ? to : from, bytes);
  return std::memcpy(to, from, bytes), cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  inside(to, bytes);
  inside(from, bytes);
  of(stream).put([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t work, void* data) {
  of(stream).put([=] { work(data); });
  return cudaSuccess;
}

// Graphs are not emulated.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t, cudaStream_t, unsigned) {
  return cudaErrorNotSupported;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return cudaErrorNotSupported;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*) { return cudaErrorNotSupported; }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long) {
  return cudaErrorNotSupported;
}
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaErrorNotSupported; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaErrorNotSupported; }
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaErrorNotSupported; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return cudaErrorNotSupported; }

namespace syncline::kernels {

namespace {
std::mutex launched_mutex;
std::set<std::string> launched;
}  // namespace

std::set<std::string> launched_kernels();
std::set<std::string> launched_kernels() {
  const std::lock_guard lock(launched_mutex);
  return std::exchange(launched, {});
}

// In the stream's turn, one block after the other; at once without a stream, as checks launch.
void launch_on_host(const char* kernel, LaunchGrid grid, cudaStream_t stream,
                    std::function<void()> block) {
  {
    const std::lock_guard lock(launched_mutex);
    if (std::string_view(kernel).ends_with("_kernel")) launched.insert(kernel);  // a product is not
  }
  const auto run = [grid, block = std::move(block)] {
    gridDim = grid;
    for (unsigned number = 0; number < grid.x * grid.y; ++number) {
      blockIdx = {number % grid.x, number / grid.x};
      block();
    }
  };
  stream == nullptr ? run() : of(stream).put(run);
}

Status clear(void* data, std::size_t bytes, cudaStream_t stream) {
  if (stream == nullptr) return std::memset(data, 0, bytes), Status{};
  inside(data, bytes);
  of(stream).put([=] { std::memset(data, 0, bytes); });
  return {};
}

}  // namespace syncline::kernels

// NCCL. Communicators never block: each call is under way until it has been asked about a few
// times.
namespace {

struct Call {
  int kind = 0;
  int root = 0;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  std::vector<const void*> sends;
  std::vector<void*> receives;
  int come = 0;
  bool done = false;
};

struct Group {
  explicit Group(int size_of_it) : size(size_of_it) {}
  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  int joined = 0;
  bool aborted = false;
  std::map<int, Call> calls;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> messages;  // by from and to
  struct Split {
    std::map<int, std::pair<int, int>> wishes;  // by rank: color, key
    std::map<int, std::shared_ptr<Group>> made;
  };
  std::map<int, Split> splits;
};

std::mutex worlds_mutex;
std::map<std::string, std::shared_ptr<Group>> worlds;

syncline::DType format_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
      return syncline::DType::kFp16;
    case ncclBfloat16:
      return syncline::DType::kBf16;
    case ncclFloat64:
      return syncline::DType::kFp64;
    default:
      return syncline::DType::kFp32;
  }
}

std::size_t bytes_of(ncclDataType_t type) {
  return type == ncclUint8 ? 1 : static_cast<std::size_t>(syncline::size_of(format_of(type)));
}

enum { kAllReduceCall, kReduceScatterCall, kAllGatherCall, kReduceCall, kBroadcastCall };

// The last member that comes does it for all.
void perform(const Call& call) {
  const std::size_t bytes = call.count * bytes_of(call.type);
  const std::size_t size = call.sends.size();
  const bool scatters = call.kind == kReduceScatterCall;
  const std::size_t sent = scatters ? size * bytes : bytes;
  std::vector<std::vector<std::byte>> inputs;
  for (const void* send : call.sends) {
    const auto* from = static_cast<const std::byte*>(send);
    inputs.emplace_back(from, from + sent);
  }
  if (call.kind == kAllGatherCall || call.kind == kBroadcastCall) {
    for (void* receive : call.receives) {
      auto* to = static_cast<std::byte*>(receive);
      if (call.kind == kBroadcastCall) {
        std::memcpy(to, inputs[static_cast<std::size_t>(call.root)].data(), bytes);
        continue;
      }
      for (std::size_t m = 0; m < size; ++m) std::memcpy(to + m * bytes, inputs[m].data(), bytes);
    }
    return;
  }
  if (call.type == ncclUint8) broken("a sum of bytes");
  const auto format = format_of(call.type);
  const auto count = static_cast<std::int64_t>(sent / bytes_of(call.type));
  std::vector<float> sum(static_cast<std::size_t>(count), 0.0F);
  std::vector<float> numbers(sum.size());
  for (const auto& input : inputs) {
    syncline::run::decode_numbers(format, input.data(), count, numbers.data());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += numbers[i];
  }
  std::vector<std::byte> result(sent);
  syncline::run::encode_numbers(format, sum.data(), count, result.data());
  for (std::size_t m = 0; m < size; ++m) {
    if (call.kind == kReduceCall && static_cast<int>(m) != call.root) continue;
    std::memcpy(call.receives[m], result.data() + (scatters ? m * bytes : 0), bytes);
  }
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Group> group;
  int rank = 0;
  int calls = 0;
  int splits = 0;
  int questions = 3;  // until it says that the last call is done
  ncclComm** child = nullptr;
  bool finalized = false;
};

namespace {

// Calls of one group settle together.
thread_local bool in_group = false;

void begin_call(ncclComm* communicator) {
  if (communicator->questions > 0 && !in_group) broken("a call before the last one has settled");
  communicator->questions = 2;
}

ncclResult_t put_call(int kind, const void* send, void* receive, std::size_t count,
                      ncclDataType_t type, int root, ncclComm* communicator, cudaStream_t stream) {
  begin_call(communicator);
  auto group = communicator->group;
  const auto rank = static_cast<std::size_t>(communicator->rank);
  const int number = communicator->calls++;
  const std::size_t bytes = count * bytes_of(type);
  const auto size = static_cast<std::size_t>(group->size);
  inside(send, kind == kReduceScatterCall ? size * bytes : bytes);
  inside(receive, kind == kAllGatherCall ? size * bytes : bytes);
  of(stream).put([=] {
    std::unique_lock lock(group->mutex);
    Call& call = group->calls[number];
    if (call.come == 0) {
      call.kind = kind;
      call.root = root;
      call.count = count;
      call.type = type;
      call.sends.resize(size);
      call.receives.resize(size);
    }
    if (call.kind != kind || call.count != count || call.type != type || call.root != root) {
      broken("members of a communicator make different calls");
    }
    call.sends[rank] = send;
    call.receives[rank] = receive;
    if (++call.come == group->size) {
      perform(call);
      call.done = true;
      group->changed.notify_all();
    }
    group->changed.wait(lock, [&] { return call.done || group->aborted; });
  });
  return ncclInProgress;
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t) { return "an error"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetVersion(int* version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int count = 0;
  const std::lock_guard lock(worlds_mutex);
  std::memset(id, 0, sizeof *id);
  std::strcpy(id->internal, std::to_string(++count).c_str());
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0) broken("a communicator that blocks");
  const std::lock_guard lock(worlds_mutex);
  auto& world = worlds[id.internal];
  if (!world) world = std::make_shared<Group>(ranks);
  const std::lock_guard inner(world->mutex);
  ++world->joined;
  *communicator = new ncclComm{world, rank};
  return ncclInProgress;
}
ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* child,
                           ncclConfig_t*) {
  if (parent->questions > 0) broken("a split before the last call has settled");
  parent->questions = 2;
  parent->child = child;
  *child = nullptr;
  const std::lock_guard lock(parent->group->mutex);
  parent->group->splits[parent->splits++].wishes[parent->rank] = {color, key};
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  Group& group = *communicator->group;
  const std::lock_guard lock(group.mutex);
  *state = ncclInProgress;
  if (group.joined < group.size) return ncclSuccess;
  if (communicator->child != nullptr) {
    auto& split = group.splits[communicator->splits - 1];
    if (static_cast<int>(split.wishes.size()) < group.size) return ncclSuccess;
    const auto [color, key] = split.wishes[communicator->rank];
    if (color != NCCL_SPLIT_NOCOLOR) {
      int size = 0;
      int place = 0;
      for (const auto& [rank, wish] : split.wishes) {
        if (wish.first != color) continue;
        ++size;
        if (wish.second < key) ++place;
      }
      auto& made = split.made[color];
      if (!made) made = std::make_shared<Group>(size);
      const std::lock_guard inner(made->mutex);
      ++made->joined;
      *communicator->child = new ncclComm{made, place};
    }
    communicator->child = nullptr;
  }
  if (communicator->questions > 0) {
    --communicator->questions;
    return ncclSuccess;
  }
  *state = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  communicator->finalized = true;
  communicator->questions = 2;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  if (!communicator->finalized || communicator->questions > 0) broken("destroyed too early");
  return delete communicator, ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  {
    const std::lock_guard lock(communicator->group->mutex);
    communicator->group->aborted = true;
    communicator->group->changed.notify_all();
  }
  return delete communicator, ncclSuccess;
}
ncclResult_t ncclGroupStart() { return in_group = true, ncclSuccess; }
ncclResult_t ncclGroupEnd() { return in_group = false, ncclSuccess; }
ncclResult_t ncclSend(const void* send, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  begin_call(communicator);
  const std::size_t bytes = count * bytes_of(type);
  inside(send, bytes);
  of(stream).put([=, group = communicator->group, rank = communicator->rank] {
    const auto* from = static_cast<const std::byte*>(send);
    const std::lock_guard lock(group->mutex);
    group->messages[{rank, peer}].emplace_back(from, from + bytes);
    group->changed.notify_all();
  });
  return ncclInProgress;
}
ncclResult_t ncclRecv(void* receive, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  begin_call(communicator);
  const std::size_t bytes = count * bytes_of(type);
  inside(receive, bytes);
  of(stream).put([=, group = communicator->group, rank = communicator->rank] {
    std::unique_lock lock(group->mutex);
    auto& waiting = group->messages[{peer, rank}];
    group->changed.wait(lock, [&] { return !waiting.empty() || group->aborted; });
    if (waiting.empty()) return;
    if (waiting.front().size() != bytes) broken("a message of another size than is received");
    std::memcpy(receive, waiting.front().data(), bytes);
    waiting.pop_front();
  });
  return ncclInProgress;
}
ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t communicator, cudaStream_t stream) {
  return put_call(kAllReduceCall, send, receive, count, type, 0, communicator, stream);
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t, ncclComm_t communicator,
                               cudaStream_t stream) {
  return put_call(kReduceScatterCall, send, receive, count, type, 0, communicator, stream);
}
ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  return put_call(kAllGatherCall, send, receive, count, type, 0, communicator, stream);
}
ncclResult_t ncclReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t, int root, ncclComm_t communicator, cudaStream_t stream) {
  return put_call(kReduceCall, send, receive, count, type, root, communicator, stream);
}
ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t communicator, cudaStream_t stream) {
  return put_call(kBroadcastCall, send, receive, count, type, root, communicator, stream);
}
