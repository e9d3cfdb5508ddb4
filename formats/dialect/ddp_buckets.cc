#include "formats/dialect/ddp_buckets.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <utility>

#include "core/plan/fusion.h"

namespace syncline::dialect {
namespace {

using Buckets = std::vector<std::vector<int>>;

std::int64_t aligned(std::int64_t place, std::int64_t align) {
  return (place + align - 1) / align * align;
}

}  // namespace

Buckets assign_by_size(const std::vector<Tensor>& tensors, const std::vector<int>& order,
                       const DdpLimits& limits, bool by_type) {
  struct Open {
    std::vector<int> places;
    Bytes bytes = 0;
    std::size_t limit = 0;
  };
  std::vector<std::pair<DType, Open>> open;  // in the order in which types are first met
  Buckets closed;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const Tensor& tensor = tensors[static_cast<std::size_t>(order[place])];
    if (tensor.frozen) continue;
    if (tensor.sparse) {
      closed.push_back({static_cast<int>(place)});
      continue;
    }
    auto known = std::ranges::find(open, tensor.dtype, &std::pair<DType, Open>::first);
    if (known == open.end()) known = open.insert(open.end(), {tensor.dtype, Open{}});
    Open& bucket = known->second;
    bucket.places.push_back(static_cast<int>(place));
    bucket.bytes += tensor.bytes();
    if (bucket.bytes < limits[bucket.limit]) continue;
    closed.push_back(std::move(bucket.places));
    bucket = {{}, 0, std::min(bucket.limit + 1, limits.size() - 1)};
  }
  if (by_type) std::ranges::sort(open, std::ranges::greater(), &std::pair<DType, Open>::first);
  for (auto last = open.rbegin(); last != open.rend(); ++last) {
    if (!last->second.places.empty()) closed.push_back(std::move(last->second.places));
  }
  return closed;
}

std::optional<TorchVersion> torch_version(std::string_view text) {
  TorchVersion version;
  const char* const end = text.data() + text.size();
  const auto [dot, wrong] = std::from_chars(text.data(), end, version.major);
  if (wrong != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [rest, bad] = std::from_chars(dot + 1, end, version.minor);
  if (bad != std::errc() || version.major < 0 || version.minor < 0) return std::nullopt;
  if (rest != end && *rest != '.' && *rest != '+' && *rest != 'a') return std::nullopt;
  return version;
}

std::string read_torch(Reader& reader) {
  if (!reader.has("torch")) return "";
  std::string text = reader.text("torch");
  reader.attempt([&] {
    // The reader has already reported a value that is no text.
    if (!reader.find("torch")->is_string() || torch_version(text)) return;
    reader.fail("torch", "found no version, expected one such as \"2.7\"");
  });
  return text;
}

TorchVersion torch_of(const Workload& workload) {
  return torch_version(workload.framework_version).value_or(kNewestTorch);
}

DdpLimits ddp_limits(std::optional<double> cap_mb, const TorchVersion& version,
                     Bytes first_bucket) {
  const auto cap = static_cast<Bytes>(cap_mb.value_or(kDdpCapMb) * static_cast<double>(kMiB));
  if (cap_mb && version >= kExplicitFirst) return {cap};
  return {first_bucket, cap};
}

Buckets ddp_buckets(const std::vector<Tensor>& tensors, const DdpLimits& limits, DdpOrder order,
                    bool small_last) {
  // The first step walks the parameters in their order and reverses the list of buckets; so does
  // rebuilding from the last bucket on.
  const bool first = order == DdpOrder::kFirstStep;
  const bool backwards = first || small_last;
  std::vector<int> walked(tensors.size());
  std::iota(walked.begin(), walked.end(), 0);
  if (backwards) std::reverse(walked.begin(), walked.end());
  if (first) walked = registered_order(tensors);
  Buckets buckets = assign_by_size(tensors, walked, limits);
  if (first) {
    std::stable_sort(buckets.begin(), buckets.end(), [](const auto& a, const auto& b) {
      return *std::min_element(a.begin(), a.end()) < *std::min_element(b.begin(), b.end());
    });
  }
  for (auto& bucket : buckets) {
    for (int& place : bucket) place = walked[static_cast<std::size_t>(place)];
    if (small_last && !first) std::reverse(bucket.begin(), bucket.end());
  }
  if (backwards) std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

Buckets buckets_by_elements(const std::vector<Tensor>& tensors, const ElementRule& rule) {
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
  const auto add = [&](const std::vector<int>& parameter) {
    const Tensor& first = tensors[static_cast<std::size_t>(parameter.front())];
    if (first.sparse || first.frozen) return;
    std::int64_t elements = 0;
    for (const int t : parameter) elements += tensors[static_cast<std::size_t>(t)].elements;
    Open& bucket = buffers[{rule.one_format ? DType::kFp32 : first.dtype,
                            rule.fp8_apart && plan::layer_matrix(first)}];
    const bool alone = std::ranges::find(rule.alone, parameter.front()) != rule.alone.end();
    if (alone || (rule.close == Close::kBefore && bucket.end + elements > rule.size)) close(bucket);
    bucket.tensors.insert(bucket.tensors.end(), parameter.begin(), parameter.end());
    bucket.end = aligned(bucket.end, rule.align) + elements;
    const bool full =
        rule.close == Close::kAfter ? bucket.end >= rule.size : bucket.end > rule.size;
    if (alone || (rule.close != Close::kBefore && full)) close(bucket);
  };
  std::ranges::for_each(rule.parameters, add);
  if (rule.parameters.empty()) {
    for (int t = 0; t < static_cast<int>(tensors.size()); ++t) add({t});
  }
  for (auto& [buffer, bucket] : buffers) close(bucket);
  if (!rule.parameters.empty() && !rule.as_closed) {
    std::ranges::stable_sort(closed, {},
                             [](const auto& bucket) { return std::ranges::max(bucket); });
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
  constexpr std::int64_t kMaxMegabytes = 4096;  // of a bucket, as people write sizes
  constexpr std::int64_t kBeyondModel = 100;    // largest plausible size / all gradients
  const std::int64_t kElementsAMegabyte = kMiB / size_of(DType::kFp32);
  std::int64_t all = 0;
  for (const auto& tensor : workload.tensors) all += tensor.elements;
  if (count > kMaxMegabytes || count * kElementsAMegabyte / kBeyondModel > all) return;
  strategy.suspicious.push_back(
      key + " counts elements, and " + std::to_string(count) + " of them are a bucket of " +
      std::to_string(count * size_of(DType::kFp32)) + " bytes: were MiB meant (" +
      std::to_string(count) + " MiB of fp32 are " + std::to_string(count * kElementsAMegabyte) +
      " elements)?");
}

bool sums_each_micro_batch(bool no_sync, const Workload& workload,
                           std::vector<std::string>& notes) {
  const bool staged = workload.parallel.pipeline > 1;
  if (staged && workload.micro_batches > 1) {
    notes.push_back("under a pipeline torch sums gradients in the last micro-batch alone");
  }
  return !no_sync && !staged;
}

void check_micro_batches(Reader& config, const char* key, std::int64_t count,
                         const Workload& workload) {
  if (count == workload.micro_batches) return;
  config.fail(key, "comes to " + std::to_string(count) +
                       (count == 1 ? " micro-batch" : " micro-batches") +
                       " per step, but the workload has \"micro_batches\": " +
                       std::to_string(workload.micro_batches) +
                       "; write it there (times and batch are those of one micro-batch)");
}

}  // namespace syncline::dialect
