// Gradients 0..L-1 become ready in this order. A bucket is a run of them, released when its last
// one is ready; buckets go one after the other over one stream. C[i], the earliest time at which
// the first i gradients can have been exchanged, follows from
//   C[0] = 0,   C[i] = min over j < i of max(C[j], ready[i-1]) + cost(j, i),
// because a prefix matters only through its finish. Exact for every cost of a run; with an affine
// one (latency + bytes * rate) no grouping that is not contiguous, and no other order, is better:
// moving a gradient from a later bucket to an earlier-released one never raises a suffix sum.
// Costs that depend on what other streams do are outside this page.
#include "core/tune/configuration.h"

#include <algorithm>
#include <limits>

namespace syncline::tune {
namespace {

constexpr Seconds kNever = std::numeric_limits<double>::infinity();

// Follows the choices back from the last gradient.
std::vector<std::size_t> ends_of(const std::vector<std::size_t>& begin_of_last) {
  std::vector<std::size_t> ends;
  for (std::size_t i = begin_of_last.size() - 1; i > 0; i = begin_of_last[i]) ends.push_back(i - 1);
  std::reverse(ends.begin(), ends.end());
  return ends;
}

}  // namespace

FusionPlan best_fusion(const std::vector<Seconds>& ready, const RunCost& cost) {
  const std::size_t count = ready.size();
  std::vector<Seconds> finish(count + 1, 0);
  std::vector<std::size_t> choice(count + 1, 0);
  for (std::size_t i = 1; i <= count; ++i) {
    finish[i] = kNever;
    for (std::size_t j = 0; j < i; ++j) {
      const Seconds end = std::max(finish[j], ready[i - 1]) + cost(j, i);
      if (end >= finish[i]) continue;
      finish[i] = end;
      choice[i] = j;
    }
  }
  return {finish[count], ends_of(choice)};
}

}  // namespace syncline::tune
