#include "core/tune/applicable.h"

#include <algorithm>
#include <vector>

#include "core/dialect/pytorch_apply.h"

namespace syncline::tune {

const Ranked& best_to_apply(const Tuning& tuning) {
  if (tuning.taken) return *tuning.taken;
  const Tuned& tuned = tuning.tuned;
  std::vector<const Ranked*> found{&tuned.winner()};
  for (const auto& ranked : tuned.ranking) found.push_back(&ranked);
  for (const auto& [kind, ranked] : tuned.best_of_kind) found.push_back(&ranked);
  for (const auto* best : {&tuned.best_explicit, &tuned.best_threshold, &tuned.best_as_before}) {
    if (best->has_value()) found.push_back(&**best);
  }
  found.push_back(&tuned.baseline);
  std::erase_if(found, [&](const Ranked* ranked) {
    return !dialect::apply_refusal(ranked->strategy, tuning.scenario.workload,
                                   tuning.scenario.cluster)
                .empty();
  });
  if (found.empty() || found.front() == &tuned.winner()) return tuned.winner();
  return **std::min_element(found.begin(), found.end(), [](const auto* a, const auto* b) {
    return a->metrics.step_time < b->metrics.step_time;
  });
}

}  // namespace syncline::tune
