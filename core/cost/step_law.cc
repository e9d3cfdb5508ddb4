#include "core/cost/step_law.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/cost/least_squares.h"

namespace syncline::cost {
namespace {

constexpr double kFillPower = 0.42;  // fitted by many: a pipeline's chunks grow with the payload
constexpr double kFillBytes = 1 << 20;
// Rows repeat to some per cent at best; errors far beyond count ever less.
constexpr double kNoise = 0.08;

using Parameters = std::array<double, 4>;  // logarithms: base, latency, bandwidth, share or fill

// What is usual of a path on the networks that were measured at several counts of nodes (Alps,
// Polaris on TCP and on libfabric), each fitted to all of its tables; where one of them is foretold
// from a single count, the others' figures are nearer than NCCL's constants.
struct Usual {
  double latency = 1;      // in units of NCCL's constant and of the fabric's scale
  double efficiency = 1;   // share of the fabric's rate
  double intra_share = 0;  // rings
  Seconds fill = 0;        // trees
};

// LL sends 4 bytes of flag with 4 of data, LL128 8 with 120; a tree of LL loses more.
const Usual& usual_of(StepPath path) {
  using UsualByProtocol = std::array<Usual, 3>;
  static constexpr UsualByProtocol kRing = {{{1, .5, .45}, {1.5, .92, .5}, {1, 1, .35}}};
  static constexpr UsualByProtocol kTree = {{{.7, .25, 0, 100 * kMicrosecond},
                                             {1, .9, 0, 100 * kMicrosecond},
                                             {1, .95, 0, 20 * kMicrosecond}}};
  return (path.tree ? kTree : kRing)[static_cast<std::size_t>(path.protocol)];
}

StepLaw law_of(StepPath path, const Parameters& p, double exponent, Seconds chain) {
  StepLaw law{path, std::exp(p[0]), std::exp(p[1]), std::exp(p[2]), 0, 0, exponent, chain};
  (path.tree ? law.fill : law.intra_share) = std::exp(p[3]);
  if (!path.tree) law.intra_share = std::min(law.intra_share, 1.0);
  return law;
}

Parameters parameters_of(const StepLaw& law) {
  return {std::log(law.base), std::log(law.latency), std::log(law.bandwidth),
          std::log(law.path.tree ? law.fill : law.intra_share)};
}

Parameters spreads(StepPath path, const StepPrior& prior) {
  // Simple reaches the network's rate; LL and LL128 a share of it that varies.
  const double rate = path.protocol == collective::NcclProtocol::kSimple  ? 0.2
                      : path.protocol == collective::NcclProtocol::kLl128 ? 0.3
                                                                          : 0.7;
  return {0.5, prior.latency_spread, rate, path.tree ? 1.0 : 0.7};
}

}  // namespace

Seconds step_time(const StepLaw& law, collective::CollectiveKind kind, double bytes, int nodes,
                  int gpus_per_node, double share) {
  const double bandwidth = law.bandwidth * share;
  if (law.path.tree) {
    const double hops = nodes > 1 ? std::ilogb(nodes) : 1;
    const double times = nodes <= 2 ? 1 : 2;
    return law.base + 2 * (hops * law.latency + (gpus_per_node - 1) * law.chain) +
           hops * law.fill * std::pow(bytes / kFillBytes, kFillPower) + times * bytes / bandwidth;
  }
  const RingSteps steps = ring_steps(kind, nodes, gpus_per_node);
  const double ranks = static_cast<double>(nodes) * gpus_per_node;
  const double waiting =
      law.latency * (steps.between_nodes + law.intra_share * (steps.all - steps.between_nodes));
  const double moving = steps.all * bytes / ranks / bandwidth;
  if (law.exponent == 1) return law.base + waiting + moving;
  return law.base + std::pow(std::pow(waiting, law.exponent) + std::pow(moving, law.exponent),
                             1 / law.exponent);
}

StepLaw prior_law(StepPath path, const StepPrior& prior) {
  const Usual& usual = usual_of(path);
  StepLaw law;
  law.path = path;
  law.base = nccl_base_latency(path);
  law.latency = nccl_step_latency(path, true) * prior.latency_scale * usual.latency;
  law.bandwidth = prior.bandwidth * usual.efficiency;
  if (path.tree) {
    law.fill = usual.fill;
    law.chain = nccl_step_latency(path, false) * prior.inside_scale;
    return law;
  }
  law.intra_share = usual.intra_share;
  if (path.protocol == collective::NcclProtocol::kSimple) law.exponent = 4;
  return law;
}

StepFit fit_step_law(StepPath path, const std::vector<StepRow>& rows, const StepPrior& prior) {
  const StepLaw before = prior_law(path, prior);
  const Parameters centre = parameters_of(before);
  const Seconds chain = before.chain;
  const Parameters spread = spreads(path, prior);
  StepFit best;
  bool any = false;
  for (const double exponent : {1.0, 2.0, 4.0}) {
    const bool shaped = !path.tree && path.protocol == collective::NcclProtocol::kSimple;
    if (exponent != 1 && !shaped) break;
    const auto residuals = [&](const Parameters& p, double* out) {
      const StepLaw law = law_of(path, p, exponent, chain);
      for (const StepRow& row : rows) {
        const double time =
            step_time(law, row.kind, row.bytes, row.nodes, row.gpus_per_node, row.share);
        *out++ = damped(std::log(time / row.time) / kNoise);
      }
      for (std::size_t i = 0; i < p.size(); ++i) *out++ = (p[i] - centre[i]) / spread[i];
    };
    const auto [found, squares] = least_squares<4>(residuals, rows.size() + 4, centre);
    // A floor must earn its place.
    constexpr double kGain = 0.5;
    if (!any || squares / 2 < best.cost - kGain) {
      best = {law_of(path, found, exponent, chain), squares / 2};
      any = true;
    }
  }
  return best;
}

}  // namespace syncline::cost
