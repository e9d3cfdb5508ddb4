#include "core/dialect/ddp_buckets.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <ranges>
#include <utility>

namespace syncline::dialect {
namespace {

using Buckets = std::vector<std::vector<int>>;

// Positions in `order`, bucket by bucket.
Buckets assign_by_size(const std::vector<Tensor>& tensors, const std::vector<int>& order,
                       const DdpLimits& limits) {
  struct Open {
    std::vector<int> places;
    Bytes bytes = 0;
    std::size_t limit = 0;
  };
  std::vector<std::pair<DType, Open>> open;  // as their types are first met
  Buckets closed;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const Tensor& tensor = tensors[static_cast<std::size_t>(order[place])];
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
  // torch's hash table gives back first what came into it last.
  for (auto& [dtype, bucket] : open | std::views::reverse) {
    if (!bucket.places.empty()) closed.push_back(std::move(bucket.places));
  }
  return closed;
}

}  // namespace

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
    // What is no text has been told already.
    if (!reader.find("torch")->is_string() || torch_version(text)) return;
    reader.fail("torch", "found no version, expected one such as \"2.7\"");
  });
  return text;
}

TorchVersion torch_of(const Workload& workload) {
  return torch_version(workload.torch).value_or(kNewestTorch);
}

DdpLimits ddp_limits(std::optional<double> cap_mb, const TorchVersion& version,
                     Bytes first_bucket) {
  const auto cap = static_cast<Bytes>(cap_mb.value_or(kDdpCapMb) * static_cast<double>(kMiB));
  if (cap_mb && version >= kExplicitFirst) return {cap};
  return {first_bucket, cap};
}

Buckets ddp_buckets(const std::vector<Tensor>& tensors, const DdpLimits& limits, DdpOrder order,
                    bool small_last) {
  // The first step walks the parameters first one first and reverses the list of buckets; so does
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

}  // namespace syncline::dialect
