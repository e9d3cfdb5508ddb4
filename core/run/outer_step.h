// The averaging of parameters on one rank: the values that it sends, and its parameters after the
// sum: their mean, or an outer step from zeros with g = the mean of (start - own) of the replicas:
//   sgd       start -= rate * g
//   nesterov  m = momentum * m + g,  start -= rate * (g + momentum * m)   (torch.optim.SGD)
// and then mix * own + (1 - mix) * start.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "core/plan.h"

namespace syncline::run {

class OuterStep {
 public:
  explicit OuterStep(const plan::Plan& plan) : outer_(plan.outer), replicas_(plan.replicas) {}

  // Turns a tensor's parameters into the values that are sent.
  void make(int tensor, std::vector<float>& values) const;
  // Turns the sum of sent values into the new parameters; `own` are the rank's present ones.
  void apply(int tensor, const std::vector<float>& own, std::vector<float>& values);

 private:
  const Outer outer_;
  const int replicas_;
  std::map<int, std::pair<std::vector<float>, std::vector<float>>>
      states_;  // by tensor: start and momentum
};

// True if the averaging of these tensors includes the bucket; buffers belong to the first tensor.
inline bool takes(const plan::Compute& average, const plan::Bucket& bucket, std::size_t tensors) {
  const int front = bucket.tensors.front();
  const int tensor = front < static_cast<int>(tensors) ? front : 0;
  return bucket.averaged && average.first <= tensor && tensor <= average.last;
}

}  // namespace syncline::run
