// Rules by which frameworks put gradients into buckets: DistributedDataParallel's, by torch's
// version, and others by a number of elements. Source: torch/csrc/distributed/c10d/reducer.cpp
// (compute_bucket_assignment_by_size) and torch/nn/parallel/distributed.py.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/plan.h"
#include "core/strategy.h"
#include "formats/json/reader.h"

namespace syncline::dialect {

// A version of torch, from "2.7" or "1.13.1+cu117": only the first two numbers count.
struct TorchVersion {
  int major = 0;
  int minor = 0;

  // The linter mistakes the 0 in the generated operator for a null pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  auto operator<=>(const TorchVersion&) const = default;
};
std::optional<TorchVersion> torch_version(std::string_view text);

// The version by which a configuration is read if none is named.
inline constexpr TorchVersion kNewestTorch{2, 99};
// Returns the value of the key "torch", which must name a version; empty: no such key.
std::string read_torch(Reader& reader);
// Returns the torch version that the job trains with.
TorchVersion torch_of(const Workload& workload);

// An explicit bucket_cap_mb limits the first bucket too (pytorch PR #121640).
inline constexpr TorchVersion kExplicitFirst{2, 3};
// bucket_cap_mb_list: a limit for each bucket (pytorch PR #169026).
inline constexpr TorchVersion kListedCaps{2, 12};

// fully_shard's reshard_after_forward, if it is given, goes for the root too (torch 2.8,
// _fully_shard.py, auto_reshard_after_forward).
inline constexpr TorchVersion kGivenForRoot{2, 8};

// Gloo sums bf16 (pytorch PR #113557).
inline constexpr TorchVersion kGlooBf16{2, 2};

inline constexpr Bytes kDdpFirstBucket = kMiB;  // dist._DEFAULT_FIRST_BUCKET_BYTES
inline constexpr double kDdpCapMb = 25;

// Bucket size limits in bytes: a bucket that reaches its limit closes. The n-th limit is the n-th
// bucket's; the last one holds for all further buckets.
using DdpLimits = std::vector<Bytes>;

// Returns the limits for a cap in MiB; nullopt: no cap was given.
DdpLimits ddp_limits(std::optional<double> cap_mb, const TorchVersion& version,
                     Bytes first_bucket = kDdpFirstBucket);

// Returns positions in `order`, bucket by bucket. A tensor joins its type's open bucket, which
// closes at its limit; then that type's next limit holds. A sparse tensor is a bucket by itself.
// Open buckets close at the end. The type met last is first (as torch's hash table has up to four
// of them), or `by_type`, in the order of types, as Paddle's map has them.
std::vector<std::vector<int>> assign_by_size(const std::vector<Tensor>& tensors,
                                             const std::vector<int>& order, const DdpLimits& limits,
                                             bool by_type = false);

enum class DdpOrder {
  kRebuilt,    // in the order in which gradients arrived, from the second step on
  kFirstStep,  // in reverse registration order, until buckets are rebuilt
};

// Returns tensor indices by bucket, in the order of the exchanges; `tensors` in backward order. If
// buckets are rebuilt, incomplete buckets come last. `small_last`: DDP_SET_LAST_BUCKET_CAP, limits
// count from the last bucket; it acts on rebuilt buckets and has no effect in the first step.
std::vector<std::vector<int>> ddp_buckets(const std::vector<Tensor>& tensors,
                                          const DdpLimits& limits,
                                          DdpOrder order = DdpOrder::kRebuilt,
                                          bool small_last = false);

// Buckets limited by a number of elements (Megatron, DeepSpeed), and checks of gradient
// accumulation in a configuration.

inline constexpr std::int64_t kAnyElements = std::numeric_limits<std::int64_t>::max();

struct ElementRule {
  std::int64_t size = kAnyElements;
  // kAfter: a bucket closes once it holds at least `size`. kExceeding: once it holds more.
  // kBefore: before the next tensor would make it hold more; a larger one fills a bucket.
  enum class Close { kAfter, kExceeding, kBefore } close = Close::kAfter;
  std::int64_t align = 1;  // each tensor begins at a multiple of this from its bucket's start
  // All tensors travel in one number format and fill the same buckets; otherwise each format has
  // its own.
  bool one_format = false;
  bool fp8_apart = false;  // matrices of layers with FP8 parameters have buffers of their own
  // The framework's own parameters in the order of filling buckets, each as a list of tensors.
  // Empty: each tensor is one parameter, in order of readiness.
  std::vector<std::vector<int>> parameters = {};
  bool as_closed = false;       // given parameters too keep the order in which buckets close
  std::vector<int> alone = {};  // tensors with a bucket of their own
};

// Returns tensor indices by bucket in order of closing, an incomplete bucket last. Given
// parameters: in order of the buckets' readiness. Excludes sparse tensors.
std::vector<std::vector<int>> buckets_by_elements(const std::vector<Tensor>& tensors,
                                                  const ElementRule& rule);

// Returns the elements from the start of a bucket's first tensor to the end of its last.
std::int64_t span_of(const plan::Bucket& bucket, const Workload& workload, std::int64_t align);

// Adds a suspicion to the strategy if `count` elements are so few that MiB were probably meant.
void suspect_elements(const std::string& key, std::int64_t count, const Workload& workload,
                      Strategy& strategy);

// Returns true if torch sums gradients in every micro-batch. Adds a note if pipeline stages decide
// instead of the job: they sum only in the last (torch 2.6, distributed/pipelining/stage.py,
// backward_maybe_with_nosync).
bool sums_each_micro_batch(bool no_sync, const Workload& workload, std::vector<std::string>& notes);

// Refuses a number of accumulation steps that differs from the workload's micro-batches.
void check_micro_batches(Reader& config, const char* key, std::int64_t count,
                         const Workload& workload);

}  // namespace syncline::dialect
