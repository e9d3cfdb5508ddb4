#include "core/plan/offload.h"

#include <algorithm>

#include "core/job/overlap.h"
#include "core/plan/fusion.h"

namespace syncline::plan {

std::optional<Workload> with_offload(const Workload& workload, const Cluster& cluster,
                                     const Strategy& strategy) {
  if (strategy.offload == Strategy::Offload::kNone) return std::nullopt;
  const bool states = states_on_host(strategy), parameters = parameters_on_host(strategy);
  const auto passes = static_cast<double>(workload.micro_batches);
  const double exchanges = strategy.each_micro_batch ? passes : 1;
  const double gathers = (strategy.regather ? 2 : 1) * (gathers_each_pass(strategy) ? passes : 1);
  // Parameters come up for each gather, else once after the update; those that the device has
  // updated go down.
  const double crossings = parameters ? gathers + (states ? 0 : 1) : 1;
  const double processors = states ? cluster.gpus_per_node * host_update(cluster.device) : 0;
  Workload offloaded = workload;
  if (states) offloaded.update = 0;
  for (const Tensor& tensor : workload.tensors) {
    const auto elements = static_cast<double>(tensor.elements);
    const double own = elements * static_cast<double>(size_of(tensor.dtype));
    const double sum =
        elements * static_cast<double>(size_of(sum_format(tensor.dtype, strategy.fusion)));
    // A shard of a narrower sum arrives in the parameters' format.
    const double gradients = states ? exchanges * std::max(own, sum) : 0;
    offloaded.update +=
        elements * processors + (gradients + crossings * own) / host_link(cluster.device);
  }
  return offloaded;
}

}  // namespace syncline::plan
