// What a step is bound by. `explain` and `tune` both ask here, so that they answer alike.
#pragma once

#include <string_view>

#include "core/measure/price_strategy.h"

namespace syncline::measure {

// A step's time by cause. The communication that nothing hides is shared out as start-up and
// transfer are in the collectives' own time.
struct Bottleneck {
  Seconds step = 0;
  Seconds compute = 0;        // the model's work on a rank of mean speed
  Seconds stragglers = 0;     // waiting for slower ranks
  Seconds overhead = 0;       // what data-parallel execution costs the host
  Seconds handling = 0;       // copying and encoding gradients, the host's delays
  Seconds start_up = 0;       // exposed latency and overhead of collectives
  Seconds transfer = 0;       // exposed time of their bytes
  double start_up_share = 0;  // of the collectives' own time, hidden or not

  Seconds communication() const { return start_up + transfer; }
  // "computation" where less than a tenth of the step is anything else, else the greatest of
  // "stragglers", "handling gradients", and "latency" or "bandwidth".
  std::string_view what() const;
};

// Of what was priced on this cluster, whose prices are in the book.
Bottleneck bottleneck_of(const Priced& priced, const Cluster& cluster, collective::PriceBook& book);

}  // namespace syncline::measure
