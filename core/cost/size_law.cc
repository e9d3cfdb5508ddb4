#include "core/cost/size_law.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace syncline::cost {
namespace {

Seconds on_line(const SizeLine& line, double bytes) {
  return line.latency + line.seconds_per_byte * bytes;
}

Seconds on_segments(const SizeLaw& law, double bytes) {
  for (std::size_t i = 0; i + 1 < law.lines.size(); ++i) {
    const SizeLine& line = law.lines[i];
    if (bytes <= line.to) return on_line(line, bytes);
    const SizeLine& next = law.lines[i + 1];
    if (bytes >= next.from) continue;
    const double share = std::log(bytes / line.to) / std::log(next.from / line.to);
    return std::exp((1 - share) * std::log(on_line(line, line.to)) +
                    share * std::log(on_line(next, next.from)));
  }
  return on_line(law.lines.back(), bytes);
}

}  // namespace

Seconds size_time(const SizeLaw& law, double bytes) {
  assert(!law.lines.empty() && "a cost model has a line");
  double largest = 0;
  for (const SizeLine& line : law.lines) largest = std::max(largest, line.to);
  if (bytes > largest && law.lines.back().seconds_per_byte <= 0) {
    return size_time(law, largest) * bytes / largest;
  }
  if (law.form == SizeLaw::Form::kSegments) return on_segments(law, bytes);
  if (law.form == SizeLaw::Form::kSum) {
    const SizeLine& line = law.lines.front();
    return std::pow(std::pow(line.latency, law.exponent) +
                        std::pow(line.seconds_per_byte * bytes, law.exponent),
                    1 / law.exponent);
  }
  double least = on_line(law.lines.front(), bytes);
  for (const SizeLine& line : law.lines) least = std::min(least, on_line(line, bytes));
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

std::string describe(const SizeLaw& law) {
  const std::string count = std::to_string(law.lines.size());
  switch (law.form) {
    case SizeLaw::Form::kSum:
      return "sum with exponent " + std::to_string(std::lround(law.exponent));
    case SizeLaw::Form::kEnvelope:
      return "envelope of " + count + " lines";
    case SizeLaw::Form::kSegments:
      break;
  }
  return law.lines.size() == 1 ? "one line" : count + " segments";
}

}  // namespace syncline::cost
