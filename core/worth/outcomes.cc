#include "core/worth/outcomes.h"

#include <algorithm>

#include "core/error.h"

namespace syncline::worth {
namespace {

const Reach* named(const std::vector<Reach>& reaches, const std::string& name) {
  const auto found = std::find_if(reaches.begin(), reaches.end(),
                                  [&](const Reach& reach) { return reach.strategy == name; });
  return found == reaches.end() ? nullptr : &*found;
}

// Buckets, streams and levels leave a training as it is.
bool train_alike(const Strategy& a, const Strategy& b) {
  return measure::training_beside(a, b) == measure::TrainingChange::kSame &&
         measure::training_beside(b, a) == measure::TrainingChange::kSame;
}

const Reach* reach_of(const std::vector<Reach>& reaches, const tune::Alternative& row,
                      const Scenario& scenario) {
  const Reach* own = named(reaches, row.strategy.name);
  if (own == nullptr) own = named(reaches, row.plain);
  for (const Strategy& other : scenario.strategies) {
    if (own != nullptr) break;
    if (train_alike(row.strategy, other)) own = named(reaches, other.name);
  }
  return own;
}

std::string names_of(const std::vector<tune::Alternative>& rows) {
  std::string text;
  for (const tune::Alternative& row : rows) {
    text +=
        (text.empty() ? "'" : ", '") + (row.plain.empty() ? row.strategy.name : row.plain) + "'";
  }
  return text;
}

}  // namespace

void add_outcomes(const std::vector<Curve>& curves, Quantity quantity, tune::Tuning& tuning) {
  const auto reaches = reaches_of(curves, quantity, 0);  // of whatever target: the ends count
  auto& rows = tuning.alternatives;
  const Reach* before = reach_of(reaches, rows.front(), tuning.scenario);
  bool any = false;
  for (tune::Alternative& row : rows) {
    const Reach* reach = reach_of(reaches, row, tuning.scenario);
    if (reach == nullptr) continue;
    any = true;
    row.outcome =
        tune::TrainingResult{std::string(word_of(quantity)), reach->end, reach->end_half_width, {}};
    if (before != nullptr) row.outcome->baseline = before->end;
  }
  if (any) return;
  throw InputError("no row has a curve: found curves of '" + curves.front().strategy +
                   "', expected names such as " + names_of(rows));
}

}  // namespace syncline::worth
