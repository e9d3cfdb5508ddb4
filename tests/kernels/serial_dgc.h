// The launches of a DGC step on the CPU: every block's algorithm as the GPU compiles it, thread
// after thread, block after block in an order of the test's choice, on memory that is filled with
// rubbish first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/dgc_spans.h"

namespace syncline::testing {

// Elements at `offset` elements from a multiple of 64 bytes, with guards on both sides.
template <typename T>
class GuardedArray {
 public:
  GuardedArray() = default;
  GuardedArray(std::vector<T> values, int offset)
      : size_(values.size()), bytes_((values.size() + 64) * sizeof(T) + 64, kGuard) {
    auto* base = bytes_.data();
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    begin_ = (64 - address % 64) % 64 + static_cast<std::size_t>(16 + offset) * sizeof(T);
    if (size_ > 0) std::memcpy(base + begin_, values.data(), size_ * sizeof(T));
  }
  GuardedArray(GuardedArray&&) = default;  // the memory stays where it is
  GuardedArray& operator=(GuardedArray&&) = default;

  T* data() { return reinterpret_cast<T*>(bytes_.data() + begin_); }
  std::size_t size() const { return size_; }
  std::vector<T> values() { return {data(), data() + size_}; }

  bool guards_stand() const {
    const std::size_t end = begin_ + size_ * sizeof(T);
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if ((i < begin_ || i >= end) && bytes_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char kGuard = 0xc5;
  std::size_t size_ = 0;
  std::vector<unsigned char> bytes_;
  std::size_t begin_ = 0;
};

class SerialDgc {
 public:
  SerialDgc(kernels::DgcPlan plan, std::uint32_t seed) : plan_(std::move(plan)), random_(seed) {
    memory_.assign(plan_.workspace_bytes + 256, 0xab);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    tables_ = kernels::dgc_tables(plan_, memory_.data() + (256 - address % 256) % 256);
    for (std::size_t i = 0; i < plan_.rows.size(); ++i) {
      kernels::SerialBlock block(falling());
      kernels::dgc_prepare_row(block, tables_, plan_.rows[i], static_cast<std::uint32_t>(i));
    }
  }

  void step(const kernels::DgcStep& step) {
    update(step, true);
    select(step);
  }

  void update(const kernels::DgcStep& step, bool select) {
    switch (plan_.gradient) {
      case kernels::ElementType::kFp32:
        update_from<float>(step, select);
        break;
      case kernels::ElementType::kBf16:
        update_from<kernels::Bf16>(step, select);
        break;
      case kernels::ElementType::kFp16:
        update_from<kernels::Fp16>(step, select);
        break;
    }
  }

  // All that follows the update.
  void select(const kernels::DgcStep& step) {
    launch([&](auto& block, auto& shared, std::uint32_t span) {
      kernels::dgc_recount_span(block, shared, tables_, step, span);
    });
    launch([&](auto& block, auto& shared, std::uint32_t span) {
      kernels::dgc_collect_span(block, shared, tables_, step, span);
    });
    for (const int shift : {10, 0}) {
      launch([&](auto& block, auto& shared, std::uint32_t span) {
        kernels::dgc_refine_span(block, shared, tables_, step, shift, span);
      });
    }
    launch([&](auto& block, auto& shared, std::uint32_t span) {
      kernels::dgc_count_span(block, shared, tables_, step, span);
    });
    launch([&](auto& block, auto& shared, std::uint32_t span) {
      kernels::dgc_write_span(block, shared, tables_, step, span);
    });
  }

  void inspect(const kernels::DgcInspection& inspection) {
    *tables_.skip = 0;
    launch([&](auto& block, auto&, std::uint32_t span) {
      switch (plan_.gradient) {
        case kernels::ElementType::kFp32:
          return kernels::dgc_inspect_span<float>(block, tables_, inspection, span);
        case kernels::ElementType::kBf16:
          return kernels::dgc_inspect_span<kernels::Bf16>(block, tables_, inspection, span);
        case kernels::ElementType::kFp16:
          return kernels::dgc_inspect_span<kernels::Fp16>(block, tables_, inspection, span);
      }
    });
  }

  const kernels::DgcPlan& plan() const { return plan_; }
  const kernels::DgcTables& tables() const { return tables_; }

 private:
  bool falling() { return random_() % 2 != 0; }

  template <typename Gradient>
  void update_from(const kernels::DgcStep& step, bool select) {
    const bool decay = step.weight_decay != 0;
    launch([&](auto& block, auto& shared, std::uint32_t span) {
      if (step.nesterov && decay) {
        kernels::dgc_update_span<Gradient, true, true>(block, shared, tables_, step, select, span);
      } else if (step.nesterov) {
        kernels::dgc_update_span<Gradient, true, false>(block, shared, tables_, step, select, span);
      } else if (decay) {
        kernels::dgc_update_span<Gradient, false, true>(block, shared, tables_, step, select, span);
      } else {
        kernels::dgc_update_span<Gradient, false, false>(block, shared, tables_, step, select,
                                                         span);
      }
    });
  }

  template <typename F>
  void launch(F&& f) {
    std::vector<std::uint32_t> order(static_cast<std::size_t>(plan_.spans));
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random_);
    const auto shared = std::make_unique<kernels::DgcShared>();
    for (const std::uint32_t span : order) {
      std::memset(static_cast<void*>(shared.get()), 0xcd, sizeof(kernels::DgcShared));
      kernels::SerialBlock block(falling());
      f(block, *shared, span);
    }
  }

  kernels::DgcPlan plan_;
  kernels::DgcTables tables_;
  std::vector<unsigned char> memory_;
  std::mt19937 random_;
};

}  // namespace syncline::testing
