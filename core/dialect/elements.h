// Buckets whose size is a number of elements (Megatron, DeepSpeed), and what a configuration says
// of gradient accumulation.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/json/reader.h"
#include "core/plan/plan.h"
#include "core/scenario/strategy.h"
#include "core/scenario/workload.h"

namespace syncline::dialect {

inline constexpr std::int64_t kAnyElements = std::numeric_limits<std::int64_t>::max();

struct ElementRule {
  std::int64_t size = kAnyElements;
  // kAfter: a bucket closes once it holds at least `size`. kExceeding: once it holds more.
  // kBefore: before the next tensor would make it hold more; a larger one is alone.
  enum class Close { kAfter, kExceeding, kBefore } close = Close::kAfter;
  std::int64_t align = 1;  // each tensor begins at a multiple of this from its bucket's begin
  // All tensors travel in one number format and fill the same buckets; otherwise each format has
  // its own.
  bool one_format = false;
  bool fp8_apart = false;  // matrices of layers have buffers of their own, whose parameters are FP8
  // Tensors fill buckets in the reverse of the order in which their parameters were registered, not
  // as they become ready.
  bool registered = false;
};

// Tensor indices by bucket, in the order in which they close, what is left over last; `registered`
// ones in the order in which all that they hold is ready. Sparse tensors are in none.
std::vector<std::vector<int>> buckets_by_elements(const std::vector<Tensor>& tensors,
                                                  const ElementRule& rule);

// From the begin of a bucket's first tensor to the end of its last.
std::int64_t span_of(const plan::Bucket& bucket, const Workload& workload, std::int64_t align);

// Uncertain inputs a bucket of so few elements that they are likely a number of MiB.
void suspect_elements(const std::string& key, std::int64_t count, const Workload& workload,
                      Strategy& strategy);

// How often gradients are accumulated is the workload's: a configuration that says otherwise is
// refused.
void check_micro_batches(Reader& config, const char* key, std::int64_t count,
                         const Workload& workload);

}  // namespace syncline::dialect
