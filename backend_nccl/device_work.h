// One rank's memory on the GPU for one plan, and the execution of the plan's actions on it
// (backend_nccl/memory_plan.h).
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backend_nccl/communicators.h"
#include "backend_nccl/device.h"
#include "backend_nccl/memory_plan.h"
#include "core/run/outer_step.h"
#include "core/run/payload.h"
#include "kernels/dgc_step.h"
#include "kernels/sparse_apply.h"

namespace syncline::nccl_backend {

class DeviceWork {
 public:
  // Allocates and loads the block of memory. All arguments must outlive the object, and its work on
  // the device must have ended before it is destroyed.
  DeviceWork(const plan::Plan& plan, const Workload& workload, int rank,
             const run::RankGradients& input, Communicators& communicators);
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  // Resets the block of memory to the state at the beginning of a run. Requires an idle device.
  void load();
  // Launches the operation's work on memory. `communicator`: index in the launch order.
  void carry_out(plan::OpId op, int communicator, cudaStream_t stream);
  // Returns roughly the number of commands that carry_out() puts on the stream.
  int commands(plan::OpId op) const;
  // Returns the gradients after the run. Throws DeviceError if the host's part of the work failed.
  // Requires an idle device.
  run::RankGradients result(const run::RankGradients& input) const;

 private:
  // A bucket that the host encodes, decodes or averages.
  struct Staged {
    const run::Payload* layout = nullptr;
    std::vector<run::PayloadSlice> slices[2];  // gradients to read, gradients to write
    CudaMemory gradients;
    CudaMemory payload;
    run::RankGradients host;
    std::size_t behind = 0;          // the collective after which the host works
    DeviceWork* averaged = nullptr;  // owner of the parameters to average; null: none
    const plan::Bucket* bucket = nullptr;
    bool under_way = false;  // sent and not yet applied
    std::atomic<bool> failed{false};
  };

  // A bucket of a sparse codec: momentum correction, selection and packing, and the sum over all
  // ranks.
  struct Sparse {
    int rank = 0;
    int ranks = 1;
    std::int64_t kept = 0;
    kernels::DgcPlan step;
    kernels::SparsePlan sum;
    CudaMemory step_workspace, sum_workspace, report, rejected;
  };

  void make_staged(const plan::Plan& plan);
  void make_sparse(const plan::Plan& plan, int rank);
  std::byte* at(const Region& region) const { return block_.data() + region.at; }
  void encode(int bucket, cudaStream_t stream) const;
  void decode(int bucket, cudaStream_t stream) const;
  void blocks(const Action& action, cudaStream_t stream) const;
  void factors(const Action& action, cudaStream_t stream) const;
  void move(const Action& action, cudaStream_t stream) const;
  void stage_on_host(const Action& action, cudaStream_t stream);
  void cross(const Staged& bucket, int which, cudaMemcpyKind direction, cudaStream_t stream) const;
  template <void (*kWork)(Staged&)>
  static void CUDART_CB on_host(void* bucket);
  static void fill_on_host(Staged& bucket);
  static void work_on_host(Staged& bucket);
  static void read_on_host(Staged& bucket);
  static void average_on_host(Staged& bucket);

  const plan::Plan& plan_;
  const run::RankGradients& input_;
  Communicators& communicators_;
  MemoryPlan memory_;
  CudaMemory block_;
  std::vector<CudaMemory> products_;  // per bucket: workspace for partial sums of products
  // If the host averages: the parameters, the values sent for them, and the optimizer.
  run::RankGradients parameters_, sent_;
  std::optional<run::OuterStep> outer_;
  std::mutex averaging_;
  std::vector<int> tensors_;                     // per bucket: its first tensor
  std::vector<std::unique_ptr<Staged>> staged_;  // per bucket; null: never staged
  std::vector<std::unique_ptr<Sparse>> sparse_;  // per bucket; null: no sparse codec
};

}  // namespace syncline::nccl_backend
