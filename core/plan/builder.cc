#include "core/plan/builder.h"

#include <algorithm>

#include "core/collective/nccl.h"

#include "core/plan/hierarchy.h"

namespace syncline::plan {
namespace {

// Rows of a sparse gradient travel with an int64 row index each.
constexpr Bytes kRowIndexBytes = 8;

collective::Groups groups_of(int ranks, int size) {
  return size == ranks ? collective::world_group(ranks) : collective::block_groups(ranks, size);
}

}  // namespace

void Builder::earlier_micro_batches() {
  for (std::int64_t m = 1; m < workload_.micro_batches; ++m) {
    compute(Phase::kBackward, backward_time(workload_));
    compute(Phase::kForward, workload_.forward);
  }
}

OpId Builder::prepare(std::size_t index, OpId ready) {
  const Bucket& bucket = plan.buckets[index];
  if (plan.ranks == 1) return ready;
  if (const Seconds seconds = copy_time(bucket, true); seconds > 0) {
    ready = add(kComputeStream, Busy{Busy::Reason::kCopyIn, seconds, static_cast<int>(index)});
  }
  if (bucket.codec != nullptr) {
    ready = add(kComputeStream,
                Busy{Busy::Reason::kEncode, encode_time(bucket), static_cast<int>(index)});
  }
  return ready;
}

OpId Builder::send(const std::vector<collective::Collective>& collectives, StreamId stream,
                   std::vector<OpId> after) {
  OpId last = after.empty() ? OpId{-1} : after.back();
  const Seconds host_sync = strategy_.host_sync ? cluster_.device.host_sync : 0;
  for (const auto& collective : collectives) {
    // Between the phases of a hierarchy the host waits as it does behind the last one.
    const bool follows = &collective != &collectives.front();
    if (follows && host_sync > 0) after = {wait_for_host(host_sync, {}, stream)};
    const bool scatters = collective.kind == collective::CollectiveKind::kReduceScatter;
    if (follows && !scatters && across_stream_ != kComputeStream) stream = across_stream_;
    // Stream order already holds an operation back until its predecessor there is done.
    std::erase_if(after,
                  [&](OpId id) { return plan.ops[static_cast<std::size_t>(id)].stream == stream; });
    last = add(stream, collective, std::move(after));
    after = {last};
  }
  return last;
}

OpId Builder::gather(std::size_t index, StreamId stream, std::vector<OpId> after, bool again) {
  const bool second = again && strategy_.regather_group > 0;
  const int size = second ? strategy_.regather_group : shard_ranks(strategy_, plan.ranks);
  const auto half =
      half_of(collective::CollectiveKind::kAllGather, index, groups_of(plan.ranks, size));
  const OpId sent = send({half}, stream, std::move(after));
  plan.ops[static_cast<std::size_t>(sent)].gathers = true;
  return sent;
}

OpId Builder::receive(std::size_t index, OpId last) {
  const Bucket& bucket = plan.buckets[index];
  if (plan.ranks == 1) return last;
  const StreamId stream = plan.ops[static_cast<std::size_t>(last)].stream;
  if (bucket.codec != nullptr) {
    last = add(stream, Busy{Busy::Reason::kDecode, decode_time(bucket), static_cast<int>(index)});
  }
  if (strategy_.host_sync && cluster_.device.host_sync > 0) {
    last = wait_for_host(cluster_.device.host_sync, {}, stream);
  }
  return last;
}

OpId Builder::copy_out(std::size_t index, OpId arrived) {
  const Seconds seconds = copy_time(plan.buckets[index], false);
  if (plan.ranks == 1 || seconds <= 0) return arrived;
  return add(kComputeStream, Busy{Busy::Reason::kCopyOut, seconds, static_cast<int>(index)},
             {arrived});
}

void Builder::host_gap(std::vector<OpId> after) {
  if (workload_.host_gap > 0) wait_for_host(workload_.host_gap, std::move(after));
}

OpId Builder::exchange(std::size_t index, OpId ready) {
  if (plan.ranks == 1) return ready;
  const auto collectives = collectives_of(plan.buckets[index], static_cast<int>(index));
  const OpId prepared = prepare(index, ready);
  return receive(index, send(collectives, stream_of(index), {prepared}));
}

collective::Collective Builder::half_of(collective::CollectiveKind kind, std::size_t index,
                                        collective::Groups groups) const {
  const Bucket& bucket = plan.buckets[index];
  const Bytes unit =
      bucket.codec == nullptr ? size_of(bucket.dtype) : bucket.codec->encoded_bytes(1, 1);
  std::int64_t elements =
      bucket.codec == nullptr ? (bucket.padded_bytes + unit - 1) / unit : bucket.elements;
  // Parts of groups are of one size, so that they can be summed across.
  if (groups.size < plan.ranks) elements = (elements + groups.size - 1) / groups.size * groups.size;
  collective::Collective half{kind, nullptr, groups, elements, unit, static_cast<int>(index), {}};
  const bool inside = groups.size < plan.ranks && !strategy_.hierarchy.inside.empty();
  collective::choose_algorithm(half, inside ? strategy_.hierarchy.inside : strategy_.algorithm,
                               cluster_);
  return half;
}

std::vector<collective::Collective> Builder::scattered(std::size_t index) const {
  const int size = shard_ranks(strategy_, plan.ranks);
  std::vector<collective::Collective> legs{
      half_of(collective::CollectiveKind::kReduceScatter, index, groups_of(plan.ranks, size))};
  if (size == plan.ranks) return legs;
  collective::Collective across = legs.front();
  across.kind = collective::CollectiveKind::kAllReduce;
  across.groups = collective::shard_groups(plan.ranks, size);
  across.elements /= size;
  const std::string& own = strategy_.hierarchy.across;
  collective::choose_algorithm(across, own.empty() ? strategy_.algorithm : own, cluster_);
  legs.push_back(across);
  return in_micro_batch(std::move(legs));
}

std::vector<collective::Collective> Builder::in_micro_batch(
    std::vector<collective::Collective> collectives) const {
  if (!strategy_.hierarchy.across_last || last_micro_batch) return collectives;
  const int size = strategy_.hierarchy.group_size;
  std::erase_if(collectives, [&](const collective::Collective& one) {
    return one.groups == collective::shard_groups(plan.ranks, size) ||
           one.groups == collective::leader_group(plan.ranks, size);
  });
  return collectives;
}

// How a bucket travels follows from what it is. Under post-local SGD gradients stay in their group.
// What ranks select for themselves (rows, pairs of index and value) has to be gathered: no sum can
// be taken on the way. Everything else is summed by the strategy's hierarchy.
std::vector<collective::Collective> Builder::collectives_of(const Bucket& bucket, int id) const {
  const int ranks = plan.ranks;
  if (subgroup > 1) {
    const Bytes unit = size_of(bucket.dtype);
    collective::Collective inside{collective::CollectiveKind::kAllReduce,
                                  nullptr,
                                  collective::block_groups(ranks, subgroup),
                                  (bucket.padded_bytes + unit - 1) / unit,
                                  unit,
                                  id,
                                  {}};
    collective::choose_algorithm(inside, strategy_.algorithm, cluster_);
    return {inside};
  }
  if (bucket.sparse) {
    const Tensor& tensor = workload_.tensors[static_cast<std::size_t>(bucket.tensors.front())];
    const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front();
    const Bytes row = tensor.bytes() / rows + kRowIndexBytes;
    return {all_gather_by(strategy_, cluster_, bucket.kept * ranks, row, id)};
  }
  if (bucket.codec != nullptr && bucket.codec->sparse) {
    const Bytes pair = bucket.codec->encoded_bytes(bucket.elements, bucket.kept) / bucket.kept;
    return {all_gather_by(strategy_, cluster_, bucket.kept * ranks, pair, id)};
  }
  if (bucket.codec != nullptr && bucket.codec->low_rank) return factors_of(bucket, id);
  if (bucket.codec != nullptr) {
    const Bytes bytes = bucket.codec->encoded_bytes(bucket.elements, bucket.kept);
    return all_reduce_by(strategy_, cluster_, bucket.elements, bytes / bucket.elements, id);
  }
  const Bytes unit = size_of(bucket.dtype);
  return all_reduce_by(strategy_, cluster_, (bucket.padded_bytes + unit - 1) / unit, unit, id);
}

// What is not compressed, then the first factors, then the second ones, as torch's hook sends them.
std::vector<collective::Collective> Builder::factors_of(const Bucket& bucket, int id) const {
  const auto sizes = compress::low_rank_sizes(bucket.factors);
  std::vector<collective::Collective> collectives;
  for (const std::int64_t elements : {sizes.whole, sizes.p, sizes.q}) {
    if (elements == 0) continue;
    for (const auto& one :
         all_reduce_by(strategy_, cluster_, elements, size_of(bucket.dtype), id)) {
      collectives.push_back(one);
    }
  }
  return collectives;
}

Seconds Builder::copy_time(const Bucket& bucket, bool into) const {
  Bytes own = 0;
  Seconds measured = 0;
  for (const int index : bucket.tensors) {
    const auto t = static_cast<std::size_t>(index);
    if (t >= workload_.tensors.size()) continue;
    const Tensor& tensor = workload_.tensors[t];
    const bool part = bucket.tensors.size() == 1 && bucket.elements < tensor.elements;
    const std::int64_t elements = part ? bucket.elements : tensor.elements;
    const double share = static_cast<double>(elements) / static_cast<double>(tensor.elements);
    own += elements * size_of(tensor.dtype);
    measured += (into ? tensor.copy_in : tensor.copy_out) * share;
  }
  const bool cast = own != bucket.bytes && strategy_.fusion.to_fp32;
  if (bucket.sparse || (!strategy_.bucket_copies && !cast)) return 0;
  if (workload_.copies_measured && !cast) return measured;
  return memory_time(static_cast<double>(own + bucket.bytes));
}

Seconds Builder::work_time(const compress::LowRankWork& work) const {
  const double rate = cluster_.device.flops;
  return std::max(memory_time(work.bytes), rate > 0 ? work.flops / rate : 0);
}

Seconds Builder::encode_time(const Bucket& bucket) const {
  const auto launches = static_cast<double>(strategy_.compression.encode_launches);
  if (bucket.codec->low_rank) {
    const auto sizes = compress::low_rank_sizes(bucket.factors);
    return launches * static_cast<double>(sizes.matrices) * cluster_.device.launch +
           work_time(compress::encode_work(sizes, size_of(bucket.dtype)));
  }
  if (bucket.codec->sparse && cluster_.device.select > 0) {
    return launches * cluster_.device.launch + cluster_.device.selection +
           static_cast<double>(bucket.elements) / cluster_.device.select;
  }
  return launches * cluster_.device.launch +
         codec_time(bucket, bucket.codec->encode_traffic(bucket.elements, bucket.kept,
                                                         size_of(bucket.dtype)));
}

Seconds Builder::decode_time(const Bucket& bucket) const {
  const auto launches = static_cast<double>(strategy_.compression.decode_launches);
  if (bucket.codec->low_rank) {
    const auto sizes = compress::low_rank_sizes(bucket.factors);
    return launches * static_cast<double>(sizes.matrices) * cluster_.device.launch +
           work_time(compress::decode_work(sizes, size_of(bucket.dtype)));
  }
  return launches * cluster_.device.launch +
         codec_time(bucket, bucket.codec->decode_traffic(bucket.elements, bucket.kept, plan.ranks,
                                                         size_of(bucket.dtype)));
}

Seconds Builder::codec_time(const Bucket& bucket, double traffic) const {
  const bool rounded = !bucket.codec->sparse && cluster_.device.rounding > 0;
  return rounded ? traffic / cluster_.device.rounding : memory_time(traffic);
}

}  // namespace syncline::plan
