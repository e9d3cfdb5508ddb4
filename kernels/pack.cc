#include "kernels/pack.h"

#include <algorithm>
#include <string>

#include "kernels/pack_tile.h"

namespace syncline::kernels {
namespace {

// A function of <From, To> for types known only now.
template <typename From, typename F>
auto with_target(ElementType to, F&& f) {
  switch (to) {
    case ElementType::kBf16:
      return f(From{}, Bf16{});
    case ElementType::kFp16:
      return f(From{}, Fp16{});
    case ElementType::kFp32:
      break;
  }
  return f(From{}, float{});
}

template <typename F>
auto with_types(ElementType from, ElementType to, F&& f) {
  switch (from) {
    case ElementType::kBf16:
      return with_target<Bf16>(to, f);
    case ElementType::kFp16:
      return with_target<Fp16>(to, f);
    case ElementType::kFp32:
      break;
  }
  return with_target<float>(to, f);
}

bool writes(std::span<const PackedTensor> tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const PackedTensor& tensor) { return tensor.to != nullptr; });
}

std::int64_t tiles_of_tensor(const PackedTensor& tensor, ElementType from, ElementType to) {
  return with_types(from, to, [&](auto source, auto target) {
    using From = decltype(source);
    using To = decltype(target);
    return tiles_of(tensor.elements, pack_shift<From, To>(tensor.from, tensor.to));
  });
}

}  // namespace

Status check_pack(std::span<const PackedTensor> tensors, const PackOptions& options) {
  if (!known(options.from) || !known(options.to)) {
    return failure("pack: unknown element type");
  }
  if (!is_finite(options.scale)) return failure("pack: the scale is not finite");
  if (!is_finite(options.max_norm) || options.max_norm < 0) {
    return failure("pack: the largest norm is negative or not finite");
  }
  const bool written = writes(tensors);
  if (!written && options.measure == nullptr && !tensors.empty()) {
    return failure("pack: nothing is written and nothing measured");
  }
  if (options.measure != nullptr && options.partials == nullptr) {
    return failure("pack: a measure needs memory for partial sums");
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [from, to, elements] = tensors[i];
    const std::string which = "pack: tensor " + std::to_string(i);
    if (elements < 0) return failure(which + " has " + std::to_string(elements) + " elements");
    if (elements == 0) continue;
    if (from == nullptr) return failure(which + " is read from a null pointer");
    if (written && to == nullptr) return failure(which + " is written to a null pointer");
    if (!aligned_to_element(from, options.from) || !aligned_to_element(to, options.to)) {
      return failure(which + " is not aligned to its element size");
    }
    if (from == to && options.from != options.to) {
      return failure(which + " is cast in place, which would overwrite what is still to be read");
    }
  }
  return {};
}

PackPlan plan_pack(std::span<const PackedTensor> tensors, const PackOptions& options) {
  // Where nothing is written only the type that is read counts.
  const ElementType to = writes(tensors) ? options.to : options.from;
  PackPlan plan;
  std::int64_t tile = 0;
  for (const auto& tensor : tensors) {
    if (tensor.elements == 0) continue;
    if (plan.launches.empty() || plan.launches.back().table.count == PackTable::kCapacity) {
      plan.launches.emplace_back();
    }
    PackTable& table = plan.launches.back().table;
    table.entries[table.count++] = {tensor.from, tensor.to, tensor.elements, tile};
    tile += tiles_of_tensor(tensor, options.from, to);
    table.end_tile = tile;
  }
  constexpr std::int64_t kPartials = 8192;  // the last block adds them all: not too many
  plan.tiles_per_chunk = std::max<std::int64_t>(1, (tile + kPartials - 1) / kPartials);
  for (auto& launch : plan.launches) {
    const std::int64_t tiles = launch.table.end_tile - launch.table.entries[0].first_tile;
    launch.chunks = (tiles + plan.tiles_per_chunk - 1) / plan.tiles_per_chunk;
    launch.first_partial = plan.partials;
    plan.partials += launch.chunks;
  }
  // No elements at all: one launch without chunks still writes the measure.
  if (plan.launches.empty() && options.measure != nullptr) plan.launches.emplace_back();
  return plan;
}

std::int64_t pack_partials(std::span<const PackedTensor> tensors, const PackOptions& options) {
  return plan_pack(tensors, options).partials;
}

}  // namespace syncline::kernels
