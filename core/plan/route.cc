//   flat     one all-reduce among all ranks
//   leaders  reduce (or, as Paddle's documents have it, all-reduce) inside each group; all-reduce
//            among the leaders; broadcast inside each group
//   sharded  reduce-scatter inside each group; all-reduce of each shard across the groups;
//            all-gather inside each group
#include "core/plan/route.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/algorithm.h"
#include "core/base/index.h"
#include "core/base/internal_error.h"
#include "core/collective/library.h"
#include "core/collective/nccl.h"
#include "core/compress/power_sgd.h"
#include "core/plan/fusion.h"

namespace syncline::plan {
namespace {

using collective::Collective;
using collective::CollectiveKind;

// Rows of a sparse gradient each travel with an int64 row index.
constexpr Bytes kRowIndexBytes = 8;

const std::string& named(const std::string& name, const std::string& fallback) {
  return name.empty() ? fallback : name;
}

// Returns the elements of a part. Parts are of one size: rounded up so that no element is lost.
std::int64_t part_of(std::int64_t elements, int parts) { return (elements + parts - 1) / parts; }

collective::Groups groups_of(int ranks, int size) {
  return size == ranks ? collective::world_group(ranks) : collective::block_groups(ranks, size);
}

// A payload of `elements`, each of `unit` bytes.
struct Payload {
  std::int64_t elements = 0;
  Bytes unit = 4;
  bool blocks = false;  // with scales; no library sums them
};

Payload uncompressed(const Bucket& bucket) {
  const Bytes unit = size_of(bucket.dtype);
  return {(bucket.padded_bytes + unit - 1) / unit, unit};
}

// Returns the summed payload of a bucket; its codec, if any, keeps every element.
Payload summed(const Bucket& bucket) {
  if (bucket.codec == nullptr) return uncompressed(bucket);
  const std::int64_t block = bucket.codec->block;
  return {(bucket.elements + block - 1) / block, bucket.codec->encoded_bytes(block, block),
          block > 1};
}

// Returns parameters in their own format (FrameworkTraits::gather_bytes), padded like gradients.
Payload gathered(const Bucket& bucket, const Workload& workload, int bytes) {
  if (bytes == 0) return summed(bucket);
  const std::int64_t elements = uncompressed(bucket).elements;
  if (bytes > 1) return {elements, bytes};
  std::int64_t others = 0;
  for (const int t : bucket.tensors) {
    const Tensor& tensor = workload.tensors[index(t)];
    if (!layer_matrix(tensor)) others += tensor.elements;
  }
  return {elements + others, 1};
}

class Routes {
 public:
  Routes(const Cluster& cluster, const Strategy& strategy)
      : cluster_(cluster), strategy_(strategy), ranks_(cluster.ranks()) {}

  RouteStep leg(CollectiveKind kind, const std::string& algorithm, collective::Groups groups,
                const Payload& payload) const {
    expect_ranks(groups, ranks_, strategy_);
    RouteStep made{{kind, nullptr, groups, payload.elements, payload.unit, 0, {}}};
    const bool direct = kind == CollectiveKind::kReduceScatter && goes_direct(algorithm, payload);
    const std::string_view chosen = direct ? collective::all_to_all()->name : algorithm;
    collective::choose_algorithm(made.collective, chosen, cluster_);
    return made;
  }

  // Appends one collective, or two for an all-reduce of blocks: all to all, for each rank to sum
  // its part, and the library's all-gather of the sums.
  void append(Route& route, CollectiveKind kind, const std::string& algorithm,
              collective::Groups groups, const Payload& payload) const {
    if (kind != CollectiveKind::kAllReduce || !goes_direct(algorithm, payload)) {
      route.push_back(leg(kind, algorithm, groups, payload));
      return;
    }
    route.push_back(leg(CollectiveKind::kReduceScatter, algorithm, groups, payload));
    route.push_back(leg(CollectiveKind::kAllGather,
                        std::string(collective::library_algorithm(cluster_)), groups, payload));
  }

  // Returns one logical all-reduce by the strategy's hierarchy.
  Route all_reduce(const Payload& payload) const {
    const Hierarchy& hierarchy = strategy_.hierarchy;
    constexpr std::size_t kMostLegs = 3;
    Route route;
    route.reserve(hierarchy.form == Hierarchy::Form::kFlat ? 1 : kMostLegs);
    const auto add = [&](CollectiveKind kind, const std::string& algorithm,
                         collective::Groups groups, std::int64_t elements) {
      if (groups.size < 2) return;
      const std::size_t first = route.size();
      append(route, kind, algorithm, groups, {elements, payload.unit, payload.blocks});
      const bool own = strategy_.traits.across_stream && kind != CollectiveKind::kReduceScatter;
      for (std::size_t i = first; i < route.size(); ++i) route[i].own_stream = own;
    };
    if (hierarchy.form == Hierarchy::Form::kFlat) {
      add(CollectiveKind::kAllReduce, strategy_.algorithm, collective::world_group(ranks_),
          payload.elements);
      return route;
    }
    // Two levels: inside blocks of neighbours, which share fast links, and across them.
    const int size = hierarchy.group_size;
    const collective::Groups blocks = collective::block_groups(ranks_, size);
    if (hierarchy.form == Hierarchy::Form::kLeaders) {
      add(hierarchy.first_all_reduce ? CollectiveKind::kAllReduce : CollectiveKind::kReduce,
          inside(), blocks, payload.elements);
      const std::size_t inner = route.size();
      add(CollectiveKind::kAllReduce, across(), collective::leader_group(ranks_, size),
          payload.elements);
      set_across_last(route, inner);
      add(CollectiveKind::kBroadcast, inside(), blocks, payload.elements);
      return route;
    }
    // Sharded: every rank of a block carries its part across, so all NICs work at once.
    const std::int64_t part = part_of(payload.elements, size);
    add(CollectiveKind::kReduceScatter, inside(), blocks, part * size);
    const std::size_t inner = route.size();
    add(CollectiveKind::kAllReduce, across(), collective::shard_groups(ranks_, size), part);
    set_across_last(route, inner);
    add(CollectiveKind::kAllGather, inside(), blocks, part * size);
    return route;
  }

  // Returns an all-gather of `elements` units in total, always flat: Paddle's sparse exchange
  // ignores the hierarchy. It uses the strategy's algorithm if that gathers, else the ring.
  Route all_gather(const Payload& payload) const {
    const bool fits =
        collective::choice_fits(strategy_.algorithm, CollectiveKind::kAllGather, ranks_);
    return {leg(CollectiveKind::kAllGather, fits ? strategy_.algorithm : "ring",
                collective::world_group(ranks_), payload)};
  }

  // Returns one collective in shard groups of `size`; empty if a rank has all of the payload.
  Route half(CollectiveKind kind, Payload payload, int size) const {
    if (size < 2) return {};
    if (size < ranks_) payload.elements = size * part_of(payload.elements, size);
    return {leg(kind, size < ranks_ ? inside() : strategy_.algorithm, groups_of(ranks_, size),
                payload)};
  }

  // Returns a reduce-scatter inside shard groups and, with several groups, an all-reduce of each
  // shard across them.
  Route scatter(const Bucket& bucket) const {
    const int size = shard_ranks(strategy_, ranks_);
    Payload payload = summed(bucket);
    Route route = half(CollectiveKind::kReduceScatter, payload, size);
    if (size == ranks_) return route;
    payload.elements = part_of(payload.elements, size);
    append(route, CollectiveKind::kAllReduce, across(), collective::shard_groups(ranks_, size),
           payload);
    const std::size_t inner = size > 1 ? 1 : 0;
    for (RouteStep& leg : std::span(route).subspan(inner)) {
      leg.own_stream = strategy_.traits.across_stream;
    }
    set_across_last(route, inner);
    return route;
  }

  // Returns the route of a bucket by its format. Selections by each rank (rows, pairs of index and
  // value) have to be gathered, as they cannot be summed on the way. All else is summed.
  Route sum(const Bucket& bucket, const Workload& workload) const {
    const compress::Codec* codec = bucket.codec;
    if (bucket.sparse) {
      const Tensor& tensor = workload.tensors[index(bucket.tensors.front())];
      const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front();
      return all_gather({bucket.kept * ranks_, tensor.bytes() / rows + kRowIndexBytes});
    }
    if (codec != nullptr && codec->low_rank) return factors(bucket);
    if (codec == nullptr || !codec->sparse) return all_reduce(summed(bucket));
    const Bytes bytes = codec->encoded_bytes(bucket.elements, bucket.kept);
    return all_gather({bucket.kept * ranks_, bytes / bucket.kept});
  }

  // Returns the route of data that groups of `size` neighbours share: each rank carries its part
  // across; if ranks hold more than a part, an all-gather inside each group follows.
  Route across_groups(const Bucket& bucket, int size, bool whole) const {
    Payload payload = summed(bucket);
    payload.elements = part_of(payload.elements, size);
    Route route;
    append(route, CollectiveKind::kAllReduce, strategy_.algorithm,
           size > 1 ? collective::shard_groups(ranks_, size) : collective::world_group(ranks_),
           payload);
    if (size > 1 && whole) {
      payload.elements *= size;
      append(route, CollectiveKind::kAllGather, strategy_.algorithm,
             collective::block_groups(ranks_, size), payload);
    }
    return route;
  }

 private:
  const std::string& inside() const {
    return named(strategy_.hierarchy.inside, strategy_.algorithm);
  }
  const std::string& across() const {
    return named(strategy_.hierarchy.across, strategy_.algorithm);
  }

  // True for blocks that ranks sum: NCCL sums none; other algorithms round once per round.
  static bool goes_direct(const std::string& algorithm, const Payload& payload) {
    return payload.blocks &&
           (algorithm == collective::kNcclName || algorithm == collective::all_to_all()->name);
  }

  // Sets last_micro_batch for the legs from `first` on, which cross groups.
  void set_across_last(Route& route, std::size_t first) const {
    for (RouteStep& leg : std::span(route).subspan(first)) {
      leg.last_micro_batch = strategy_.traits.across_last;
    }
  }

  // Returns the route of uncompressed elements, then the first factors, then the second ones, as
  // torch's hook sends them.
  Route factors(const Bucket& bucket) const {
    const auto sizes = compress::low_rank_sizes(bucket.factors);
    Route route;
    for (const std::int64_t elements : {sizes.whole, sizes.p, sizes.q}) {
      if (elements == 0) continue;
      for (const RouteStep& leg : all_reduce({elements, size_of(bucket.dtype)}))
        route.push_back(leg);
    }
    return route;
  }

  const Cluster& cluster_;
  const Strategy& strategy_;
  int ranks_;
};

// Times of copying, encoding and decoding.
class Handling {
 public:
  Handling(const Workload& workload, const Cluster& cluster, const Strategy& strategy)
      : workload_(workload), cluster_(cluster), strategy_(strategy) {}

  // Returns the time of one copy between the gradients' own memory and the bucket's: measured, else
  // by the bytes read and written.
  Seconds copy(const Bucket& bucket, bool into) const {
    if (!strategy_.bucket_copies && !strategy_.fusion.sums_in_fp32()) return 0;
    Bytes own = 0;
    Seconds measured = 0;
    for (const int number : bucket.tensors) {
      const std::size_t t = index(number);
      if (t >= workload_.tensors.size()) continue;
      const Tensor& tensor = workload_.tensors[t];
      const bool part = bucket.tensors.size() == 1 && bucket.elements < tensor.elements;
      const std::int64_t elements = part ? bucket.elements : tensor.elements;
      const double share = static_cast<double>(elements) / static_cast<double>(tensor.elements);
      own += elements * size_of(tensor.dtype);
      measured += (into ? tensor.copy_in : tensor.copy_out) * share;
    }
    const bool cast = own != bucket.bytes && strategy_.fusion.sums_in_fp32();
    if (bucket.sparse || (!strategy_.bucket_copies && !cast)) return 0;
    if (workload_.copies_measured && !cast) return measured;
    return memory_time(static_cast<double>(own + bucket.bytes));
  }

  // Returns the encoding time. Low-rank codec: matrix products at the device's rate or its
  // memory's, the slower of both; work between the sums of the two factors counts as decoding.
  Seconds encode(const Bucket& bucket) const {
    const Seconds launches = launches_of(bucket, strategy_.compression.encode_launches);
    if (bucket.codec->low_rank) {
      const auto sizes = compress::low_rank_sizes(bucket.factors);
      return launches + work_time(compress::encode_work(sizes, size_of(bucket.dtype)));
    }
    if (bucket.codec->sparse && cluster_.device.select > 0) {
      return launches + cluster_.device.selection +
             static_cast<double>(bucket.elements) / cluster_.device.select;
    }
    return launches + codec_time(bucket, bucket.codec->encode_traffic(bucket.elements, bucket.kept,
                                                                      size_of(bucket.dtype)));
  }

  // Returns the decoding time, including sums by the ranks themselves on the way.
  Seconds decode(const Bucket& bucket, const Route& reduce) const {
    const Seconds launches = launches_of(bucket, strategy_.compression.decode_launches);
    if (bucket.codec->low_rank) {
      const auto sizes = compress::low_rank_sizes(bucket.factors);
      return launches + work_time(compress::decode_work(sizes, size_of(bucket.dtype)));
    }
    const double own = bucket.codec->decode_traffic(bucket.elements, bucket.kept, cluster_.ranks(),
                                                    size_of(bucket.dtype));
    return launches + codec_time(bucket, own + sums_traffic(reduce));
  }

 private:
  // Returns launch time, once per bucket or once per matrix of it.
  Seconds launches_of(const Bucket& bucket, std::int64_t count) const {
    const auto matrices =
        bucket.codec->low_rank ? compress::low_rank_sizes(bucket.factors).matrices : 1;
    return static_cast<double>(count) * static_cast<double>(matrices) * cluster_.device.launch;
  }

  // Returns the traffic of sums: a rank reads its part of all ranks' blocks and writes their sum.
  static double sums_traffic(const Route& reduce) {
    double bytes = 0;
    for (const RouteStep& leg : reduce) {
      if (leg.collective.algorithm != collective::all_to_all()) continue;
      bytes += static_cast<double>(leg.collective.bytes()) * (1 + 1.0 / leg.collective.groups.size);
    }
    return bytes;
  }

  Seconds memory_time(double bytes) const {
    return cluster_.device.memory > 0 ? bytes / cluster_.device.memory : 0;
  }

  // Returns the roofline time: a device computes and moves bytes at the same time.
  Seconds work_time(const compress::LowRankWork& work) const {
    const double rate = cluster_.device.flops;
    return std::max(memory_time(work.bytes), rate > 0 ? work.flops / rate : 0);
  }

  Seconds codec_time(const Bucket& bucket, double traffic) const {
    const bool rounded = !bucket.codec->sparse && cluster_.device.rounding > 0;
    return rounded ? traffic / cluster_.device.rounding : memory_time(traffic);
  }

  const Workload& workload_;
  const Cluster& cluster_;
  const Strategy& strategy_;
};

}  // namespace

void expect_ranks(const collective::Groups& groups, int ranks, const Strategy& strategy) {
  const int runs = groups.run > 0 ? (groups.count - 1) / groups.run : 0;
  const int in_run = groups.run > 0 ? std::min(groups.run, groups.count) : groups.count;
  const int reach = (groups.size - 1) * groups.member_step;
  const int first = groups.base + std::min(0, reach);
  const int last =
      groups.base + runs * groups.run_step + (in_run - 1) * groups.group_step + std::max(0, reach);
  if (groups.count > 0 && groups.size > 0 && first >= 0 && last < ranks) return;
  throw InternalError("strategy '" + strategy.name + "': " + std::to_string(groups.count) +
                      " groups of " + std::to_string(groups.size) + " ranks, up to rank " +
                      std::to_string(last) + " of " + std::to_string(ranks));
}

BucketExchange exchange_of(Bucket given, const Workload& workload, const Cluster& cluster,
                           const Strategy& strategy) {
  BucketExchange exchange;
  exchange.bucket = std::move(given);
  if (cluster.ranks() == 1) return exchange;
  const Bucket& bucket = exchange.bucket;
  const Handling handling(workload, cluster, strategy);
  exchange.copy_in = handling.copy(bucket, true);
  exchange.copy_out = handling.copy(bucket, false);
  exchange.reduce = Routes(cluster, strategy).sum(bucket, workload);
  if (bucket.codec != nullptr) exchange.encode = handling.encode(bucket);
  if (bucket.codec != nullptr) exchange.decode = handling.decode(bucket, exchange.reduce);
  return exchange;
}

Route sum_across_groups(const Bucket& bucket, const Cluster& cluster, const Strategy& strategy) {
  return Routes(cluster, strategy)
      .across_groups(bucket, strategy.local_sgd.subgroup, !holds_shards(strategy));
}

Route scatter_of(const Bucket& bucket, const Cluster& cluster, const Strategy& strategy) {
  return Routes(cluster, strategy).scatter(bucket);
}

Route gather_of(const Bucket& bucket, const Workload& workload, const Cluster& cluster,
                const Strategy& strategy, bool again) {
  const bool second = again && strategy.traits.regather_group > 0;
  const int size = second ? strategy.traits.regather_group : shard_ranks(strategy, cluster.ranks());
  const Payload payload = gathered(bucket, workload, strategy.traits.gather_bytes);
  return Routes(cluster, strategy).half(CollectiveKind::kAllGather, payload, size);
}

}  // namespace syncline::plan
