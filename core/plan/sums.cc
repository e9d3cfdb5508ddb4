#include "core/plan/sums.h"

#include <algorithm>
#include <cmath>

namespace syncline::plan {
namespace {

constexpr Bytes kHalfBytes = 2;
// Gloo sends a rank's part in segments, each of which is added up while the next one flows: two of
// them, or more where they would be larger than this.
constexpr double kLargestSegment = 1024.0 * 1024.0;
constexpr double kFewestSegments = 2;

// The share of a collective's time in which ranks add up; 0: they do not.
double reducing_share(collective::CollectiveKind kind) {
  switch (kind) {
    case collective::CollectiveKind::kAllReduce:
      return 0.5;  // each rank's part is summed first, then it goes round
    case collective::CollectiveKind::kReduceScatter:
    case collective::CollectiveKind::kReduce:
      return 1;
    case collective::CollectiveKind::kAllGather:
    case collective::CollectiveKind::kBroadcast:
      break;
  }
  return 0;
}

}  // namespace

Sums sums_of(const collective::Collective& collective, const Device& device) {
  Sums sums;
  sums.bucket = collective.bucket;
  const double share = reducing_share(collective.kind);
  if (device.sums <= 0 || share <= 0 || collective.unit != kHalfBytes) return sums;
  // Each rank adds what the others send it of its own part.
  const double others = collective.groups.size - 1;
  const double part = static_cast<double>(collective.bytes()) / collective.groups.size;
  if (others <= 0 || part <= 0) return sums;
  sums.work = others * part / device.sums;
  sums.reducing = share;
  sums.exposed = 1 / (others * std::max(kFewestSegments, std::ceil(part / kLargestSegment)));
  sums.busy = device.overlap.slowdown / (1 + device.overlap.slowdown);
  return sums;
}

Seconds beyond(const Sums& sums, Seconds wire, double times) {
  const Seconds flow = sums.reducing * wire;
  return std::max(0.0, times * sums.work - (1 - sums.busy) * flow) +
         sums.exposed * std::min(flow, sums.work);
}

}  // namespace syncline::plan
