#include "imports/bucket_rule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "core/base/index.h"
#include "formats/dialect/ddp_buckets.h"
#include "formats/text/digits.h"

namespace syncline::job {
namespace {

using dialect::DdpLimits;
using dialect::DdpOrder;
using Buckets = std::vector<std::vector<int>>;

constexpr auto kMebibyte = static_cast<double>(kMiB);
constexpr Bytes kNoLimit = std::numeric_limits<Bytes>::max();

std::string number_text(double value) { return short_text(value, 6); }

std::string count_text(std::size_t buckets) {
  return std::to_string(buckets) + (buckets == 1 ? " bucket" : " buckets");
}

// Returns buckets as sets, without their orders.
Buckets by_content(Buckets buckets) {
  for (auto& bucket : buckets) std::sort(bucket.begin(), bucket.end());
  std::sort(buckets.begin(), buckets.end());
  return buckets;
}

Bytes bytes_of(const std::vector<int>& bucket, const std::vector<Tensor>& tensors) {
  Bytes bytes = 0;
  for (const int i : bucket) bytes += tensors[index(i)].bytes();
  return bytes;
}

// The limits in bytes, from `least` to `most`, that close each bucket at its seen end.
struct Range {
  Bytes least = 1;
  Bytes most = kNoLimit;
};

// Returns the limits of a rule that closes a bucket at its limit. It held less without its last
// gradient; each type's last one may be incomplete. `past_first`: ignores first ones.
Range closing_after(const std::vector<Tensor>& tensors, const Buckets& seen, bool past_first) {
  Range range;
  std::map<DType, std::size_t> first;
  std::map<DType, std::size_t> last;
  const auto type_of = [&](const std::vector<int>& bucket) {
    return tensors[index(bucket.front())].dtype;
  };
  for (std::size_t b = 0; b < seen.size(); ++b) {
    first.try_emplace(type_of(seen[b]), b);
    last[type_of(seen[b])] = b;
  }
  for (std::size_t b = 0; b < seen.size(); ++b) {
    const DType type = type_of(seen[b]);
    if (past_first && first[type] == b) continue;
    const Bytes bytes = bytes_of(seen[b], tensors);
    const Bytes before = bytes - tensors[index(seen[b].back())].bytes();
    range.least = std::max(range.least, before + 1);
    if (last[type] != b) range.most = std::min(range.most, bytes);
  }
  return range;
}

// Returns the limits of a rule that closes a bucket before the next gradient exceeds the limit.
Range closing_before(const std::vector<Tensor>& tensors, const Buckets& seen) {
  Range range;
  for (std::size_t b = 0; b < seen.size(); ++b) {
    const Bytes bytes = bytes_of(seen[b], tensors);
    if (seen[b].size() > 1) range.least = std::max(range.least, bytes);
    if (b + 1 == seen.size()) continue;
    const auto next = index(seen[b + 1].front());
    range.most = std::min(range.most, bytes + tensors[next].bytes() - 1);
  }
  return range;
}

// Returns a size in MiB in the range as a person would write it: torch's default, a power of two, a
// whole number, else with the fewest decimals.
std::optional<double> likely_mebibytes(const Range& range) {
  const auto fits = [&](double size) {
    const auto bytes = static_cast<Bytes>(size * kMebibyte);
    return bytes >= range.least && bytes <= range.most;
  };
  if (range.least > range.most) return std::nullopt;
  if (fits(dialect::kDdpCapMb)) return dialect::kDdpCapMb;
  constexpr int kLargest = 65536;
  for (int size = 1; size <= kLargest; size *= 2) {
    if (fits(size)) return size;
  }
  const double low = static_cast<double>(range.least) / kMebibyte;
  constexpr int kMaxDecimals = 6;
  for (int decimals = 0; decimals <= kMaxDecimals; ++decimals) {
    const double unit = std::pow(10.0, decimals);
    const double size = std::ceil(low * unit) / unit;
    if (fits(size)) return size;
  }
  return low;
}

std::string range_text(const Range& range) {
  const auto mebibytes = [](Bytes bytes) {
    return number_text(static_cast<double>(bytes) / kMebibyte);
  };
  return range.most == kNoLimit
             ? "any cap from " + mebibytes(range.least) + " MiB on does the same"
             : mebibytes(range.least) + " to " + mebibytes(range.most) + " MiB do the same";
}

// Returns tensors with only elements and types.
std::vector<Tensor> tensors_of(const Step& step) {
  std::vector<Tensor> tensors;
  for (const Gradient& gradient : step.gradients) {
    Tensor& tensor = tensors.emplace_back();
    tensor.elements = gradient.elements;
    tensor.dtype = gradient.dtype;
  }
  return tensors;
}

// Tries the rules of DistributedDataParallel in turn.
class DdpRules {
 public:
  DdpRules(const Observed& observed, const Step& step, const Buckets& seen)
      : observed_(observed),
        tensors_(tensors_of(step)),
        seen_(seen),
        content_(by_content(seen)),
        told_(dialect::torch_version(observed.version)) {
    if (told_) rule_.torch = std::to_string(told_->major) + "." + std::to_string(told_->minor);
  }

  BucketRule find() {
    for (const DdpOrder order : {DdpOrder::kRebuilt, DdpOrder::kFirstStep}) {
      if (torchs_own(order) || one_cap(order) || cap_behind_a_mebibyte(order)) return rule_;
    }
    own_first_bucket();
    return rule_;
  }

 private:
  bool fits(const DdpLimits& limits, DdpOrder order) const {
    return by_content(dialect::ddp_buckets(tensors_, limits, order)) == content_;
  }

  void take(Json config, std::string words, DdpOrder order) {
    if (order == DdpOrder::kFirstStep) {
      config["find_unused_parameters"] = true;
      words += ", in the order of the first step (find_unused_parameters: never rebuilt)";
    }
    if (observed_.bucket_views) config["gradient_as_bucket_view"] = true;
    rule_.explains = true;
    rule_.words = std::move(words);
    rule_.strategy = {{"dialect", "pytorch"}, {"config", std::move(config)}};
  }

  bool torchs_own(DdpOrder order) {
    const DdpLimits limits = dialect::ddp_limits(std::nullopt, dialect::kNewestTorch);
    if (fits(limits, order)) {
      take(Json::object(), "torch's default: 1 MiB, then 25 MiB", order);
      return true;
    }
    if (order == DdpOrder::kRebuilt) {
      rule_.others.push_back("torch's default (1 MiB, then 25 MiB) makes " +
                             count_text(dialect::ddp_buckets(tensors_, limits).size()));
    }
    return false;
  }

  bool one_cap(DdpOrder order) {
    if (told_ && *told_ < dialect::kExplicitFirst) return false;
    const Range range = closing_after(tensors_, seen_, false);
    const auto cap = likely_mebibytes(range);
    if (!cap || !fits(dialect::ddp_limits(cap, dialect::kNewestTorch), order)) return false;
    take({{"bucket_cap_mb", *cap}},
         "bucket_cap_mb " + number_text(*cap) + " (" + range_text(range) + ")", order);
    return true;
  }

  bool cap_behind_a_mebibyte(DdpOrder order) {
    if (told_ && *told_ >= dialect::kExplicitFirst) return false;
    const dialect::TorchVersion old{2, 2};
    const Range range = closing_after(tensors_, seen_, true);
    const auto cap = likely_mebibytes(range);
    if (!cap || !fits(dialect::ddp_limits(cap, old), order)) return false;
    if (!told_) rule_.torch = "2.2";
    take({{"bucket_cap_mb", *cap}},
         "bucket_cap_mb " + number_text(*cap) + " after a first bucket of 1 MiB, as torch before " +
             "2.3 (" + range_text(range) + ")",
         order);
    return true;
  }

  // Tries torch.distributed._DEFAULT_FIRST_BUCKET_BYTES with the default cap.
  void own_first_bucket() {
    if (seen_.empty()) return;
    const Bytes first = bytes_of(seen_.front(), tensors_);
    if (!fits(dialect::ddp_limits(std::nullopt, dialect::kNewestTorch, first), DdpOrder::kRebuilt))
      return;
    take({{"_DEFAULT_FIRST_BUCKET_BYTES", first}},
         "torch's 25 MiB after a first bucket of at most " + std::to_string(first) +
             " bytes (_DEFAULT_FIRST_BUCKET_BYTES)",
         DdpOrder::kRebuilt);
  }

  const Observed& observed_;
  std::vector<Tensor> tensors_;
  const Buckets& seen_;
  Buckets content_;
  std::optional<dialect::TorchVersion> told_;
  BucketRule rule_;
};

bool in_ready_order(const Buckets& seen) {
  int next = 0;
  for (const auto& bucket : seen) {
    for (const int i : bucket) {
      if (i != next++) return false;
    }
  }
  return true;
}

// Describes the limit that no bucket exceeds, or else explicit groups as seen.
void describe_others(const Observed& observed, const Step& step, const Buckets& seen,
                     BucketRule& rule) {
  const std::vector<Tensor> tensors = tensors_of(step);
  const Range range = closing_before(tensors, seen);
  const auto size = likely_mebibytes(range);
  rule.explains = size && seen.size() > 1 && in_ready_order(seen);
  if (rule.explains) {
    rule.words = "a bucket closes before it would exceed " + number_text(*size) +
                 " MiB, as DeepSpeed's and Horovod's do (" + range_text(range) + ")";
    rule.strategy = {{"fusion", {{"rule", "size"}, {"size_mb", *size}, {"close", "before"}}}};
  } else {
    rule.words = "no rule of DistributedDataParallel makes these buckets";
    if (observed.ddp_modules > 1) {
      rule.words +=
          ": " + std::to_string(observed.ddp_modules) + " DDP modules have buckets of their own";
    } else if (observed.comm_hook) {
      rule.words += ": a communication hook may send them otherwise";
    }
    rule.strategy = {{"fusion", {{"rule", "groups"}, {"groups", seen}}}};
  }
  if (!observed.bucket_views) rule.strategy["bucket_copies"] = true;
}

}  // namespace

std::vector<std::vector<int>> seen_buckets(const Step& step) {
  Buckets buckets;
  for (const ObservedExchange& exchange : step.exchanges) {
    if (!exchange.gradients.empty()) buckets.push_back(exchange.gradients);
  }
  if (!buckets.empty()) return buckets;
  std::size_t next = 0;
  for (const ObservedExchange& exchange : step.exchanges) {
    if (exchange.kind != "all_reduce" || exchange.elements <= 0) continue;
    std::vector<int> bucket;
    std::int64_t elements = 0;
    std::size_t end = next;
    while (end < step.gradients.size() && elements < exchange.elements) {
      elements += step.gradients[end].elements;
      bucket.push_back(static_cast<int>(end++));
    }
    if (elements != exchange.elements) continue;
    next = end;
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

BucketRule bucket_rule(const Observed& observed, const Step& step) {
  const Buckets seen = seen_buckets(step);
  BucketRule rule;
  rule.words = "no bucket was sent";
  if (seen.empty()) return rule;
  if (observed.ddp_modules <= 1) rule = DdpRules(observed, step, seen).find();
  if (!rule.explains) describe_others(observed, step, seen, rule);
  return rule;
}

}  // namespace syncline::job
