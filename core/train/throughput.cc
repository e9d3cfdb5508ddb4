#include "core/train/throughput.h"

#include <algorithm>

#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/measure/study.h"
#include "core/run/model_executor.h"

namespace syncline::train {

PeriodPrices::PeriodPrices(const input::Document& document)
    : scenario_(input::parse_scenario(measure::calibrated(document).document)) {
  scenario_.training = {};  // each price is that of a period for ever
}

std::optional<double> PeriodPrices::throughput(const std::vector<plan::PeriodShare>& periods) {
  if (!scenario_.workload.batch_given) return std::nullopt;
  Seconds time = 0;
  double steps = 0;
  for (const auto& share : periods) {
    time += static_cast<double>(share.steps) * step_time(share.period);
    steps += static_cast<double>(share.steps);
  }
  const double samples =
      static_cast<double>(samples_of(scenario_.workload)) * scenario_.cluster.ranks() * steps;
  return samples / time;
}

Seconds PeriodPrices::step_time(std::int64_t period) {
  const auto known = priced_.find(period);
  if (known != priced_.end()) return known->second;
  Strategy strategy = *find_strategy(scenario_, scenario_.baseline);
  strategy.compression.codec.clear();
  strategy.local_sgd = {};
  strategy.local_sgd.enabled = true;
  strategy.local_sgd.period = period;
  collective::PriceBook book(scenario_.cluster);
  const auto executor =
      run::make_model_executor({scenario_.cluster, scenario_.simulation, scenario_.seed});
  const Seconds time =
      measure::price_strategy(scenario_, strategy, *executor, book).metrics.step_time;
  return priced_[period] = time;
}

}  // namespace syncline::train
