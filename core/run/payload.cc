// Layouts, all in units of Collective::unit bytes:
//   dense   the bucket's tensors in a row in its number format (a half-precision codec's if it has
//           one), padding after the last
//   shards  one half of an exchange if the other has other buckets: each tensor is split evenly
//           among the ranks, and the payload holds every rank's slices together, so that rank r
//           holds slice r of each between the halves
//   pairs   of a sparse codec: `kept` (int32 index, fp32 value) per rank, ranks in order
//   rows    of a sparse gradient: `kept` (int64 row, the row's values) per rank; row -1 is none
//   factors of a low-rank codec: uncompressed elements, all first factors, all second ones; each
//           is summed by collectives of its own, and the second ones are made of the sum of the
//           first (between)
//   blocks  of a codec with scales: the bucket's tensors in a row in such units
#include "core/run/payload.h"

#include <Eigen/Core>
#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/index.h"
#include "core/compress/power_sgd.h"

namespace syncline::run {
namespace {

// Calls `visit` with a number of that format.
template <typename Visit>
void with_number(DType format, const Visit& visit) {
  switch (format) {
    case DType::kFp32:
      return visit(float{});
    case DType::kFp16:
      return visit(Eigen::half{});
    case DType::kBf16:
      return visit(Eigen::bfloat16{});
    case DType::kFp64:
      return visit(double{});
  }
}

const Tensor& tensor_of(const Workload& workload, int number) {
  const std::size_t t = index(number);
  const std::size_t gradients = workload.tensors.size();
  return t < gradients ? workload.tensors[t] : workload.buffers[t - gradients];
}

// Concatenates gradients, and splits such a row back into them.
std::vector<float> joined(const RankGradients& gradients, std::span<const int> tensors) {
  std::vector<float> row;
  for (const int tensor : tensors) {
    const auto& values = gradients[index(tensor)];
    row.insert(row.end(), values.begin(), values.end());
  }
  return row;
}

void part(const std::vector<float>& row, std::span<const int> tensors, RankGradients& gradients) {
  auto at = row.begin();
  for (const int tensor : tensors) {
    auto& values = gradients[index(tensor)];
    const auto end = at + static_cast<std::ptrdiff_t>(values.size());
    std::copy(at, end, values.begin());
    at = end;
  }
}

}  // namespace

void encode_numbers(DType format, const float* values, std::int64_t count, std::byte* bytes) {
  if (format == DType::kFp32) {
    std::memcpy(bytes, values, index(count) * sizeof(float));
    return;
  }
  with_number(format, [=]<typename Number>(Number number) {
    for (std::int64_t i = 0; i < count; ++i) {
      number = static_cast<Number>(values[i]);
      std::memcpy(bytes + i * static_cast<std::int64_t>(sizeof number), &number, sizeof number);
    }
  });
}

void decode_numbers(DType format, const std::byte* bytes, std::int64_t count, float* values) {
  if (format == DType::kFp32) {
    std::memcpy(values, bytes, index(count) * sizeof(float));
    return;
  }
  with_number(format, [=](auto number) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(&number, bytes + i * static_cast<std::int64_t>(sizeof number), sizeof number);
      values[i] = static_cast<float>(number);
    }
  });
}

Payload::Payload(const plan::Plan& plan, int bucket, int rank, const Workload& workload)
    : bucket_(plan.buckets[index(bucket)]) {
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective != nullptr && collective->bucket == bucket) collectives_.push_back(*collective);
  }
  assert((!collectives_.empty() || workload.parallel.whole_job()) && "collectives move a payload");
  if (collectives_.empty()) return;
  // Gathers before a gradient's exchange bring parameters for a pass of the model; for the
  // gradient's values they count as if after it.
  const auto exchange = std::ranges::find_if(
      collectives_, [](const auto& c) { return c.kind != collective::CollectiveKind::kAllGather; });
  std::rotate(collectives_.begin(), exchange, collectives_.end());
  // Gathers of the first copy have more ranks than those of the second; sums do not count.
  if (exchange == collectives_.end()) {
    std::ranges::stable_sort(collectives_, std::ranges::greater(),
                             [](const auto& c) { return c.groups.size; });
  }
  // The layout follows from the bucket's content and route.
  const collective::Collective& first = collectives_.front();
  for (const auto& c : collectives_) elements_ = std::max(elements_, c.elements);
  // In an outer step each rank of a group may carry only its part.
  if (bucket_.averaged && first.groups.group_step == 1) {
    elements_ = std::max(elements_, first.elements * first.groups.count);
  }
  const auto place = collective::find_place(first.groups, rank);
  member_ = place.has_value();
  rank_ = place ? place->member : 0;
  ranks_ = first.groups.size;
  // A rank's part is its rank in the collective that scatters or gathers the bucket.
  for (const auto& c : collectives_) {
    using enum collective::CollectiveKind;
    if (c.kind != kReduceScatter && c.kind != kAllGather) continue;
    if (const auto in = collective::find_place(c.groups, rank)) shard_ = in->member;
    break;
  }
  unit_ = first.unit;
  format_ = bucket_.codec != nullptr ? bucket_.codec->wire : bucket_.dtype;

  if (bucket_.codec != nullptr && bucket_.codec->low_rank) {
    layout_ = Layout::kFactors;
    format_ = bucket_.dtype;
    lay_out_factors();
    return;
  }
  if (bucket_.sparse) {
    layout_ = Layout::kRows;
    format_ = bucket_.dtype;
    const Tensor& shape = tensor_of(workload, bucket_.tensors.front());
    rows_ = shape.shape.empty() ? 1 : shape.shape[0];
    width_ = shape.elements / rows_;
    return;
  }
  if (bucket_.codec != nullptr && bucket_.codec->sparse) {
    layout_ = Layout::kPairs;
    return;
  }
  if (bucket_.codec != nullptr && bucket_.codec->block > 1) layout_ = Layout::kBlocks;
  lay_out_numbers(workload);
}

// Places each tensor after the previous one. A bucket of one tensor may hold a part of it.
void Payload::lay_out_numbers(const Workload& workload) {
  // One half, any number of times: parameters may be gathered for both passes.
  const bool half = collectives_.front().kind != collective::CollectiveKind::kAllReduce &&
                    std::ranges::all_of(collectives_, [&](const auto& c) {
                      return c.kind == collectives_.front().kind;
                    });
  if (half) {
    layout_ = Layout::kShards;
    scatters_ = collectives_.front().kind == collective::CollectiveKind::kReduceScatter;
  }
  std::int64_t at = 0;
  for (const int tensor : bucket_.tensors) {
    const std::int64_t whole = tensor_of(workload, tensor).elements;
    const bool part = bucket_.tensors.size() == 1 && bucket_.elements < whole;
    const std::int64_t count = part ? bucket_.elements : whole;
    places_.push_back({tensor, part ? bucket_.first : 0, count, at});
    at += count;
    assert((layout_ != Layout::kShards || count % ranks_ == 0) && "sharded tensors split evenly");
  }
  assert(at <= elements_ * (layout_ == Layout::kBlocks ? bucket_.codec->block : 1) &&
         "the collectives carry the whole bucket");
}

// Lays out the parts. Each non-empty part has the same number of collectives, with their padding.
void Payload::lay_out_factors() {
  const auto sizes = compress::low_rank_sizes(bucket_.factors);
  std::vector<std::size_t> present;
  if (sizes.whole > 0) present.push_back(0);
  present.insert(present.end(), {1, 2});
  std::array<std::int64_t, 3> lengths{};
  for (std::size_t n = 0; n < collectives_.size(); ++n) {
    part_of_.push_back(present[n * present.size() / collectives_.size()]);
    auto& length = lengths[part_of_.back()];
    length = std::max(length, collectives_[n].elements);
  }
  std::partial_sum(lengths.begin(), lengths.end(), parts_.begin() + 1);
  elements_ = parts_.back();
  auto [whole, p, q, end] = parts_;
  for (std::size_t i = 0; i < bucket_.factors.size(); ++i) {
    FactorPlace place{bucket_.tensors, bucket_.factors[i], p, q};
    const compress::LowRank& matrix = place.matrix;
    if (!bucket_.codec->whole_bucket) place.tensors = {bucket_.tensors[i]};
    if (matrix.rank == 0) place.p = std::exchange(whole, whole + matrix.elements);
    factors_.push_back(std::move(place));
    p += matrix.rows * matrix.rank;
    q += matrix.columns * matrix.rank;
  }
}

std::int64_t Payload::place(std::size_t n) const {
  const collective::Collective& collective = collectives_[n];
  const std::size_t part = layout_ == Layout::kFactors ? part_of_[n] : 0;
  const std::int64_t begin = layout_ == Layout::kFactors ? parts_[part] : 0;
  const std::int64_t end = layout_ == Layout::kFactors ? parts_[part + 1] : elements_;
  const bool shards = collective.groups.group_step == 1 && collective.elements < end - begin;
  return (begin + (shards ? shard_ * collective.elements : 0)) * unit_;
}

void Payload::add(std::byte* to, std::span<const std::byte* const> from, std::int64_t count) const {
  assert(layout_ != Layout::kPairs && layout_ != Layout::kRows && "gathered, never summed");
  if (layout_ == Layout::kBlocks) return add_blocks(to, from, count);
  // Like a collective library: in the format itself, with rounding after each addition.
  with_number(format_, [&]<typename Number>(Number sum) {
    for (const std::byte* one : from) {
      for (std::int64_t at = 0; at < count; at += static_cast<std::int64_t>(sizeof sum)) {
        Number other;
        std::memcpy(&sum, to + at, sizeof sum);
        std::memcpy(&other, one + at, sizeof other);
        sum = static_cast<Number>(sum + other);
        std::memcpy(to + at, &sum, sizeof sum);
      }
    }
  });
}

void Payload::fill_tensor(int tensor, const std::vector<float>& values, std::byte* payload) const {
  for (const auto& place : places_) {
    if (place.tensor != tensor) continue;
    encode_numbers(format_, values.data() + place.first, place.count, payload + place.at * unit_);
  }
}

std::vector<PayloadSlice> Payload::slices(bool all_owners) const {
  assert((is_summed() || blocks()) && "pairs and rows have no slices known beforehand");
  const auto unit = blocks() ? std::int64_t{sizeof(float)} : unit_;
  std::vector<PayloadSlice> list;
  if (layout_ != Layout::kShards) {
    list = places_;
    for (PayloadSlice& slice : list) slice.at *= unit;
    return list;
  }
  std::int64_t at = 0;
  for (int owner = 0; owner < ranks_; ++owner) {
    for (const PayloadSlice& place : places_) {
      const std::int64_t length = place.count / ranks_;
      if (all_owners || owner == rank_) {
        list.push_back({place.tensor, owner * length, length, at * unit});
      }
      at += length;
    }
  }
  return list;
}

std::vector<PayloadSlice> Payload::filled_slices() const { return slices(scatters_); }
std::vector<PayloadSlice> Payload::read_back() const { return slices(!scatters_); }

void Payload::fill(RankGradients& gradients, std::byte* payload) const {
  if (layout_ == Layout::kPairs) return fill_pairs(gradients, payload);
  if (layout_ == Layout::kRows) return fill_rows(gradients, payload);
  if (layout_ == Layout::kFactors) return fill_factors(gradients, payload);
  if (layout_ == Layout::kBlocks) return fill_blocks(gradients, payload);
  for (const auto& [tensor, first, count, at] : filled_slices()) {
    const auto& values = gradients[index(tensor)];
    encode_numbers(format_, values.data() + first, count, payload + at);
  }
  if (layout_ == Layout::kShards) return;
  const std::int64_t end = places_.empty() ? 0 : places_.back().at + places_.back().count;
  std::memset(payload + end * unit_, 0, static_cast<std::size_t>((elements_ - end) * unit_));
}

void Payload::read(const std::byte* payload, RankGradients& gradients) const {
  if (layout_ == Layout::kPairs) return read_pairs(payload, gradients);
  if (layout_ == Layout::kRows) return read_rows(payload, gradients);
  if (layout_ == Layout::kFactors) return read_factors(payload, gradients);
  if (layout_ == Layout::kBlocks) return read_blocks(payload, gradients);
  for (const auto& [tensor, first, count, at] : read_back()) {
    auto& values = gradients[index(tensor)];
    decode_numbers(format_, payload + at, count, values.data() + first);
  }
}

void Payload::fill_pairs(RankGradients& gradients, std::byte* payload) const {
  auto& gradient = gradients[index(bucket_.tensors.front())];
  const compress::Encoded own = bucket_.codec->encode(gradient, bucket_.kept);
  std::byte* at = payload + rank_ * bucket_.kept * unit_;
  // Only a smaller tensor has fewer than `kept` elements: the rest adds zero.
  std::memset(at, 0, static_cast<std::size_t>(bucket_.kept * unit_));
  for (std::size_t i = 0; i < own.indices.size(); ++i, at += unit_) {
    std::memcpy(at, &own.indices[i], sizeof(std::int32_t));
    std::memcpy(at + sizeof(std::int32_t), &own.values[i], sizeof(float));
  }
}

void Payload::read_pairs(const std::byte* payload, RankGradients& gradients) const {
  auto& sum = gradients[index(bucket_.tensors.front())];
  std::fill(sum.begin(), sum.end(), 0.0F);
  compress::Encoded encoded;
  const auto kept = static_cast<std::size_t>(bucket_.kept);
  encoded.indices.resize(kept);
  encoded.values.resize(kept);
  for (int from = 0; from < ranks_; ++from) {
    for (std::size_t i = 0; i < kept; ++i, payload += unit_) {
      std::memcpy(&encoded.indices[i], payload, sizeof(std::int32_t));
      std::memcpy(&encoded.values[i], payload + sizeof(std::int32_t), sizeof(float));
    }
    bucket_.codec->add(encoded, sum);
  }
}

std::vector<float> starting_factor(const FactorPlace& place) {
  auto q =
      compress::starting_factor(place.matrix, static_cast<std::uint64_t>(place.tensors.front()));
  compress::orthogonalise(q, place.matrix.rank);
  return q;
}

std::vector<float> Payload::numbers_at(const std::byte* payload, std::int64_t first,
                                       std::int64_t count) const {
  std::vector<float> values(index(count));
  decode_numbers(format_, payload + first * unit_, count, values.data());
  return values;
}

void Payload::fill_factors(const RankGradients& gradients, std::byte* payload) const {
  std::memset(payload, 0, static_cast<std::size_t>(bytes()));
  for (const FactorPlace& place : factors_) {
    const auto own = joined(gradients, place.tensors);
    const compress::LowRank& matrix = place.matrix;
    if (matrix.rank == 0) {
      encode_numbers(format_, own.data(), matrix.elements, payload + place.p * unit_);
      continue;
    }
    const auto p = compress::first_factor(own, matrix, starting_factor(place));
    encode_numbers(format_, p.data(), matrix.rows * matrix.rank, payload + place.p * unit_);
  }
}

// Makes the columns orthogonal. All ranks get the same ones, as all have the same sum.
void Payload::between(std::size_t n, const RankGradients& gradients, std::byte* payload) const {
  if (!works_behind(n)) return;
  for (const auto& [tensors, matrix, first, second] : factors_) {
    if (matrix.rank == 0) continue;
    auto p = numbers_at(payload, first, matrix.rows * matrix.rank);
    compress::orthogonalise(p, matrix.rank);
    encode_numbers(format_, p.data(), matrix.rows * matrix.rank, payload + first * unit_);
    const auto q = compress::second_factor(joined(gradients, tensors), matrix, p);
    encode_numbers(format_, q.data(), matrix.columns * matrix.rank, payload + second * unit_);
  }
}

void Payload::read_factors(const std::byte* payload, RankGradients& gradients) const {
  for (const auto& [tensors, matrix, first, second] : factors_) {
    if (matrix.rank == 0) {
      part(numbers_at(payload, first, matrix.elements), tensors, gradients);
      continue;
    }
    const auto p = numbers_at(payload, first, matrix.rows * matrix.rank);
    const auto q = numbers_at(payload, second, matrix.columns * matrix.rank);
    std::vector<float> own(index(matrix.elements));
    compress::multiply(p, q, matrix, own);
    part(own, tensors, gradients);
  }
}

void Payload::fill_blocks(const RankGradients& gradients, std::byte* payload) const {
  const compress::Codec& codec = *bucket_.codec;
  assert(unit_ == codec.encoded_bytes(codec.block, codec.block) && "blocks travel whole");
  std::vector<float> row(static_cast<std::size_t>(elements_ * codec.block), 0.0F);
  for (const auto& place : places_) {
    const auto& values = gradients[index(place.tensor)];
    std::copy_n(values.begin() + place.first, place.count, row.begin() + place.at);
  }
  for (std::int64_t i = 0; i < elements_; ++i) {
    codec.pack(row.data() + i * codec.block, payload + i * unit_);
  }
}

void Payload::read_blocks(const std::byte* payload, RankGradients& gradients) const {
  const compress::Codec& codec = *bucket_.codec;
  std::vector<float> row(static_cast<std::size_t>(elements_ * codec.block));
  for (std::int64_t i = 0; i < elements_; ++i) {
    codec.unpack(payload + i * unit_, row.data() + i * codec.block);
  }
  for (const auto& place : places_) {
    auto& values = gradients[index(place.tensor)];
    std::copy_n(row.begin() + place.at, place.count, values.begin() + place.first);
  }
}

void Payload::add_blocks(std::byte* to, std::span<const std::byte* const> from,
                         std::int64_t count) const {
  const compress::Codec& codec = *bucket_.codec;
  std::vector<float> sum(static_cast<std::size_t>(codec.block));
  std::vector<float> other(sum.size());
  for (std::int64_t at = 0; at < count; at += unit_) {
    codec.unpack(to + at, sum.data());
    for (const std::byte* one : from) {
      codec.unpack(one + at, other.data());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
    }
    codec.pack(sum.data(), to + at);
  }
}

void Payload::fill_rows(const RankGradients& gradients, std::byte* payload) const {
  const auto& dense = gradients[index(bucket_.tensors.front())];
  std::byte* at = payload + rank_ * bucket_.kept * unit_;
  std::int64_t found = 0;
  for (std::int64_t row = 0; row < rows_ && found < bucket_.kept; ++row) {
    const float* values = dense.data() + row * width_;
    if (std::all_of(values, values + width_, [](float value) { return value == 0; })) continue;
    std::memcpy(at, &row, sizeof row);
    encode_numbers(format_, values, width_, at + sizeof row);
    at += unit_;
    ++found;
  }
  constexpr std::int64_t kNone = -1;
  for (; found < bucket_.kept; ++found, at += unit_) {
    std::memset(at, 0, static_cast<std::size_t>(unit_));
    std::memcpy(at, &kNone, sizeof kNone);
  }
}

void Payload::read_rows(const std::byte* payload, RankGradients& gradients) const {
  auto& sum = gradients[index(bucket_.tensors.front())];
  std::fill(sum.begin(), sum.end(), 0.0F);
  std::vector<float> values(static_cast<std::size_t>(width_));
  for (std::int64_t i = 0; i < ranks_ * bucket_.kept; ++i, payload += unit_) {
    std::int64_t row = 0;
    std::memcpy(&row, payload, sizeof row);
    if (row < 0) continue;
    decode_numbers(format_, payload + sizeof row, width_, values.data());
    for (std::int64_t e = 0; e < width_; ++e) {
      sum[index(row * width_ + e)] += values[index(e)];
    }
  }
}

}  // namespace syncline::run
