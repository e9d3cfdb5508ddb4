// The dimensions that a tuner may vary: the "search" object of a scenario, checked and typed. Axes
// that it does not name keep the base strategy's value. studies/tune walks the space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/scenario/scenario.h"

namespace syncline {

struct Search {
  std::string base;  // the strategy whose other knobs every candidate keeps

  // Fusion rules in addition to the base's own.
  bool optimum =
      false;  // explicit buckets from the dynamic programme (studies/tune/configuration.h)
  bool breakpoints = false;  // rule size, at every size that changes the partition
  std::vector<Bytes> sizes;  // rule size, at these sizes in bytes
  std::vector<Fusion::Close> closes{Fusion::Close::kAfter};  // for rule size
  std::vector<Bytes> first_sizes{0};                         // limits of the first bucket
  // Times between ticks in seconds, tried with each size that closes before it is exceeded
  // (Horovod's threshold x cycle time); 0: no ticks.
  std::vector<Seconds> cycles{0};
  bool all_counts = false;           // rule count, at every number of tensors
  std::vector<std::int64_t> counts;  // rule count, at these counts
  std::vector<Fusion::Rule> rules;   // kNone, kLayer, kOne

  bool varies_fusion() const {
    return optimum || breakpoints || all_counts || !sizes.empty() || !counts.empty() ||
           !rules.empty();
  }

  // Values of the other knobs; an empty list keeps the base's.
  std::vector<int> streams;
  std::vector<std::string> algorithms;
  std::vector<Hierarchy> hierarchies;
  std::vector<Compression> compressions;  // one without a codec: gradients are not compressed
  std::vector<LocalSgd> local_sgds;       // one that is not enabled: gradients at every step
  std::vector<Strategy::Exchange> exchanges;
  std::vector<bool> cross_steps;
  std::vector<Strategy::Priority> priorities;
  std::vector<bool> bucket_copies;
  std::vector<ComputeFusion> compute_fusions;  // one without a switch: operators are not fused

  std::size_t confirm = 3;  // number of the model's best candidates to simulate
};

}  // namespace syncline
