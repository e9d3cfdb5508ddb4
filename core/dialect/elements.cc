#include "core/dialect/elements.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "core/plan/fusion.h"

namespace syncline::dialect {
namespace {

std::int64_t aligned(std::int64_t place, std::int64_t align) {
  return (place + align - 1) / align * align;
}

}  // namespace

std::vector<std::vector<int>> buckets_by_elements(const std::vector<Tensor>& tensors,
                                                  const ElementRule& rule) {
  using Close = ElementRule::Close;
  struct Open {
    std::vector<int> tensors;
    std::int64_t end = 0;
  };
  std::map<std::pair<DType, bool>, Open> buffers;
  std::vector<std::vector<int>> closed;
  const auto close = [&](Open& bucket) {
    if (!bucket.tensors.empty()) closed.push_back(std::move(bucket.tensors));
    bucket = {};
  };
  std::vector<int> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  if (rule.registered) {
    order = registered_order(tensors);
    std::reverse(order.begin(), order.end());
  }
  for (const int i : order) {
    const Tensor& tensor = tensors[static_cast<std::size_t>(i)];
    if (tensor.sparse) continue;
    Open& bucket = buffers[{rule.one_format ? DType::kFp32 : tensor.dtype,
                            rule.fp8_apart && plan::layer_matrix(tensor)}];
    if (rule.close == Close::kBefore && bucket.end + tensor.elements > rule.size) close(bucket);
    bucket.tensors.push_back(i);
    bucket.end = aligned(bucket.end, rule.align) + tensor.elements;
    const bool full =
        rule.close == Close::kAfter ? bucket.end >= rule.size : bucket.end > rule.size;
    if (rule.close != Close::kBefore && full) close(bucket);
  }
  for (auto& [buffer, bucket] : buffers) close(bucket);
  if (rule.registered) {
    const auto last = [](const std::vector<int>& bucket) {
      return *std::max_element(bucket.begin(), bucket.end());
    };
    std::stable_sort(closed.begin(), closed.end(),
                     [&](const auto& a, const auto& b) { return last(a) < last(b); });
  }
  return closed;
}

std::int64_t span_of(const plan::Bucket& bucket, const Workload& workload, std::int64_t align) {
  std::int64_t end = 0;
  for (const int index : bucket.tensors) {
    end = aligned(end, align) + workload.tensors[static_cast<std::size_t>(index)].elements;
  }
  return end;
}

void suspect_elements(const std::string& key, std::int64_t count, const Workload& workload,
                      Strategy& strategy) {
  constexpr std::int64_t kMostMegabytes = 4096;  // of a bucket, as people write them
  constexpr std::int64_t kBeyondModel = 100;  // MiB so many times the gradients are no size either
  const std::int64_t kElementsAMegabyte = kMiB / size_of(DType::kFp32);
  std::int64_t all = 0;
  for (const auto& tensor : workload.tensors) all += tensor.elements;
  if (count > kMostMegabytes || count * kElementsAMegabyte / kBeyondModel > all) return;
  strategy.suspicious.push_back(
      key + " counts elements, and " + std::to_string(count) + " of them are a bucket of " +
      std::to_string(count * size_of(DType::kFp32)) + " bytes: were MiB meant (" +
      std::to_string(count) + " MiB of fp32 are " + std::to_string(count * kElementsAMegabyte) +
      " elements)?");
}

void check_micro_batches(Reader& config, const char* key, std::int64_t count,
                         const Workload& workload) {
  if (count == workload.micro_batches) return;
  config.fail(key, "comes to " + std::to_string(count) +
                       (count == 1 ? " micro-batch" : " micro-batches") +
                       " a step, but the workload has \"micro_batches\": " +
                       std::to_string(workload.micro_batches) +
                       "; write it there (times and batch are those of one micro-batch)");
}

}  // namespace syncline::dialect
