// NCCL's communicators of one rank: one over all ranks, and those that are split from it for a
// stream and a grouping (CommunicatorKey), each made once. And waiting for others without hanging.
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

// Somebody waits for something that other ranks must do too. Throws MachineError where a rank has
// failed, DeviceError once nothing has gone on for as long as ranks may be silent.
class WaitLimit {
 public:
  explicit WaitLimit(const live::ControlChannel& channel, std::chrono::milliseconds more = {});
  void went_on() { since_ = live::LiveClock::now(); }
  void look(const std::string& waiting_for) const;

 private:
  const live::ControlChannel& channel_;
  std::chrono::milliseconds most_;
  live::LiveClock::time_point since_ = live::LiveClock::now();
};

// Which GPU this rank has, and who has the same. A collective call.
struct DevicePlace {
  int device = 0;
  std::string name;         // of the GPU
  int ranks_on_device = 1;  // the largest number over all GPUs
  std::string summary;      // of all ranks: "4 x NVIDIA H200" or what shares what
};
DevicePlace choose_device(live::ControlChannel& channel, int wanted);

// Before NCCL's first call in this process; what the user has set stays. Communicators are used
// side by side: NCCL is told to order its kernels as the host launches them. `shared`: ranks share
// a GPU, which NCCL refuses unless it takes each for a machine of its own.
void set_environment(const live::ControlChannel& channel, bool shared);

class Communicators {
 public:
  // Collective, as are all of its calls but abort(). The channel must outlive it.
  Communicators(live::ControlChannel& channel, const NcclSettings& settings, bool shared_device);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  // Makes those that are missing, in order. `get(i)` is keys[i] of the last call.
  void prepare(const std::vector<CommunicatorKey>& keys);
  // Hands one action's calls to the device.
  void exchange(int used, const std::vector<CollectiveCall>& calls, std::byte* block,
                cudaStream_t stream);
  // Throws DeviceError where one of them has failed meanwhile.
  void check() const;
  // Ends all work under way on the device; the communicators cannot be used afterwards.
  void abort() noexcept;

 private:
  struct Made {
    CommunicatorKey key;
    ncclComm_t communicator = nullptr;  // null where this rank is in no group
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
  std::vector<std::size_t> in_use_;  // by the last prepare()'s keys
  bool aborted_ = false;
};

}  // namespace syncline::nccl_backend
