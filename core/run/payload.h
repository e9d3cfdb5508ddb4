// A bucket on its route: one rank's payload as the bytes that its collectives move, filled from the
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

// A run of a tensor's elements and its offset in a payload.
struct PayloadSlice {
  int tensor = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t at = 0;  // in bytes
};

// A matrix of a low-rank codec: its tensors, and the offset in the payload, in units, of the whole
// matrix (`p`) or of its two factors.
struct FactorPlace {
  std::vector<int> tensors;
  compress::LowRank matrix;
  std::int64_t p = 0;
  std::int64_t q = 0;
};
// Returns the second factor at the begin of a step, its columns orthogonal.
std::vector<float> starting_factor(const FactorPlace& place);

class Payload {
 public:
  // Lays out the bucket's payload on `rank`. `workload` has the shapes.
  Payload(const plan::Plan& plan, int bucket, int rank, const Workload& workload);
  // Lays out a message between stages; its values are never read.
  explicit Payload(const collective::Collective& message)
      : unit_(message.unit), elements_(message.elements) {}

  // True if the rank takes part: only a stage's ranks do in a sum of the stage.
  bool member() const { return member_; }

  // Returns the bucket's collectives in running order; gathers of parameters before their
  // gradients' exchange come after it.
  const std::vector<collective::Collective>& collectives() const { return collectives_; }
  std::int64_t bytes() const { return elements_ * unit_; }
  // Returns the offset in the rank's bytes of the n-th of collectives(): members of an all-reduce
  // of shards own a part each; with factors each carries a part of the payload.
  std::int64_t place(std::size_t n) const;
  // Computes a rank's work between the n-th of collectives() and the next: with factors the second
  // ones, once the first are summed. Requires the `gradients` of fill().
  void between(std::size_t n, const RankGradients& gradients, std::byte* payload) const;
  // True if between() has work.
  bool works_behind(std::size_t n) const {
    return layout_ == Layout::kFactors && n + 1 < part_of_.size() && part_of_[n] == 1 &&
           part_of_[n + 1] == 2;
  }
  // Sums `count` bytes, whole units, of each of `from` into `to`, in order. Numbers are rounded
  // after each, blocks once, at the end. Requires a layout that is summed.
  void add(std::byte* to, std::span<const std::byte* const> from, std::int64_t count) const;

  // True if the layout is dense or shards: numbers in `format` that collectives sum, the rest
  // zeros.
  bool is_summed() const { return layout_ == Layout::kDense || layout_ == Layout::kShards; }
  // True if collectives sum numbers in `format`; otherwise they carry bytes.
  bool numbers() const { return is_summed() || layout_ == Layout::kFactors; }
  bool blocks() const { return layout_ == Layout::kBlocks; }
  // Returns the matrices of a low-rank codec; empty for others.
  const std::vector<FactorPlace>& factors() const { return factors_; }
  DType format() const { return format_; }
  // Returns the slices that fill() writes and read() reads, in order; of blocks as concatenated
  // fp32 numbers. Requires summed() or blocks().
  std::vector<PayloadSlice> filled_slices() const;
  std::vector<PayloadSlice> read_back() const;

  // True if each tensor has its own place in the payload, which can be filled by itself.
  bool by_tensor() const { return layout_ == Layout::kDense && bucket_.codec == nullptr; }
  // Fills `tensor`'s place. Requires by_tensor() and a tensor of the bucket.
  void fill_tensor(int tensor, const std::vector<float>& values, std::byte* payload) const;
  // Fills all of it with this rank's contribution. A sparse codec leaves unsent elements in the
  // gradient; other codecs do not change gradients.
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
  // Rank of this one among those in its first collective, and their number.
  int rank_ = 0;
  int ranks_ = 1;
  bool member_ = false;
  int shard_ = 0;                     // index of the rank's own part of the bucket
  std::vector<PayloadSlice> places_;  // of dense, shards and blocks, in elements of the payload
  // Factors: index of the part (of three) that each collective carries, and borders of the parts.
  std::vector<std::size_t> part_of_;
  std::array<std::int64_t, 4> parts_{};
  std::vector<FactorPlace> factors_;
  std::int64_t rows_ = 0;   // of a sparse gradient
  std::int64_t width_ = 0;  // of its rows, in elements
  bool scatters_ = false;   // shards: true in the half that scatters
};

// Converts floats to their bytes in a number format, and back.
void encode_numbers(DType format, const float* values, std::int64_t count, std::byte* bytes);
void decode_numbers(DType format, const std::byte* bytes, std::int64_t count, float* values);

}  // namespace syncline::run
