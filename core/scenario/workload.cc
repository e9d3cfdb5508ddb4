#include "core/scenario/workload.h"

#include <algorithm>
#include <numeric>

namespace syncline {

std::vector<int> registered_order(const std::vector<Tensor>& tensors) {
  std::vector<int> order(tensors.size());
  std::iota(order.rbegin(), order.rend(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return tensors[static_cast<std::size_t>(a)].registered <
           tensors[static_cast<std::size_t>(b)].registered;
  });
  return order;
}

Seconds backward_time(const Workload& workload) {
  return std::accumulate(workload.tensors.begin(), workload.tensors.end(), Seconds{0},
                         [](Seconds sum, const Tensor& tensor) { return sum + tensor.backward; });
}

Workload stretched(Workload workload, double factor) {
  workload.forward *= factor;
  workload.update *= factor;
  for (auto& tensor : workload.tensors) tensor.backward *= factor;
  return workload;
}

std::vector<Seconds> forward_times(const Workload& workload) {
  std::vector<Seconds> times;
  const auto share_by = [&](auto weight) {
    double all = 0;
    for (const auto& tensor : workload.tensors) all += weight(tensor);
    times.clear();
    for (const auto& tensor : workload.tensors) {
      times.push_back(all > 0 ? workload.forward * weight(tensor) / all : 0);
    }
    return all > 0;
  };
  if (share_by([](const Tensor& tensor) { return tensor.forward; })) return times;
  if (share_by([](const Tensor& tensor) { return tensor.backward; })) return times;
  share_by([](const Tensor& tensor) { return static_cast<double>(tensor.elements); });
  return times;
}

Seconds earlier_passes(const Workload& workload) {
  return static_cast<double>(workload.micro_batches - 1) *
         (workload.forward + backward_time(workload));
}

Bytes gradient_bytes(const Workload& workload) {
  return std::accumulate(workload.tensors.begin(), workload.tensors.end(), Bytes{0},
                         [](Bytes sum, const Tensor& tensor) { return sum + tensor.bytes(); });
}

}  // namespace syncline
