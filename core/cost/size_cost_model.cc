//   segments  latency + bytes * slope on each stretch of sizes that one regime covers; between the
//             last size of one and the first of the next the logarithms are joined by a line, since
//             nothing was measured where the regimes change
//   envelope  the least of a few lines: whoever chooses takes the best
//   sum       (latency^p + (bytes * slope)^p)^(1/p): a floor that acts like a maximum
//
// Times are never negative and, inside a regime, never fall with the payload.
#include "core/cost/cost_model.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace syncline::cost {
namespace {

Seconds on_line(const SizeLine& line, double bytes) {
  return line.latency + line.seconds_per_byte * bytes;
}

Seconds on_segments(const SizeCostModel& model, double bytes) {
  for (std::size_t i = 0; i + 1 < model.lines.size(); ++i) {
    const SizeLine& line = model.lines[i];
    if (bytes <= line.to) return on_line(line, bytes);
    const SizeLine& next = model.lines[i + 1];
    if (bytes >= next.from) continue;
    const double share = std::log(bytes / line.to) / std::log(next.from / line.to);
    return std::exp((1 - share) * std::log(on_line(line, line.to)) +
                    share * std::log(on_line(next, next.from)));
  }
  return on_line(model.lines.back(), bytes);
}

}  // namespace

Seconds size_time(const SizeCostModel& model, double bytes) {
  assert(!model.lines.empty() && "a cost model has a line");
  double largest = 0;
  for (const SizeLine& line : model.lines) largest = std::max(largest, line.to);
  if (bytes > largest && model.lines.back().seconds_per_byte <= 0) {
    return size_time(model, largest) * bytes / largest;
  }
  if (model.form == SizeCostModel::Form::kSegments) return on_segments(model, bytes);
  if (model.form == SizeCostModel::Form::kSum) {
    const SizeLine& line = model.lines.front();
    return std::pow(std::pow(line.latency, model.exponent) +
                        std::pow(line.seconds_per_byte * bytes, model.exponent),
                    1 / model.exponent);
  }
  double least = on_line(model.lines.front(), bytes);
  for (const SizeLine& line : model.lines) least = std::min(least, on_line(line, bytes));
  return least;
}

double size_spread(const std::vector<SizeSpread>& spreads, double bytes) {
  if (spreads.empty()) return kUnknownSpread;
  const auto above = std::find_if(spreads.begin(), spreads.end(),
                                  [&](const SizeSpread& one) { return one.bytes >= bytes; });
  if (above == spreads.begin()) return above->spread;
  if (above == spreads.end()) return spreads.back().spread;
  const SizeSpread& below = *(above - 1);
  const double share = std::log(bytes / below.bytes) / std::log(above->bytes / below.bytes);
  return below.spread + share * (above->spread - below.spread);
}

std::string describe(const SizeCostModel& model) {
  const std::string count = std::to_string(model.lines.size());
  switch (model.form) {
    case SizeCostModel::Form::kSum:
      return "sum with exponent " + std::to_string(std::lround(model.exponent));
    case SizeCostModel::Form::kEnvelope:
      return "envelope of " + count + " lines";
    case SizeCostModel::Form::kSegments:
      break;
  }
  return model.lines.size() == 1 ? "one line" : count + " segments";
}

}  // namespace syncline::cost
