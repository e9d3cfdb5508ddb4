// How PyTorch's DistributedDataParallel puts gradients into buckets, by torch's version.
// Source: torch/csrc/distributed/c10d/reducer.cpp (compute_bucket_assignment_by_size) and
// torch/nn/parallel/distributed.py.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json/reader.h"
#include "core/scenario/workload.h"

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

enum class DdpOrder {
  kRebuilt,    // in the order in which gradients arrived: from the second step on
  kFirstStep,  // as parameters were registered, the last one first, as long as nothing was rebuilt
};

// Tensor indices by bucket, in the order in which they are exchanged; `tensors` in backward order.
// Tensors are added to the open bucket of their type; it closes once it holds at least its limit,
// and each type moves to its next limit. Sparse ones are buckets by themselves. What is left over
// closes at the end, for rebuilt buckets behind all others, the type that was met last first (as
// torch's hash table has up to four of them). `small_last`: DDP_SET_LAST_BUCKET_CAP, the limits
// count from the last bucket; it acts where buckets are rebuilt, and is nothing in the first step.
std::vector<std::vector<int>> ddp_buckets(const std::vector<Tensor>& tensors,
                                          const DdpLimits& limits,
                                          DdpOrder order = DdpOrder::kRebuilt,
                                          bool small_last = false);

}  // namespace syncline::dialect
