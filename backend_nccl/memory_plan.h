// Lays out buckets and gradients in one block of a rank's device memory, and lists each operation's
// copies, casts, encodings and collectives. A dense bucket is a view that the backward pass writes.
// For others it writes gradients in fp32, and the payload is filled from them. Steps without a
// kernel are done by the host with the payload's code. Knows neither CUDA nor NCCL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/plan.h"
#include "core/run/bucket_use.h"
#include "core/run/payload.h"

namespace syncline::nccl_backend {

inline constexpr std::int64_t kFloatBytes = sizeof(float);

// A part of the block, in bytes. Empty: there is none.
struct Region {
  std::int64_t at = 0;
  std::int64_t bytes = 0;
};

// Type of the numbers in a collective's call.
enum class WireNumber { kFp32, kFp16, kBf16, kFp64, kByte };

// One call of NCCL's function for `kind`, or a message. Addresses are bytes of the block.
struct CollectiveCall {
  enum class Form { kCollective, kSend, kReceive } form = Form::kCollective;
  collective::CollectiveKind kind = collective::CollectiveKind::kAllReduce;
  int root = 0;  // member: of a reduce or broadcast the root, of a message the peer
  std::int64_t send = 0;
  std::int64_t receive = 0;
  // In NCCL's terms: the whole payload; for reduce_scatter and all_gather one member's share.
  std::int64_t count = 0;
  WireNumber number = WireNumber::kFp32;
};

struct Action {
  enum class Kind {
    kCopy,           // moves: count in bytes
    kClear,          // moves: count in bytes, of zeros
    kCast,           // moves: count in elements of `from`, to `to`; fp32, fp16, bf16
    kDivide,         // moves, in place: count in fp32 elements, all divided by `divisor`
    kEncode,         // bucket: a sparse codec's step, gradient -> this rank's part of the payload
    kDecode,         // bucket: the sum of all ranks' parts -> gradient
    kPackBlocks,     // bucket: its numbers in fp32 -> blocks of low precision
    kSumBlocks,      // moves: adds blocks of `parts` others, from -> to; count in bytes of each
    kUnpackBlocks,   // bucket: blocks -> its numbers in fp32
    kFactors,        // bucket: step `parts` of low rank: 0 M Q, 1 M^T P after the sum of P, 2 P Q^T
    kStagedFill,     // bucket: gradients -> payload, by the host
    kStagedBetween,  // bucket: the host's work after collective number `parts`
    kStagedRead,     // bucket: payload -> gradients, by the host
    kStagedAverage,  // bucket: payload -> parameters, by the host
    kExchange        // calls; several form one NCCL group
  };
  struct Move {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t count = 0;
  };
  Kind kind = Kind::kCopy;
  std::vector<Move> moves = {};
  DType from = DType::kFp32;
  DType to = DType::kFp32;
  float divisor = 1;
  int bucket = -1;
  int parts = 0;
  std::vector<CollectiveCall> calls = {};
};

// The host handles ("stages"): sparse rows, fp64 gradients that are not views, and parameters that
// are averaged by an outer optimizer or during later steps. If the device averages parameters, only
// fp32 buckets are views, so that a mean is rounded once.
//
// A sparse codec's bucket also has the velocity and the residual of momentum correction. Each step
// begins with the same gradients and an empty residual: the backward pass clears both. The payload
// has each rank's indices in front of its values.
//
// Matrices of low rank are copied, as their factors are computed from them twice.
//
// Blocks of low precision are summed all to all: each member receives its part from all others,
// sums the parts in rank order, rounds once, and sends the sum to all.
class MemoryPlan {
 public:
  // Alignment of regions in bytes, at which NCCL and vector loads are fastest.
  static constexpr std::int64_t kAlignment = 256;

  // Requires that the plan outlives the object.
  MemoryPlan(const plan::Plan& plan, const Workload& workload, int rank);

  std::int64_t bytes() const { return bytes_; }
  const std::vector<Action>& actions(plan::OpId op) const {
    return actions_[static_cast<std::size_t>(op)];
  }

  // Return, by bucket, layouts and payloads. Empty for a single rank.
  const std::vector<run::Payload>& layouts() const { return layouts_; }
  const std::vector<Region>& payloads() const { return payloads_; }
  const std::vector<Region>& produced_regions() const {
    return produced_;
  }  // views' values, which the backward pass copies
  // Momentum correction of a sparse codec's bucket; empty for other buckets.
  struct Waiting {
    Region velocity, residual;
  };
  const std::vector<Waiting>& waiting() const { return waiting_; }
  // Returns true if the host averages the parameters of this bucket.
  bool host_averages(std::size_t bucket) const {
    return outer_steps_ && plan_.buckets[bucket].averaged;
  }
  // Addresses, in fp32: a low-rank codec's matrix, the factor a step starts with, and both factors.
  struct Matrix {
    compress::LowRank shape;
    std::int64_t numbers = 0, start = 0, p = 0, q = 0;
  };
  // Returns matrices by bucket; empty if there are none, or if the host computes the factors.
  const std::vector<std::vector<Matrix>>& matrices() const { return matrices_; }
  // Returns, by bucket of block codecs, its numbers in fp32.
  const std::vector<Region>& rows() const { return rows_; }
  // Return regions in fp32, by tensor, then by buffer.
  const std::vector<Region>& gradients() const { return gradients_; }
  const std::vector<Region>& inputs() const { return inputs_; }

  // Returns the slices of fp32 gradients that a staged action copies to the host (`fill`) or back.
  // Their `at` counts bytes. Tensors are whole unless the payload is summed.
  std::vector<run::PayloadSlice> staged_slices(int bucket, bool fill) const;

  // Calls `put(at, source, bytes)` for the contents of the block when a run begins, zeros aside.
  template <typename Put>
  void load(const run::RankGradients& input, Put put) const;
  // Returns the gradients after a run, read by `get(at, target, bytes)`.
  template <typename Get>
  run::RankGradients result(const run::RankGradients& input, Get get) const;

 private:
  bool view(std::size_t bucket) const;
  bool sparse_codec(std::size_t bucket) const;
  void lay_out_factors(std::size_t bucket);
  void lay_out(const Workload& workload);
  Region reserve(std::int64_t bytes);
  std::vector<std::byte> view_image(std::size_t bucket, const run::RankGradients& input) const;

  void act(plan::OpId id);
  void produce(int first, int last, std::vector<Action>& actions) const;
  void cross(int bucket, bool back, std::vector<Action>& actions) const;
  void move_matrices(int bucket, bool back, std::vector<Action>& actions) const;
  void cast_factors(int bucket, bool from_payload, std::vector<Action>& actions) const;
  void factors(int bucket, int step, std::vector<Action>& actions) const;
  void average(std::vector<Action>& actions) const;
  Action exchange(const collective::Collective& collective, std::int64_t at) const;
  void all_to_all(const collective::Collective& collective, std::int64_t at,
                  std::vector<Action>& actions) const;

  const plan::Plan& plan_;
  int rank_;
  std::vector<run::BucketUse> uses_;  // per bucket
  bool outer_steps_;                  // the host averages parameters
  bool averages_;                     // the device averages parameters
  std::size_t tensors_;
  std::int64_t bytes_ = 0;
  std::vector<std::vector<Action>> actions_;
  std::vector<run::Payload> layouts_;
  std::vector<Region> payloads_;
  std::vector<Region> rows_;  // block codecs' numbers, in fp32
  std::vector<std::vector<Matrix>> matrices_;
  std::vector<Region> received_;  // block codecs' parts from other members
  std::vector<Region> produced_;
  std::vector<Waiting> waiting_;
  std::vector<Region> gradients_;
  std::vector<Region> inputs_;
  std::vector<std::int64_t> elements_;        // per tensor
  std::vector<std::vector<int>> buckets_of_;  // per tensor
};

template <typename Put>
void MemoryPlan::load(const run::RankGradients& input, Put put) const {
  for (std::size_t t = 0; t < gradients_.size(); ++t) {
    for (const Region& region : {gradients_[t], inputs_[t]}) {
      if (region.bytes > 0) put(region.at, static_cast<const void*>(input[t].data()), region.bytes);
    }
  }
  for (std::size_t b = 0; b < produced_.size(); ++b) {
    if (produced_[b].bytes == 0) continue;
    const auto image = view_image(b, input);
    for (const Region& region : {produced_[b], payloads_[b]}) {
      put(region.at, static_cast<const void*>(image.data()), region.bytes);
    }
  }
  for (std::size_t b = 0; b < matrices_.size(); ++b) {
    for (std::size_t i = 0, m = 0; m < matrices_[b].size(); ++i) {
      const run::FactorPlace& place = layouts_[b].factors()[i];
      if (place.matrix.rank == 0) continue;
      const auto factor = run::starting_factor(place);
      put(matrices_[b][m++].start, static_cast<const void*>(factor.data()),
          static_cast<std::int64_t>(factor.size() * sizeof(float)));
    }
  }
}

template <typename Get>
run::RankGradients MemoryPlan::result(const run::RankGradients& input, Get get) const {
  run::RankGradients gradients = input;
  for (std::size_t t = 0; t < gradients_.size(); ++t) {
    const Region& region = gradients_[t];
    if (region.bytes > 0) get(region.at, static_cast<void*>(gradients[t].data()), region.bytes);
  }
  for (std::size_t b = 0; b < produced_.size(); ++b) {
    if (produced_[b].bytes == 0) continue;
    std::vector<std::byte> payload(static_cast<std::size_t>(payloads_[b].bytes));
    get(payloads_[b].at, static_cast<void*>(payload.data()), payloads_[b].bytes);
    layouts_[b].read(payload.data(), gradients);
  }
  return gradients;
}

}  // namespace syncline::nccl_backend
