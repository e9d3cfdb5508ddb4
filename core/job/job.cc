#include "core/job.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

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

std::vector<std::vector<int>> separate_tensors(const Workload& workload) {
  std::map<std::pair<int, bool>, std::vector<int>> apart;
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const Tensor& tensor = workload.tensors[t];
    apart[{tensor.part, tensor.expert}].push_back(static_cast<int>(t));
  }
  std::vector<std::vector<int>> lists;
  for (auto& [key, tensors] : apart) lists.push_back(std::move(tensors));
  return lists;
}

Seconds backward_time(const Workload& workload) {
  return std::accumulate(workload.tensors.begin(), workload.tensors.end(), Seconds{0},
                         [](Seconds sum, const Tensor& tensor) { return sum + tensor.backward; });
}

Workload scale_computation(Workload workload, double factor) {
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

bool any_narrow(const Workload& workload) {
  return std::any_of(workload.tensors.begin(), workload.tensors.end(), [](const Tensor& tensor) {
    return size_of(tensor.dtype) < size_of(DType::kFp32);
  });
}

Bytes gradient_bytes(const Workload& workload) {
  return std::accumulate(
      workload.tensors.begin(), workload.tensors.end(), Bytes{0},
      [](Bytes sum, const Tensor& tensor) { return sum + (tensor.frozen ? 0 : tensor.bytes()); });
}

int last_gradient(const Workload& workload) {
  const auto last =
      std::ranges::find(workload.tensors.rbegin(), workload.tensors.rend(), false, &Tensor::frozen);
  return static_cast<int>(workload.tensors.rend() - last) - 1;
}

double traffic(const OperatorList& list, const Operator& op) {
  double bytes = 0;
  for (const auto* side : {&op.inputs, &op.outputs}) {
    for (const auto& operand : *side) {
      const Value& value = list.values[static_cast<std::size_t>(operand.value)];
      bytes += static_cast<double>(operand.passes) * static_cast<double>(value.bytes);
    }
  }
  return bytes;
}

int count_of(const OperatorList& list, const std::string& kind) {
  return static_cast<int>(std::count_if(list.operators.begin(), list.operators.end(),
                                        [&](const Operator& op) { return op.kind == kind; }));
}

double flops_of(const OperatorList& list, StepPart part) {
  double flops = 0;
  for (const auto& op : list.operators) {
    if (op.part == part) flops += op.flops + op.matrix_flops;
  }
  return flops;
}

}  // namespace syncline
