// What would make a strategy faster: changes of one knob at a time, priced by the model.
#pragma once

#include <string>
#include <vector>

#include "core/collective/price.h"
#include "core/run/executor.h"
#include "core/scenario/scenario.h"

namespace syncline::measure {

struct Advice {
  // In plain words with our keys; for a strategy of a dialect in that framework's keys
  // ("fuse_grad_size_in_MB: 16 -> 8"), or in ours with "cannot be said in paddle" behind them.
  std::string change;
  Strategy strategy;  // the strategy with that change
  Seconds step_time = 0;
  double gain_percent = 0;        // how much shorter the step becomes
  bool changes_training = false;  // sparser, coarser or rarer exchange
};

// The best change of each kind (fusion, copies, streams, overlap, hierarchy, algorithm,
// compression, rarer averaging) that shortens the step by at least `least_percent`, best first. The
// strategy is priced at the scenario's training point; kinds that it already uses up are left out.
//
// `written` is the strategy as it stands in the scenario ({"dialect": ..., "config": ...}), if
// known. Where it is in a dialect, changes of its configuration go first, each read back as the
// framework reads it; one of ours is added where it gains at least `least_percent` more.
std::vector<Advice> advise(const Scenario& scenario, const Strategy& strategy,
                           run::Executor& executor, collective::PriceBook& book,
                           double least_percent, const Json* written = nullptr);

}  // namespace syncline::measure
