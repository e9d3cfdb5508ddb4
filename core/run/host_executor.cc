#include "core/run/host_executor.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "core/plan/lower.h"

namespace syncline {
namespace {

// A sparse gradient's row on its way; row -1 fills up to the number of rows that every rank sends.
struct SparseRow {
  std::int64_t row = -1;
  std::vector<float> values;
};

template <typename Unit>
using Payloads = std::vector<std::vector<Unit>>;  // by world rank

// Carries out one collective. `offset(group)` is where the group's payload begins in its members'
// arrays; `add` sums one unit into another.
template <typename Unit, typename Offset, typename Add>
void move(const Collective& collective, Payloads<Unit>& payloads, Offset offset, Add add,
          std::vector<Bytes>& sent) {
  const Groups& groups = collective.groups;
  const auto group_of = [&](int rank) {
    for (int g = 0; g < groups.count; ++g) {
      for (int m = 0; m < groups.size; ++m) {
        if (groups.rank(g, m) == rank) return g;
      }
    }
    assert(false && "a transfer stays inside its group");
    return 0;
  };
  for (const Round& round : lower(collective)) {
    // All transfers read what stood before the round.
    std::vector<std::vector<Unit>> messages;
    messages.reserve(round.size());
    for (const auto& transfer : round) {
      const auto& source = payloads[static_cast<std::size_t>(transfer.from)];
      const auto base = source.begin() + offset(group_of(transfer.from));
      messages.emplace_back(base + transfer.elements.begin, base + transfer.elements.end);
      sent[static_cast<std::size_t>(transfer.from)] += transfer.elements.size() * collective.unit;
    }
    for (std::size_t i = 0; i < round.size(); ++i) {
      const Transfer& transfer = round[i];
      auto& target = payloads[static_cast<std::size_t>(transfer.to)];
      auto to = target.begin() + offset(group_of(transfer.to)) + transfer.elements.begin;
      for (auto& unit : messages[i]) {
        if (transfer.add) {
          add(*to, unit);
        } else {
          *to = std::move(unit);
        }
        ++to;
      }
    }
  }
}

class HostExecutor final : public Executor {
 public:
  explicit HostExecutor(const Workload& workload) : workload_(workload) {}

  std::string_view name() const override { return "host"; }

  Outcome run(const Plan& plan, const Gradients& input, int periods) override {
    assert(static_cast<int>(input.size()) == plan.ranks && "one set of gradients a rank");
    Outcome outcome;
    outcome.gradients = input;
    outcome.bytes_sent.assign(static_cast<std::size_t>(plan.ranks), 0);
    for (int p = 0; p < periods; ++p) {
      for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
        if (plan.ranks > 1) exchange(plan, static_cast<int>(b), outcome);
      }
      if (averages(plan)) divide(outcome.gradients, plan.ranks);
    }
    return outcome;
  }

 private:
  static bool averages(const Plan& plan) {
    for (const auto& op : plan.ops) {
      const auto* work = std::get_if<Compute>(&op.work);
      if (work != nullptr && work->phase == Phase::kAverage) return true;
    }
    return false;
  }

  static void divide(Gradients& gradients, int ranks) {
    for (auto& rank : gradients) {
      for (auto& tensor : rank) {
        for (auto& value : tensor) value /= static_cast<float>(ranks);
      }
    }
  }

  static std::vector<Collective> collectives_of(const Plan& plan, int bucket) {
    std::vector<Collective> list;
    for (const auto& op : plan.ops) {
      const auto* collective = std::get_if<Collective>(&op.work);
      if (collective != nullptr && collective->bucket == bucket) list.push_back(*collective);
    }
    return list;
  }

  const Tensor& tensor(int index) const {
    const auto t = static_cast<std::size_t>(index);
    const std::size_t gradients = workload_.tensors.size();
    return t < gradients ? workload_.tensors[t] : workload_.buffers[t - gradients];
  }

  void exchange(const Plan& plan, int id, Outcome& outcome) const {
    const Bucket& bucket = plan.buckets[static_cast<std::size_t>(id)];
    const auto collectives = collectives_of(plan, id);
    if (bucket.sparse) {
      exchange_rows(bucket, collectives.front(), outcome);
    } else if (bucket.codec != nullptr && bucket.codec->sparse) {
      exchange_pairs(bucket, collectives.front(), outcome);
    } else if (collectives.size() == 1 && collectives.front().kind != CollectiveKind::kAllReduce) {
      exchange_shards(plan, bucket, collectives.front(), outcome);
    } else {
      exchange_dense(plan, bucket, collectives, outcome);
    }
  }

  // One half of an exchange whose other half has other buckets: each tensor is split evenly among
  // the ranks, and a bucket holds every rank's slices together, so that slice r of each is at home
  // on rank r between the halves.
  static void exchange_shards(const Plan& plan, const Bucket& bucket, const Collective& collective,
                              Outcome& outcome) {
    const auto ranks = static_cast<std::size_t>(plan.ranks);
    const bool scatter = collective.kind == CollectiveKind::kReduceScatter;
    // Walks a payload and the slices that it is made of: (slice's owner, its value, its place).
    const auto walk = [&](auto& gradients, auto visit) {
      std::size_t place = 0;
      for (std::size_t owner = 0; owner < ranks; ++owner) {
        for (const int index : bucket.tensors) {
          auto& values = gradients[static_cast<std::size_t>(index)];
          assert(values.size() % ranks == 0 && "sharded tensors split evenly");
          const std::size_t length = values.size() / ranks;
          for (std::size_t i = 0; i < length; ++i)
            visit(owner, values[owner * length + i], place++);
        }
      }
    };
    Payloads<float> payloads(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      auto& payload = payloads[rank];
      payload.assign(static_cast<std::size_t>(collective.elements), 0.0F);
      walk(outcome.gradients[rank], [&](std::size_t owner, float value, std::size_t place) {
        if (scatter || owner == rank) payload[place] = value;
      });
    }
    move(
        collective, payloads, [](int) { return 0; },
        [](float& sum, const float& value) { sum += value; }, outcome.bytes_sent);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      walk(outcome.gradients[rank], [&](std::size_t owner, float& value, std::size_t place) {
        if (!scatter || owner == rank) value = payloads[rank][place];
      });
    }
  }

  // Packs the bucket's tensors, each padded as on the wire, runs its collectives, unpacks.
  void exchange_dense(const Plan& plan, const Bucket& bucket,
                      const std::vector<Collective>& collectives, Outcome& outcome) const {
    std::int64_t longest = 0;
    for (const auto& c : collectives) longest = std::max(longest, c.elements);
    const bool padded = bucket.codec == nullptr;
    const std::int64_t padding = bucket.padded_bytes - bucket.bytes;
    Payloads<float> payloads;
    for (auto& gradients : outcome.gradients) {
      auto& payload = payloads.emplace_back();
      payload.reserve(static_cast<std::size_t>(longest));
      for (const int index : bucket.tensors) {
        auto values = gradients[static_cast<std::size_t>(index)];
        if (is_part(bucket, values)) {
          values = {values.begin() + bucket.first, values.begin() + bucket.first + bucket.elements};
        }
        if (bucket.codec != nullptr) values = bucket.codec->encode(values, bucket.kept).values;
        payload.insert(payload.end(), values.begin(), values.end());
        if (padded) payload.resize(payload.size() + padding_of(bucket, index, padding), 0.0F);
      }
      payload.resize(static_cast<std::size_t>(longest), 0.0F);
    }
    for (const auto& collective : collectives) {
      // Shards: group g of an all-reduce among equals owns part g of the whole payload.
      const bool shards = collective.groups.group_step == 1 && collective.elements < longest;
      move(
          collective, payloads, [&](int group) { return shards ? group * collective.elements : 0; },
          [](float& sum, const float& value) { sum += value; }, outcome.bytes_sent);
    }
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(plan.ranks); ++rank) {
      auto from = payloads[rank].begin();
      for (const int index : bucket.tensors) {
        auto& values = outcome.gradients[rank][static_cast<std::size_t>(index)];
        const bool part = is_part(bucket, values);
        const auto count = part ? bucket.elements : static_cast<std::ptrdiff_t>(values.size());
        std::copy(from, from + count, values.begin() + (part ? bucket.first : 0));
        from += count;
        if (padded) from += static_cast<std::ptrdiff_t>(padding_of(bucket, index, padding));
      }
    }
  }

  // Whether the bucket holds no more than a part of this, its only tensor.
  static bool is_part(const Bucket& bucket, const std::vector<float>& values) {
    return bucket.tensors.size() == 1 && bucket.elements < static_cast<std::int64_t>(values.size());
  }

  // Elements of padding behind one tensor. The alignment itself is not in the bucket: with one
  // tensor its padding is the bucket's; with several, all are packed and the padding comes last.
  static std::size_t padding_of(const Bucket& bucket, int index, Bytes padding) {
    const bool last = index == bucket.tensors.back();
    return last ? static_cast<std::size_t>(padding / size_of(bucket.dtype)) : 0;
  }

  void exchange_pairs(const Bucket& bucket, const Collective& collective, Outcome& outcome) const {
    const auto index = static_cast<std::size_t>(bucket.tensors.front());
    const auto kept = static_cast<std::size_t>(bucket.kept);
    const std::size_t ranks = outcome.gradients.size();
    Payloads<std::uint64_t> payloads(ranks, std::vector<std::uint64_t>(kept * ranks, 0));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const Encoded own = bucket.codec->encode(outcome.gradients[rank][index], bucket.kept);
      for (std::size_t i = 0; i < own.indices.size(); ++i) {
        payloads[rank][rank * kept + i] =
            static_cast<std::uint64_t>(static_cast<std::uint32_t>(own.indices[i])) << 32U |
            std::bit_cast<std::uint32_t>(own.values[i]);
      }
    }
    move(
        collective, payloads, [](int) { return 0; },
        [](std::uint64_t&, const std::uint64_t&) { assert(false && "gathered, never summed"); },
        outcome.bytes_sent);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      auto& sum = outcome.gradients[rank][index];
      std::fill(sum.begin(), sum.end(), 0.0F);
      for (std::size_t from = 0; from < ranks; ++from) {
        Encoded encoded;
        for (std::size_t i = 0; i < kept; ++i) {
          const std::uint64_t pair = payloads[rank][from * kept + i];
          encoded.indices.push_back(static_cast<std::int32_t>(pair >> 32U));
          encoded.values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(pair)));
        }
        bucket.codec->add(encoded, sum);
      }
    }
  }

  void exchange_rows(const Bucket& bucket, const Collective& collective, Outcome& outcome) const {
    const auto index = static_cast<std::size_t>(bucket.tensors.front());
    const Tensor& shape = tensor(bucket.tensors.front());
    const std::size_t rows = shape.shape.empty() ? 1 : static_cast<std::size_t>(shape.shape[0]);
    const std::size_t width = static_cast<std::size_t>(shape.elements) / rows;
    const auto kept = static_cast<std::size_t>(bucket.kept);
    const std::size_t ranks = outcome.gradients.size();
    Payloads<SparseRow> payloads(ranks, std::vector<SparseRow>(kept * ranks));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto& dense = outcome.gradients[rank][index];
      std::size_t found = 0;
      for (std::size_t row = 0; row < rows && found < kept; ++row) {
        const auto begin = dense.begin() + static_cast<std::ptrdiff_t>(row * width);
        const std::vector<float> values(begin, begin + static_cast<std::ptrdiff_t>(width));
        if (values == std::vector<float>(width, 0.0F)) continue;
        payloads[rank][rank * kept + found++] = {static_cast<std::int64_t>(row), values};
      }
    }
    move(
        collective, payloads, [](int) { return 0; },
        [](SparseRow&, const SparseRow&) { assert(false && "gathered, never summed"); },
        outcome.bytes_sent);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      auto& sum = outcome.gradients[rank][index];
      std::fill(sum.begin(), sum.end(), 0.0F);
      for (const auto& row : payloads[rank]) {
        if (row.row < 0) continue;
        for (std::size_t i = 0; i < width; ++i) {
          sum[static_cast<std::size_t>(row.row) * width + i] += row.values[i];
        }
      }
    }
  }

  const Workload& workload_;
};

}  // namespace

std::unique_ptr<Executor> make_host_executor(const Workload& workload) {
  return std::make_unique<HostExecutor>(workload);
}

}  // namespace syncline
