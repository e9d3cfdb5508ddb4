// NCCL's communicators of one rank: one over all ranks, and one split from it for each stream and
// grouping (CommunicatorKey), made once. Also waits for other ranks without hanging.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backend_nccl/launch_order.h"
#include "backend_nccl/memory_plan.h"
#include "backend_nccl/nccl_executor.h"
#include "live/control_channel.h"
#include "live/socket.h"

namespace syncline::nccl_backend {

// Limits a wait for other ranks. look() throws MachineError if a rank has failed, and DeviceError
// if note_progress() was not called for as long as ranks may be silent.
class WaitLimit {
 public:
  explicit WaitLimit(const live::ControlChannel& channel, std::chrono::milliseconds more = {});
  void note_progress() { since_ = live::LiveClock::now(); }
  void look(const std::string& waiting_for) const;

 private:
  const live::ControlChannel& channel_;
  std::chrono::milliseconds most_;
  live::LiveClock::time_point since_ = live::LiveClock::now();
};

// The GPU of this rank, and how many ranks share one. choose_device() is a collective call.
struct DevicePlace {
  int device = 0;
  std::string name;         // the GPU's name
  int ranks_on_device = 1;  // the largest number over all GPUs
  std::string summary;      // GPUs of all ranks: "4 x NVIDIA H200"
};
DevicePlace choose_device(live::ControlChannel& channel, int wanted);

// Sets NCCL's environment; variables that the user has set stay. Requires that NCCL was not called
// yet. Several communicators are active at once, so NCCL orders kernels as the host launches them.
// `shared`: ranks share a GPU, which NCCL refuses unless each claims to be its own machine.
void set_environment(const live::ControlChannel& channel, bool shared);

class Communicators {
 public:
  // Collective, like all calls but abort(). The channel must outlive the object.
  Communicators(live::ControlChannel& channel, const NcclSettings& settings, bool shared_device);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  // Makes the missing communicators, in order. exchange()'s `used` then indexes `keys`.
  void prepare(const std::vector<CommunicatorKey>& keys);
  // Launches the calls of one action on the stream.
  void exchange(int used, const std::vector<CollectiveCall>& calls, std::byte* block,
                cudaStream_t stream);
  // Throws DeviceError if a communicator has failed meanwhile.
  void check() const;
  // Ends all work under way on the device. The communicators cannot be used afterwards.
  void abort() noexcept;

 private:
  struct Made {
    CommunicatorKey key;
    ncclComm_t communicator = nullptr;  // null if this rank is in no group
  };

  ncclConfig_t config() const;
  void settle(ncclComm_t communicator, const std::string& call) const;
  ncclComm_t split(const CommunicatorKey& key);
  void leave() noexcept;

  live::ControlChannel& channel_;
  const NcclSettings settings_;
  int max_ctas_ = 0;
  ncclComm_t world_ = nullptr;
  std::vector<Made> made_;
  std::vector<std::size_t> in_use_;  // indices of made_, by key of the last prepare()
  bool aborted_ = false;
};

}  // namespace syncline::nccl_backend
