#include "core/dialect/pytorch_ddp.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/dialect/write.h"

namespace syncline {
namespace {

// torch/nn/parallel/distributed.py: the first bucket is small so that communication starts early.
constexpr Bytes kFirstBucket = kMiB;
constexpr double kDefaultCapMb = 25;

// compute_bucket_assignment_by_size (torch/csrc/distributed/c10d/reducer.cpp): tensors are added to
// the open bucket of their dtype; a bucket closes once it holds at least its limit, and each dtype
// moves from the first limit to the second after its first full bucket. What is left over closes
// at the end. Buckets are ordered by the smallest index in them.
std::vector<std::vector<int>> assign_by_size(const std::vector<Tensor>& tensors,
                                             const std::vector<int>& order, Bytes first,
                                             Bytes cap) {
  struct Open {
    std::vector<int> places;  // in `order`
    Bytes bytes = 0;
    bool past_first = false;
  };
  std::map<DType, Open> open;
  std::vector<std::vector<int>> closed;
  const auto close = [&](Open& bucket) {
    closed.push_back(std::move(bucket.places));
    bucket.places.clear();
    bucket.bytes = 0;
    bucket.past_first = true;
  };
  for (std::size_t place = 0; place < order.size(); ++place) {
    const Tensor& tensor = tensors[static_cast<std::size_t>(order[place])];
    if (tensor.sparse) {  // a sparse gradient is a bucket by itself
      closed.push_back({static_cast<int>(place)});
      continue;
    }
    Open& bucket = open[tensor.dtype];
    bucket.places.push_back(static_cast<int>(place));
    bucket.bytes += tensor.bytes();
    if (bucket.bytes >= (bucket.past_first ? cap : first)) close(bucket);
  }
  for (auto& [dtype, bucket] : open) {
    if (!bucket.places.empty()) close(bucket);
  }
  std::stable_sort(closed.begin(), closed.end(), [](const auto& a, const auto& b) {
    return *std::min_element(a.begin(), a.end()) < *std::min_element(b.begin(), b.end());
  });
  for (auto& bucket : closed) {
    for (int& place : bucket) place = order[static_cast<std::size_t>(place)];
  }
  return closed;
}

// The keyword arguments of DistributedDataParallel that decide what is communicated, and the
// communication hook by its name in torch.distributed.algorithms.
Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool) {
  Reading reading;
  Strategy& strategy = reading.strategy;
  const double cap = config.number_or("bucket_cap_mb", kDefaultCapMb, {0, 1e9, true});
  const bool views = config.boolean_or("gradient_as_bucket_view", false);
  const bool static_graph = config.boolean_or("static_graph", false);
  const bool find_unused = config.boolean_or("find_unused_parameters", false);
  const std::string hook =
      config.word_or("comm_hook", "allreduce_hook",
                     {"allreduce_hook", "fp16_compress_hook", "bf16_compress_hook"});
  config.finish();

  // After the first step the buckets are rebuilt in the order in which gradients arrive: ours.
  // With find_unused_parameters and a graph that may change, those of the first step stay:
  // parameters walked first layer first, and the list of buckets reversed.
  const bool stay = find_unused && !static_graph;
  std::vector<int> order(workload.tensors.size());
  std::iota(order.begin(), order.end(), 0);
  if (stay) std::reverse(order.begin(), order.end());
  auto& groups = strategy.fusion.groups;
  strategy.fusion.rule = Fusion::Rule::kGroups;
  groups = assign_by_size(workload.tensors, order, kFirstBucket,
                          static_cast<Bytes>(cap * static_cast<double>(kMiB)));
  if (stay) {
    std::reverse(groups.begin(), groups.end());
    reading.notes.push_back(
        "find_unused_parameters is true: the buckets of the first step stay, they are never "
        "rebuilt in the order in which gradients arrive");
  }
  if (hook != "allreduce_hook") strategy.compression.codec = "fp16";
  if (hook == "bf16_compress_hook") {
    reading.notes.push_back("bf16_compress_hook is priced as fp16, the same bytes, and emitted so");
  }
  if (!views) {
    reading.notes.push_back(
        "gradients are copied into the buckets (gradient_as_bucket_view is false): the copies are "
        "not priced yet");
  }
  if (cluster.ranks() > 1 && cap >= kDefaultCapMb && strategy.fusion.groups.size() < 3) {
    reading.notes.push_back("all gradients fit into " +
                            std::to_string(strategy.fusion.groups.size()) +
                            " buckets: little communication can hide behind the backward pass");
  }
  return reading;
}

std::vector<Json> suggest(const Strategy& strategy, const std::vector<Bucket>& buckets,
                          const Workload&, const Cluster&) {
  // The first bucket closes at its own limit, the last one with the last gradient.
  std::vector<Bucket> middle;
  if (buckets.size() > 2) middle.assign(buckets.begin() + 1, buckets.end() - 1);
  std::vector<double> caps{kDefaultCapMb};
  for (const double cap : sizes_that_close(middle)) caps.push_back(cap);
  constexpr double kMoreThanAnyModel = 1e6;
  caps.push_back(kMoreThanAnyModel);
  std::vector<Json> configs;
  for (const double cap : caps) {
    Json config{{"bucket_cap_mb", cap}};
    if (strategy.compression.codec == "fp16") config["comm_hook"] = "fp16_compress_hook";
    configs.push_back(config);
  }
  // The same limits with the buckets of the first step.
  const std::size_t rebuilt = configs.size();
  for (std::size_t i = 0; i < rebuilt; ++i) {
    configs.push_back(configs[i]);
    configs.back()["find_unused_parameters"] = true;
  }
  return configs;
}

}  // namespace

Dialect pytorch_ddp_dialect() {
  return {"pytorch", "DistributedDataParallel: bucket_cap_mb, comm_hook", read, suggest};
}

}  // namespace syncline
