// The time of one collective on one count of nodes and GPUs, by payload. A cost has regimes (LL,
// LL128 and Simple inside NCCL, small and large messages on TCP), so the cost model is one of
#pragma once

#include <string>
#include <vector>

#include "core/units.h"

namespace syncline::cost {

struct SizeLine {
  double from = 0;  // bytes that the line was fitted to, both ends included
  double to = 0;
  Seconds latency = 0;
  double seconds_per_byte = 0;
};

struct SizeCostModel {
  enum class Form { kSegments, kEnvelope, kSum };
  Form form = Form::kSegments;
  std::vector<SizeLine> lines;  // at least one; segments by ascending size
  double exponent = 1;          // of a sum
};

// Beyond the largest size the last slope goes on; where that is nil (only small sizes were
// measured) the time grows with the payload, which is the most it could.
Seconds size_time(const SizeCostModel& cost_model, double bytes);

// How far the cost model was off at sizes that its fit had not seen, in their neighbourhood: the
// standard deviation of log(true time / time).
struct SizeSpread {
  double bytes = 0;
  double spread = 0;
};

inline constexpr double kUnknownSpread = 0.25;

// Between the sizes listed, ascending, on straight lines over the logarithm of the size; outside of
// them the nearest. An empty list (a cluster file from before there was one, or fewer than three
// sizes) gives a wide default, kUnknownSpread.
double size_spread(const std::vector<SizeSpread>& spreads, double bytes);

// "3 segments", "envelope of 2 lines", "sum with exponent 4".
std::string describe(const SizeCostModel& cost_model);

}  // namespace syncline::cost
