#include "core/run/slowed.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace syncline::run {
namespace {

// When a bucket's exchange is under way.
struct Window {
  Seconds begin = std::numeric_limits<double>::infinity();
  Seconds end = 0;
};

// One pass over a period: each operation begins when its stream and what it waits for are done.
class Pass {
 public:
  Pass(plan::Plan& plan, collective::PriceBook& book)
      : plan_(plan),
        book_(book),
        ends_(plan.ops.size(), 0),
        free_(static_cast<std::size_t>(plan.streams), 0),
        windows_(plan.buckets.size()) {}

  void fill() {
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      plan::Op& op = plan_.ops[i];
      Seconds& free = free_[static_cast<std::size_t>(op.stream)];
      Seconds begin = free;
      for (const plan::OpId id : op.after) {
        begin = std::max(begin, ends_[static_cast<std::size_t>(id)]);
      }
      free = ends_[i] = begin + duration(op, begin);
    }
  }

 private:
  Seconds duration(plan::Op& op, Seconds begin) {
    if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
      const Seconds time = book_.time(*collective);
      Window& window = windows_[static_cast<std::size_t>(collective->bucket)];
      // Parameters that were gathered for the pass are another exchange than their gradients.
      if (std::exchange(under_way_, collective->bucket) != collective->bucket) window = {};
      window = {std::min(window.begin, begin), begin + time};
      return time;
    }
    if (op.stream == plan::kComputeStream) under_way_ = -1;
    auto* slowed = std::get_if<plan::Slowed>(&op.work);
    if (slowed == nullptr) return plan::seconds_of(op.work);
    Window& window = windows_[static_cast<std::size_t>(slowed->bucket)];
    if (op.stream == plan::kComputeStream) {
      slowed->seconds = lost(*slowed, window, begin);
    } else {
      slowed->seconds = delayed(*slowed, window);
    }
    return slowed->seconds;
  }

  // By the computation, from this moment on or up to it.
  static Seconds lost(const plan::Slowed& slowed, const Window& window, Seconds now) {
    const Seconds from = now + std::min(0.0, slowed.rest);
    const Seconds to = now + std::max(0.0, slowed.rest);
    const Seconds beside = std::min(window.end, to) - std::max(window.begin, from);
    return slowed.share * std::max(0.0, beside);
  }

  // The exchange, by the computation that is left behind its bucket. It does nothing while it waits
  // for a processor.
  Seconds delayed(const plan::Slowed& slowed, Window& window) const {
    const Seconds left = free_[plan::kComputeStream] + slowed.rest - window.begin;
    const Seconds waits = std::clamp(left, 0.0, slowed.delay);
    const Seconds beside = std::clamp(left - waits, 0.0, window.end - window.begin);
    const Seconds longer = slowed.share * beside;
    window.begin += waits;
    window.end += waits + longer;
    return waits + longer;
  }

  plan::Plan& plan_;
  collective::PriceBook& book_;
  std::vector<Seconds> ends_;
  std::vector<Seconds> free_;  // by stream
  std::vector<Window> windows_;
  int under_way_ = -1;  // the bucket whose exchange is being listed
};

}  // namespace

bool slows(const plan::Plan& plan) {
  return std::any_of(plan.ops.begin(), plan.ops.end(), [](const plan::Op& op) {
    return std::holds_alternative<plan::Slowed>(op.work);
  });
}

plan::Plan with_slowed(plan::Plan plan, collective::PriceBook& book) {
  Pass(plan, book).fill();
  return plan;
}

}  // namespace syncline::run
