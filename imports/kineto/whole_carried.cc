#include "imports/kineto/whole_carried.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/index.h"

namespace syncline::job::kineto {
namespace {

// Share of a bucket by which padding to whole shards may enlarge it, unless it is small.
constexpr double kPadding = 0.1;
constexpr std::int64_t kSmallBucket = 1 << 16;  // elements
constexpr int kMaxGradients = 20'000;           // gradients that one exchange looks at

// Stores the gradients that no exchange has taken yet.
class UntakenGradients {
 public:
  UntakenGradients(const LaidGradients& laid, const std::vector<RankGroup>& groups,
                   WholeStep& whole)
      : laid_(laid), groups_(groups), whole_(whole), before_(whole.step.gradients.size()) {
    std::iota(before_.begin(), before_.end(), 0);
    find_last_passes();
  }

  // Gives an exchange the latest gradients that fit: a module's own come after those of the modules
  // around it. If no room is left over, it gets all that arrived since the previous exchange. A run
  // of exactly its size comes first: the gradient that no longer fits may be the one that sends it.
  void assign(std::size_t place_of_exchange) {
    ObservedExchange& exchange = whole_.step.exchanges[place_of_exchange];
    const WholeSent& sent = whole_.sent[place_of_exchange];
    if (!is_last_pass_[sent.pass]) return;
    const Range range = range_of(sent);
    const Run latest = run_to(range.last, range.first, exchange);
    Run run = latest;
    int looked = run.looked;  // bounds the time for a trace without a fit
    for (int last = free_from(range.last);
         run.sum != exchange.elements && last > range.first && looked < kMaxGradients;
         last = free_from(last - 1)) {
      run = run_to(last - 1, range.first, exchange);
      looked += run.looked + 1;
    }
    if (run.sum != exchange.elements) run = latest;
    // A small bucket may have more padding.
    const double least = (1 - kPadding) * static_cast<double>(exchange.elements);
    const bool small = exchange.elements <= kSmallBucket;
    if (run.sum == 0 || (static_cast<double>(run.sum) < least && !small)) return;
    for (const int i : run.places) before_[index(i)] = i - 1;
    std::ranges::reverse(run.places);
    exchange.gradients = std::move(run.places);
  }

 private:
  struct Run {
    std::vector<int> places;  // from the last one back
    std::int64_t sum = 0;
    int looked = 0;
  };

  // Returns the run of free gradients that ends with `last` and fits into the exchange.
  Run run_to(int last, int first, const ObservedExchange& exchange) {
    const bool expert = role_of(exchange, groups_) == Role::kExpertData;
    Run run;
    for (int i = free_from(last); i >= first && run.looked < kMaxGradients; i = free_from(i - 1)) {
      ++run.looked;
      const Gradient& gradient = whole_.step.gradients[index(i)];
      if (gradient.expert != expert) continue;
      if (run.sum + gradient.elements > exchange.elements) break;
      run.sum += gradient.elements;
      run.places.push_back(i);
    }
    return run;
  }

  void find_last_passes() {
    is_last_pass_.assign(laid_.chunks.size(), false);
    std::set<int> chunks;
    for (std::size_t pass = laid_.chunks.size(); pass-- > 0;) {
      is_last_pass_[pass] = chunks.insert(laid_.chunks[pass]).second;
    }
  }

  // Returns the latest gradient, from this one back, that no exchange has taken; -1: none.
  int free_from(int gradient) {
    int found = gradient;
    while (found >= 0 && before_[index(found)] != found) found = before_[index(found)];
    while (gradient > found) gradient = std::exchange(before_[index(gradient)], found);
    return found;
  }

  // Gradients that may be in an exchange: all of its chunk that had arrived, or all.
  struct Range {
    int first = 0;
    int last = -1;
  };
  Range range_of(const WholeSent& sent) const {
    const auto& gradients = whole_.step.gradients;
    const auto count = static_cast<int>(gradients.size());
    if (sent.behind) return {0, count - 1};
    // Chunks decrease along the gradients.
    const auto begin = [&](int chunk) {
      const auto at =
          std::ranges::lower_bound(gradients, chunk, std::greater<>{}, &Gradient::chunk);
      return static_cast<int>(at - gradients.begin());
    };
    const int first = begin(laid_.chunks[sent.pass]);
    const int end = begin(laid_.chunks[sent.pass] - 1);
    const auto behind =
        std::upper_bound(laid_.arrived.begin() + first, laid_.arrived.begin() + end, sent.launched);
    return {first, static_cast<int>(behind - laid_.arrived.begin()) - 1};
  }

  const LaidGradients& laid_;
  const std::vector<RankGroup>& groups_;
  WholeStep& whole_;
  std::vector<int> before_;         // itself; for a taken gradient, an earlier one
  std::vector<bool> is_last_pass_;  // by pass: the last of its chunk
};

}  // namespace

Role role_of(const ObservedExchange& exchange, const std::vector<RankGroup>& groups) {
  return exchange.in < 0 ? Role::kUnknown : groups[index(exchange.in)].role;
}

void find_carried(const std::vector<std::size_t>& exchanges, const LaidGradients& laid,
                  const std::vector<RankGroup>& groups, WholeStep& whole) {
  UntakenGradients untaken(laid, groups, whole);
  for (const std::size_t exchange : exchanges) untaken.assign(exchange);
}

}  // namespace syncline::job::kineto
