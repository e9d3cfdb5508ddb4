// One rank's memory on the GPU for one plan, and what carries its actions out there
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
  // Allocates and loads. All of it must outlive the object, and what is under way on the device
  // must have ended before that ends.
  DeviceWork(const plan::Plan& plan, const Workload& workload, int rank,
             const run::RankGradients& input, Communicators& communicators);
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  // Puts the block of memory back to where a run begins. Nothing may be under way.
  void load();
  // Launches what the operation does with memory. `communicator`: of the launch order.
  void carry_out(plan::OpId op, int communicator, cudaStream_t stream);
  // Returns how many commands that puts on the stream, about.
  int commands(plan::OpId op) const;
  // What the exchange left. Nothing may be under way. Throws DeviceError where the host's part of
  // the work failed.
  run::RankGradients result(const run::RankGradients& input) const;

 private:
  // A bucket on its way over the host.
  struct Staged {
    const run::Payload* layout = nullptr;
    std::vector<run::PayloadSlice> slices[2];  // to read from the gradients, to write to them
    CudaMemory gradients;
    CudaMemory payload;
    run::RankGradients host;
    std::size_t behind = 0;          // the collective that the host works behind
    DeviceWork* averaged = nullptr;  // whose parameters it averages, if it does
    const plan::Bucket* bucket = nullptr;
    bool under_way = false;  // sent and not yet applied
    std::atomic<bool> failed{false};
  };

  // A bucket of a sparse codec: momentum correction, selection and packing, and the sum of what all
  // ranks have sent.
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
  void staged(const Action& action, cudaStream_t stream);
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
  std::vector<CudaMemory> products_;  // by bucket: what products of matrices add up in
  // Where the host averages: the parameters, what is sent for them, and the optimizer.
  run::RankGradients parameters_, sent_;
  std::optional<run::OuterStep> outer_;
  std::mutex averaging_;
  std::vector<int> tensors_;                     // by bucket: its first
  std::vector<std::unique_ptr<Staged>> staged_;  // by bucket; null: never staged
  std::vector<std::unique_ptr<Sparse>> sparse_;  // by bucket; null: of no sparse codec
};

}  // namespace syncline::nccl_backend
