// Which samples each worker takes at each step: every epoch all samples in a new order, dealt out
// to the workers one batch after the other, so that no two of them see the same sample.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "core/random.h"

namespace syncline::train {

class WorkerBatches {
 public:
  // Requires samples >= batch.
  WorkerBatches(std::size_t samples, std::size_t batch, std::uint64_t seed)
      : order_(samples), batch_(batch), random_(seed, 4) {
    std::iota(order_.begin(), order_.end(), 0);
    random_.shuffle(order_);
  }

  // The next worker's batch.
  std::vector<int> next() {
    if (at_ + batch_ > order_.size()) {
      random_.shuffle(order_);
      at_ = 0;
    }
    const auto first = order_.begin() + static_cast<std::ptrdiff_t>(at_);
    at_ += batch_;
    return {first, first + static_cast<std::ptrdiff_t>(batch_)};
  }

 private:
  std::vector<int> order_;
  std::size_t batch_;
  std::size_t at_ = 0;
  Random random_;
};

}  // namespace syncline::train
