// How frameworks put gradients into buckets: DistributedDataParallel, by torch's version, and
// others by a number of elements. Source: torch/csrc/distributed/c10d/reducer.cpp
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

// "2.7", "1.13.1+cu117": what counts are the first two numbers.
struct TorchVersion {
  int major = 0;
  int minor = 0;

  // The linter takes the 0 of what the compiler writes for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  auto operator<=>(const TorchVersion&) const = default;
};
std::optional<TorchVersion> torch_version(std::string_view text);

// What a configuration is read as where nobody names a version.
inline constexpr TorchVersion kNewestTorch{2, 99};
// What stands under the key "torch", which must name a version; empty: nothing does.
std::string read_torch(Reader& reader);
// The one that the job trains with.
TorchVersion torch_of(const Workload& workload);

// An explicit bucket_cap_mb limits the first bucket too (pytorch PR #121640).
inline constexpr TorchVersion kExplicitFirst{2, 3};
// bucket_cap_mb_list: a limit for each bucket (pytorch PR #169026).
inline constexpr TorchVersion kListedCaps{2, 12};

// Gloo sums bf16 (pytorch PR #113557).
inline constexpr TorchVersion kGlooBf16{2, 2};

inline constexpr Bytes kDdpFirstBucket = kMiB;  // dist._DEFAULT_FIRST_BUCKET_BYTES
inline constexpr double kDdpCapMb = 25;

// Bytes from which on a bucket is closed: the first one's, the second one's, and so on; the last
// limit goes on for the others.
using DdpLimits = std::vector<Bytes>;

// The limits of a cap in MiB; nothing: none was given.
DdpLimits ddp_limits(std::optional<double> cap_mb, const TorchVersion& version,
                     Bytes first_bucket = kDdpFirstBucket);

// Positions in `order`, bucket by bucket. Tensors are added to the open bucket of their type; it
// closes once it holds at least its limit, and each type moves to its next limit. Sparse ones are
// buckets by themselves. What is left over closes at the end, the type that was met last first (as
// torch's hash table has up to four of them), or, `by_type`, as Paddle's map has the types.
std::vector<std::vector<int>> assign_by_size(const std::vector<Tensor>& tensors,
                                             const std::vector<int>& order, const DdpLimits& limits,
                                             bool by_type = false);

enum class DdpOrder {
  kRebuilt,    // in the order in which gradients arrived: from the second step on
  kFirstStep,  // as parameters were registered, the last one first, as long as nothing was rebuilt
};

// Tensor indices by bucket, in the order in which they are exchanged; `tensors` in backward order.
// What is left over is behind all others where buckets are rebuilt. `small_last`:
// DDP_SET_LAST_BUCKET_CAP, the limits count from the last bucket; it acts where buckets are
// rebuilt, and is nothing in the first step.
std::vector<std::vector<int>> ddp_buckets(const std::vector<Tensor>& tensors,
                                          const DdpLimits& limits,
                                          DdpOrder order = DdpOrder::kRebuilt,
                                          bool small_last = false);

// Buckets whose size is a number of elements (Megatron, DeepSpeed), and what a configuration says
// of gradient accumulation.

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
  // The framework's own parameters, each the tensors that it holds, in the order in which they fill
  // buckets. Empty: each tensor is one, as it becomes ready.
  std::vector<std::vector<int>> parameters = {};
  bool as_closed = false;       // of given parameters too
  std::vector<int> alone = {};  // tensors with a bucket of their own
};

// Tensor indices by bucket, in the order in which they close, what is left over last; of given
// parameters in the order in which all that a bucket holds is ready. Sparse tensors are in none.
std::vector<std::vector<int>> buckets_by_elements(const std::vector<Tensor>& tensors,
                                                  const ElementRule& rule);

// From the begin of a bucket's first tensor to the end of its last.
std::int64_t span_of(const plan::Bucket& bucket, const Workload& workload, std::int64_t align);

// Uncertain inputs a bucket of so few elements that they are likely a number of MiB.
void suspect_elements(const std::string& key, std::int64_t count, const Workload& workload,
                      Strategy& strategy);

// Whether torch sums gradients in every micro-batch, and says so where its stages decide instead of
// the job: they turn the sums off in all but the last (torch 2.6, distributed/pipelining/stage.py,
// backward_maybe_with_nosync).
bool sums_each_micro_batch(bool no_sync, const Workload& workload, std::vector<std::string>& notes);

// How often gradients are accumulated is the workload's: a configuration that says otherwise is
// refused.
void check_micro_batches(Reader& config, const char* key, std::int64_t count,
                         const Workload& workload);

}  // namespace syncline::dialect
