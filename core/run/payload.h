// A bucket on its way: one rank's payload as the bytes that its collectives move, filled from the
// rank's gradients and read back into them. The host executor and the live backends share it, so
// that a bucket has one layout and one rounding everywhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/plan.h"

namespace syncline::run {

// One rank's gradients by tensor, then buffers.
using RankGradients = std::vector<std::vector<float>>;

// A run of a tensor's elements and where they stand in a payload.
struct PayloadSlice {
  int tensor = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t at = 0;  // in bytes
};

// A matrix of a codec of low rank: the tensors that it is made of, and in units where in the
// payload it stands whole (`p`), or its two factors do.
struct FactorPlace {
  std::vector<int> tensors;
  compress::LowRank matrix;
  std::int64_t p = 0;
  std::int64_t q = 0;
};
// Returns the second factor that a step begins with, its columns orthogonal.
std::vector<float> starting_factor(const FactorPlace& place);

class Payload {
 public:
  // The bucket's payload on `rank`. `workload` has the shapes.
  Payload(const plan::Plan& plan, int bucket, int rank, const Workload& workload);
  // Of a message between stages, whose values nobody reads.
  explicit Payload(const collective::Collective& message)
      : unit_(message.unit), elements_(message.elements) {}

  // Returns whether the rank takes part: a stage's ranks alone do in what the stage sums.
  bool member() const { return member_; }

  // Returns the bucket's collectives, in the order in which they run, those that gather parameters
  // ahead of their gradients' exchange behind it.
  const std::vector<collective::Collective>& collectives() const { return collectives_; }
  std::int64_t bytes() const { return elements_ * unit_; }
  // Where what the n-th of collectives() carries begins in the rank's bytes: members of an
  // all-reduce of shards own a part each; with factors each carries a part of the payload.
  std::int64_t place(std::size_t n) const;
  // What a rank does behind the n-th of collectives() and ahead of the next: with factors the
  // second ones, once the first are summed. `gradients` as they were filled from.
  void between(std::size_t n, const RankGradients& gradients, std::byte* payload) const;
  // Returns whether that is anything.
  bool works_behind(std::size_t n) const {
    return layout_ == Layout::kFactors && n + 1 < part_of_.size() && part_of_[n] == 1 &&
           part_of_[n + 1] == 2;
  }
  // Sums `count` bytes, whole units, of each of `from` into `to`, in order. Numbers are rounded
  // with each, blocks once, at the end. Requires a layout that is summed.
  void add(std::byte* to, std::span<const std::byte* const> from, std::int64_t count) const;

  // Returns whether it is dense or shards: numbers in `format` that collectives sum, the rest
  // zeros.
  bool summed() const { return layout_ == Layout::kDense || layout_ == Layout::kShards; }
  // Returns whether collectives sum numbers in `format`; elsewhere they carry bytes.
  bool numbers() const { return summed() || layout_ == Layout::kFactors; }
  bool blocks() const { return layout_ == Layout::kBlocks; }
  // Of a codec of low rank, elsewhere none.
  const std::vector<FactorPlace>& factors() const { return factors_; }
  DType format() const { return format_; }
  // What fill() writes and read() reads, in order, by slices; of blocks as fp32 numbers behind each
  // other. Requires summed() or blocks().
  std::vector<PayloadSlice> filled() const;
  std::vector<PayloadSlice> read_back() const;

  // Returns whether each tensor has a place of its own in the payload, which can be filled by
  // itself.
  bool by_tensor() const { return layout_ == Layout::kDense && bucket_.codec == nullptr; }
  // Fills `tensor`'s place. Requires by_tensor() and a tensor of the bucket.
  void fill_tensor(int tensor, const std::vector<float>& values, std::byte* payload) const;
  // Fills all of it with what this rank contributes. A sparse codec leaves what it does not send
  // behind in the gradient; elsewhere the gradients stay as they are.
  void fill(RankGradients& gradients, std::byte* payload) const;
  // Reads the exchanged payload back into the gradients.
  void read(const std::byte* payload, RankGradients& gradients) const;

 private:
  enum class Layout { kDense, kShards, kPairs, kRows, kFactors, kBlocks };

  void fill_pairs(RankGradients& gradients, std::byte* payload) const;
  void read_pairs(const std::byte* payload, RankGradients& gradients) const;
  void fill_rows(const RankGradients& gradients, std::byte* payload) const;
  void read_rows(const std::byte* payload, RankGradients& gradients) const;
  void lay_out_factors();
  void lay_out_numbers(const Workload& workload);
  std::vector<float> numbers_at(const std::byte* payload, std::int64_t first,
                                std::int64_t count) const;
  void fill_factors(const RankGradients& gradients, std::byte* payload) const;
  void read_factors(const std::byte* payload, RankGradients& gradients) const;
  void fill_blocks(const RankGradients& gradients, std::byte* payload) const;
  void read_blocks(const std::byte* payload, RankGradients& gradients) const;
  void add_blocks(std::byte* to, std::span<const std::byte* const> from, std::int64_t count) const;
  std::vector<PayloadSlice> slices(bool all_owners) const;

  plan::Bucket bucket_;
  std::vector<collective::Collective> collectives_;
  Layout layout_ = Layout::kDense;
  DType format_ = DType::kFp32;
  std::int64_t unit_ = 4;
  std::int64_t elements_ = 0;  // units
  // Who takes part in its first collective, and the rank's place among them.
  int rank_ = 0;
  int ranks_ = 1;
  bool member_ = false;
  int shard_ = 0;                     // of the bucket's parts, the rank's own
  std::vector<PayloadSlice> places_;  // of dense, shards and blocks, in elements of the payload
  // Factors: which of its three parts each collective carries, and where parts begin and end.
  std::vector<std::size_t> part_of_;
  std::array<std::int64_t, 4> parts_{};
  std::vector<FactorPlace> factors_;
  std::int64_t rows_ = 0;   // of a sparse gradient
  std::int64_t width_ = 0;  // of its rows, in elements
  bool scatters_ = false;   // shards: the first half
};

// Floats to their bytes in a number format, and back.
void write_as(DType format, const float* values, std::int64_t count, std::byte* bytes);
void read_as(DType format, const std::byte* bytes, std::int64_t count, float* values);

}  // namespace syncline::run
