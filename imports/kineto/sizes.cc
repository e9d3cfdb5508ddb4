#include "imports/kineto/sizes.h"

#include <algorithm>

#include "core/base/index.h"
#include "imports/kineto/step.h"

namespace syncline::job::kineto {
namespace {

// Returns the format of all exchanges of gradients, if they have one and it is known.
std::optional<DType> common_format(const DerivedStep& derived) {
  std::optional<DType> format;
  for (std::size_t i = 0; i < derived.sent.size(); ++i) {
    if (!derived.sent[i].of_gradients) continue;
    if (!derived.sent[i].typed) return std::nullopt;
    if (format && *format != derived.step.exchanges[i].dtype) return std::nullopt;
    format = derived.step.exchanges[i].dtype;
  }
  return format;
}

// Sets formats of gradients with copies in the order of their buckets. Each bucket takes gradients
// by its bytes, or all that have arrived if its size is unknown, and gives them its format. Returns
// false if they do not fit.
bool formats_by_bucket(DerivedStep& derived) {
  const auto& copies = derived.copies_out;
  std::vector<DType> formats;
  for (std::size_t i = 0; i < derived.sent.size(); ++i) {
    const ObservedExchange& exchange = derived.step.exchanges[i];
    const Sent& sent = derived.sent[i];
    if (!sent.of_gradients) continue;
    if (!sent.typed) return false;
    const bool counted = exchange.elements == 0;
    const std::size_t most = counted ? std::min(sent.arrived, copies.size()) : copies.size();
    Bytes bytes = exchange.bytes();
    while (formats.size() < most && (counted || bytes > 0)) {
      bytes -= copies[formats.size()].bytes;
      formats.push_back(exchange.dtype);
    }
    if (!counted && bytes != 0) return false;
  }
  if (formats.size() != copies.size()) return false;
  for (std::size_t i = 0; i < formats.size(); ++i) derived.step.gradients[i].dtype = formats[i];
  return true;
}

bool sizes_of_shapes(const Trace& trace, DerivedStep& derived) {
  std::vector<const TracedTensor*> tensors;
  for (const int place : derived.tensors) {
    if (place < 0 || trace.tensors[index(place)].elements == 0) return false;
    tensors.push_back(&trace.tensors[index(place)]);
  }
  const std::optional<DType> otherwise = derived.hooked ? std::nullopt : common_format(derived);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Gradient& gradient = derived.step.gradients[i];
    gradient.shape = tensors[i]->shape;
    gradient.elements = tensors[i]->elements;
    const std::optional<DType> format = tensors[i]->dtype ? tensors[i]->dtype : otherwise;
    derived.assumed_fp32 |= !format;
    gradient.dtype = format.value_or(DType::kFp32);
  }
  return true;
}

bool sizes_of_copies(DerivedStep& derived) {
  const auto& copies = derived.copies_out;
  auto& gradients = derived.step.gradients;
  if (copies.size() != gradients.size()) return false;
  if (std::ranges::any_of(copies, [](const CopyOut& copy) { return copy.bytes <= 0; })) {
    return false;
  }
  // A hook may send another format than that of the gradients.
  if (derived.hooked || !formats_by_bucket(derived)) {
    const auto format = derived.hooked ? std::nullopt : common_format(derived);
    derived.assumed_fp32 = !format;
    for (Gradient& gradient : gradients) gradient.dtype = format.value_or(DType::kFp32);
  }
  for (std::size_t i = 0; i < copies.size(); ++i) {
    gradients[i].elements = std::max<Bytes>(copies[i].bytes / size_of(gradients[i].dtype), 1);
    gradients[i].copy_out = copies[i].time;
  }
  return true;
}

// Assigns copies out, in the order of buckets, to the first gradient of their size without one.
// Copies by kernels have no known size.
void copies_by_size(DerivedStep& derived) {
  auto& gradients = derived.step.gradients;
  const bool in_order =
      derived.copies_out.size() == gradients.size() &&
      std::ranges::equal(derived.copies_out, gradients, {}, &CopyOut::bytes, &Gradient::bytes);
  std::vector<bool> taken(gradients.size(), false);
  std::size_t next = 0;
  for (std::size_t k = 0; k < derived.copies_out.size(); ++k) {
    const CopyOut& copy = derived.copies_out[k];
    while (next < gradients.size() && taken[next]) ++next;
    constexpr std::size_t kReach = 4096;  // buckets hold fewer
    std::size_t i = in_order ? k : next;
    while (!in_order && i < gradients.size() && i < next + kReach &&
           (taken[i] || (copy.bytes > 0 && gradients[i].bytes() != copy.bytes))) {
      ++i;
    }
    if (i >= gradients.size() || taken[i]) continue;
    taken[i] = true;
    gradients[i].copy_out = copy.time;
  }
}

// Returns gradients that may be in an exchange: they had arrived, no other took them, and they have
// its number format, unless that is unknown, a hook's, or no gradient's.
std::vector<int> candidates(const DerivedStep& derived, std::size_t exchange,
                            const std::vector<bool>& taken) {
  // Buckets hold fewer: this bounds the time for a trace without a fit.
  constexpr std::size_t kMax = 20'000;
  const auto& gradients = derived.step.gradients;
  const DType format = derived.step.exchanges[exchange].dtype;
  const bool filter = derived.sent[exchange].typed && !derived.hooked &&
                      std::ranges::find(gradients, format, &Gradient::dtype) != gradients.end();
  std::vector<int> places;
  for (std::size_t i = 0; i < derived.sent[exchange].arrived && places.size() < kMax; ++i) {
    if (!taken[i] && (!filter || gradients[i].dtype == format)) {
      places.push_back(static_cast<int>(i));
    }
  }
  return places;
}

// Returns the gradients of one exchange: the earliest run without gaps with its size, as a reducer
// sends buckets in order. If all are smaller, but more than half of it, and one reducer exists, it
// carries all and parameters without a gradient.
std::vector<int> bucket_of(const DerivedStep& derived, std::size_t exchange,
                           const std::vector<bool>& taken) {
  const std::int64_t wanted = derived.step.exchanges[exchange].elements;
  const std::vector<int> places = candidates(derived, exchange, taken);
  if (wanted == 0) return places;
  const auto elements = [&](std::size_t i) {
    return derived.step.gradients[index(places[i])].elements;
  };
  std::size_t first = 0;
  std::int64_t sum = 0;
  std::int64_t total = 0;
  for (std::size_t last = 0; last < places.size(); ++last) {
    sum += elements(last);
    total += elements(last);
    while (sum > wanted) sum -= elements(first++);
    if (sum == wanted && first <= last) {
      return {places.begin() + static_cast<std::ptrdiff_t>(first),
              places.begin() + static_cast<std::ptrdiff_t>(last) + 1};
    }
  }
  const bool partial = total < wanted && 2 * total > wanted && derived.forwards == 1;
  return partial ? places : std::vector<int>{};
}

void find_buckets(DerivedStep& derived) {
  std::vector<bool> sent(derived.step.gradients.size(), false);
  for (std::size_t i = 0; i < derived.sent.size(); ++i) {
    if (!derived.sent[i].of_gradients) continue;
    ObservedExchange& exchange = derived.step.exchanges[i];
    exchange.gradients = bucket_of(derived, i, sent);
    std::int64_t sum = 0;
    Seconds complete = 0;
    for (const int place : exchange.gradients) {
      const auto gradient = index(place);
      sent[gradient] = true;
      sum += derived.step.gradients[gradient].elements;
      complete = std::max(complete, derived.complete[gradient]);
    }
    if (exchange.gradients.empty()) continue;
    if (exchange.elements == 0) exchange.elements = sum;
    if (!derived.sent[i].typed) {
      exchange.dtype = derived.step.gradients[index(exchange.gradients[0])].dtype;
    }
    exchange.complete = complete;
  }
}

}  // namespace

bool find_sizes(const Trace& trace, DerivedStep& derived) {
  if (sizes_of_shapes(trace, derived)) {
    copies_by_size(derived);
  } else if (!sizes_of_copies(derived)) {
    return false;
  }
  find_buckets(derived);
  return true;
}

}  // namespace syncline::job::kineto
