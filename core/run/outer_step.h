// Averaged parameters on one rank, as values: what it sends and what comes of the sum. Without an
// optimizer the mean. With one, g = the mean of (start - own parameters) over the replicas, then
//   sgd       start -= rate * g
//   nesterov  m = momentum * m + g,  start -= rate * (g + momentum * m)   (torch.optim.SGD)
// and the rank goes on with mix * own + (1 - mix) * start. A training begins at zeros.
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

  // Of a tensor's parameters, what is sent for them.
  void make(int tensor, std::vector<float>& values) const;
  // `values` holds the sum of what was sent, and then the parameters; `own` are those the rank has.
  void apply(int tensor, const std::vector<float>& own, std::vector<float>& values);

 private:
  const Outer outer_;
  const int replicas_;
  std::map<int, std::pair<std::vector<float>, std::vector<float>>>
      states_;  // by tensor: start and momentum
};

// Whether averaging these tensors takes what the bucket brings; buffers go with the first tensor.
inline bool takes(const plan::Compute& average, const plan::Bucket& bucket, std::size_t tensors) {
  const int front = bucket.tensors.front();
  const int tensor = front < static_cast<int>(tensors) ? front : 0;
  return bucket.averaged && average.first <= tensor && tensor <= average.last;
}

}  // namespace syncline::run
