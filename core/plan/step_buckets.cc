#include "core/plan/step_buckets.h"

#include <numeric>
#include <utility>

#include "core/base/index.h"

namespace syncline::plan {

StepBuckets::StepBuckets(const Workload& workload, Communication& communication, Plan& plan)
    : workload_(workload),
      communication_(communication),
      plan_(plan),
      all_bytes_(static_cast<double>(gradient_bytes(workload))) {
  auto& buckets = plan.buckets;
  const auto copies = communication.each_micro_batch ? workload.micro_batches : 1;
  buckets.reserve(index(copies) * gradients() + communication.parameters.size());
  for (std::int64_t m = 1; m < copies; ++m) {
    for (const BucketExchange& one : communication.gradients) buckets.push_back(one.bucket);
  }
  base_ = buckets.size();
  for (BucketExchange& one : communication.gradients) buckets.push_back(std::move(one.bucket));
  for (BucketExchange& one : communication.parameters) buckets.push_back(std::move(one.bucket));
  if (communication.shards > 1 || communication.cross_step) find_bringing();
  if (!communication.parameters.empty()) find_updating();
}

// Lists for each tensor the buckets that bring its parameters, and in `ahead_` the gather buckets
// of outer modules.
void StepBuckets::find_bringing() {
  bringing_.resize(workload_.tensors.size());
  for (std::size_t b = gradients(); b < count(); ++b) {
    for (const int tensor : bucket(b).tensors) bringing_[index(tensor)].push_back(b);
    if (std::ranges::max(bucket(b).tensors) < bucket(b).ready) ahead_.push_back(b);
  }
  std::ranges::stable_sort(ahead_, {}, [&](std::size_t b) {
    return std::pair(-bucket(b).ready, std::ranges::max(bucket(b).tensors));
  });
  // A gradient's bucket brings its own parameters, unless a gather bucket does that.
  for (std::size_t b = 0; b < gradients(); ++b) {
    const auto& first = bringing_[index(bucket(b).tensors.front())];
    if (!first.empty() && first.front() >= gradients()) continue;
    for (const int tensor : bucket(b).tensors) bringing_[index(tensor)].push_back(b);
  }
}

void StepBuckets::find_updating() {
  updating_.resize(workload_.tensors.size() + workload_.buffers.size());
  for (std::size_t g = 0; g < gradients(); ++g) {
    for (const int tensor : bucket(g).tensors) updating_[index(tensor)].push_back(g);
  }
}

std::vector<std::size_t> StepBuckets::updating(std::size_t b) const {
  if (b < gradients()) return {b};
  std::vector<std::size_t> list;
  for (const int tensor : bucket(b).tensors) {
    const auto& own = updating_[index(tensor)];
    list.insert(list.end(), own.begin(), own.end());
  }
  // Frozen parameters are gathered for the next pass, which begins once all others are updated.
  if (list.empty()) {
    list.resize(gradients());
    std::iota(list.begin(), list.end(), std::size_t{0});
  }
  keep_each_once(list);
  return list;
}

double StepBuckets::share_of_update(std::size_t b) const {
  double bytes = 0;
  for (const int t : bucket(b).tensors) {
    const Tensor& tensor = workload_.tensors[index(t)];
    if (tensor.frozen) continue;
    const bool part = bucket(b).tensors.size() == 1;
    bytes += static_cast<double>(size_of(tensor.dtype)) *
             static_cast<double>(part ? bucket(b).elements : tensor.elements);
  }
  return bytes / all_bytes_ / exchange(b).shards;
}

}  // namespace syncline::plan
