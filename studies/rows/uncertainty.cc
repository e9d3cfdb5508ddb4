#include "studies/rows/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <set>

#include "catalogue/hardware/device.h"
#include "core/base/statistics.h"
#include "core/cluster.h"
#include "core/collective/library.h"
#include "core/collective/nccl.h"
#include "core/executor.h"
#include "core/fabric/topology.h"
#include "core/job/overlap.h"
#include "core/metrics/expect_time.h"
#include "core/metrics/phases.h"
#include "core/operators/evaluate.h"
#include "core/plan/fusion.h"
#include "core/run/interference.h"
#include "formats/dialect/dialect.h"
#include "studies/rows/draws.h"

namespace syncline::measure {
namespace {

std::size_t place_of(Uncertainty uncertainty) { return static_cast<std::size_t>(uncertainty); }
std::size_t place_of(GuessedKind kind) { return static_cast<std::size_t>(kind); }

bool of_network(Uncertainty uncertainty) {
  return uncertainty == Uncertainty::kLatency || uncertainty == Uncertainty::kBandwidth;
}

// Returns the share of small messages in a collective's uncertainty; squares of this and of the
// large part add up to one. Protocols change in between, so both are assumed to be independent.
double small_part(double bytes) {
  constexpr double kSmall = 64.0 * kKiB;
  constexpr double kLarge = 16.0 * kMiB;
  const double place = std::log(std::max(bytes, 1.0) / kSmall) / std::log(kLarge / kSmall);
  return std::cos(std::clamp(place, 0.0, 1.0) * std::numbers::pi / 2);
}

// Spreads without measurements. A model's times are measured elsewhere, or computed from operators
// or FLOPs and a guessed rate. tests/hardware/reached_test.cc gives the errors of operators' times
// on devices of published runs.
constexpr double kMeasuredUnknown = 0.1;  // calibration without a given spread
constexpr double kTimedComputation = 0.03;
constexpr double kRatedComputation = 0.25;
constexpr double kRatedOperators = 0.14;
constexpr double kDeviceSpread = 0.3;
// Spread of an update on the host without a figure: the published times are the ends of 80 %.
const double kHostSpread = std::log(kHostUpdateMost / kHostUpdateLeast) / 2 / kHeldDeviations;
constexpr double kFrameworkSpread = 0.3;    // relative, for a given overhead
constexpr double kFrameworkUnknown = 0.03;  // share of a step, if none is given: it can only add
// Share of the computation that copies and hooks of sharded parameters take on processors: 13 of 47
// ms of FSDP2's, 38 of 133 of ZeRO 3's (scenarios/sharded/NOTES.md).
constexpr double kShardsOnHost = 0.28;
// Error of the model in each row, as a share of the step and of its exposed communication: live
// runs on known links err by 1 % in the median and 4 % at the 90th percentile.
constexpr double kOwnStep = 0.008;
constexpr double kOwnExposed = 0.03;
// Errors of the ratio of two rows. 75 pairs of those live runs that wait alike for communication
// differ by 0.85 % from the prediction (root of the mean square). A gain errs by a share of it, by
// which 80 % of 146 pairs of published tables without a fitted row are inside. With any one table
// left out the share is 0.26 to 0.30.
constexpr double kOwnRatio = 0.008;
constexpr double kOwnGain = 0.28;
// Error of the ratio of rows that compute differently, as a share of the logarithm of the predicted
// difference: 80 % of 18 published pairs are inside (compiled or not: PyTorch's blog on FSDP and
// torch.compile; FP8, recomputation: torchao's float8nocompile; recomputation: Korthikanti et al.
// 2022, table 5). Without any one source it is 0.40 to 0.45.
constexpr double kOwnWork = 0.43;
// The slow end of the host's time per layer with experts and micro-batch beyond the prediction,
// between the 7 and 20 ms of Qwen3 30B on B200 and on H100 (Megatron-Bridge 25.11, performance
// summary): the host launches many kernels for few tokens.
constexpr Seconds kHostOfExperts = 12 * kMillisecond;

// Returns a number for the code base whose kernels compute; 0: it is not known.
std::int64_t kernels_of(const Strategy& strategy) {
  const dialect::Dialect* own = dialect::find_dialect(strategy.dialect);
  if (own == nullptr || own->kernels.empty()) return 0;
  const auto& rows = dialect::dialects();
  return 1 + (std::ranges::find(rows, own->kernels, &dialect::Dialect::kernels) - rows.begin());
}

// Returns the host's time beyond the prediction, as a share of a step, at the slow end of 80 %.
double host_share(const Strategy& strategy) {
  const dialect::Dialect* own = dialect::find_dialect(strategy.dialect);
  return own != nullptr && shards_update(strategy) ? own->host_share : 0;
}

// Returns the part of a step that a strategy may take less, or more, than predicted by times that
// were measured under another scheme.
Interval crossed_share(const Scenario& scenario, const Strategy& strategy, Seconds step) {
  if (!measured_under_another_scheme(scenario, strategy)) return {};
  const Workload& workload = scenario.workload;
  const bool on_host = scenario.cluster.library == Library::kGloo;
  const double share = on_host ? kShardsOnHost : kHeldDeviations * kFrameworkUnknown;
  const Seconds computed =
      earlier_passes(workload) + workload.forward + backward_time(workload) + workload.update;
  const double part = std::min(1.0, computed / step);
  return holds_shards(strategy) ? Interval{0, (1 / (1 - share) - 1) * part}
                                : Interval{-share * part, 0};
}

// Returns Sensitivity::hooks of a strategy.
int hooks_of(const Strategy& strategy) {
  if (host_share(strategy) <= 0) return 0;
  using Sharded = FrameworkTraits::Sharded;
  const Sharded held = strategy.regather ? Sharded::kParameters : strategy.traits.sharded;
  return held == Sharded::kParameters ? 3 : held == Sharded::kGradients ? 2 : 1;
}

int count_layers(const Workload& workload, bool with_experts) {
  std::set<int> layers;
  for (const Tensor& tensor : workload.tensors) {
    const bool counted =
        !with_experts || tensor.expert || tensor.name.find("experts") != std::string::npos;
    if (counted) layers.insert(plan::layer_number(tensor.name));
  }
  layers.erase(-1);
  return static_cast<int>(layers.size());
}

// Returns the number of nodes that a group spans, and true if it has one GPU of each.
std::pair<int, bool> nodes_of(const Cluster& cluster, const collective::Groups& groups) {
  int count = 0;
  for (int m = 0, last = -1; m < groups.size; ++m) {
    const int node = groups.rank(0, m) / cluster.gpus_per_node;
    if (node != last) ++count;
    last = node;
  }
  return {count, count == groups.size};
}

GuessedKind guessed_kind_of(const Cluster& cluster, const collective::Collective& collective) {
  using collective::NcclAlgorithm;
  const auto [nodes, one_each] = nodes_of(cluster, collective.groups);
  const bool all = collective.kind == collective::CollectiveKind::kAllReduce;
  if (nodes == 1) return all ? GuessedKind::kInside : GuessedKind::kInsideHalf;
  if (one_each) return all ? GuessedKind::kOneEach : GuessedKind::kOneEachHalf;
  const bool tree_or_ring =
      collective.nccl && (collective.nccl->algorithm == NcclAlgorithm::kTree ||
                          collective.nccl->algorithm == NcclAlgorithm::kRing);
  if (all && nodes == 2 && tree_or_ring) return GuessedKind::kTreeOfTwo;
  return all ? GuessedKind::kAcross : GuessedKind::kAcrossHalf;
}

// Returns the part of the squares of large messages' uncertainty that only this kind has, by
// judgement: no table was fitted. On two nodes nearly all of it is the graph that NCCL's search
// finds, as a tree sends half of a ring's bytes through a port. Inside a node links and switches
// differ by kind of collective. Elsewhere an all-reduce and its halves have similar errors.
double apart(GuessedKind way) {
  constexpr double kGraph = 0.8, kInsideNodes = 0.5, kAcrossNodes = 0.1;
  if (way == GuessedKind::kTreeOfTwo) return kGraph;
  return way == GuessedKind::kInside || way == GuessedKind::kInsideHalf ? kInsideNodes
                                                                        : kAcrossNodes;
}

// Returns the given share of the rated bandwidth, which already covers part of data sheets'
// optimism.
double reached_share(const Cluster& cluster) {
  double share = 1;
  for (const Tier& tier : cluster.tiers) share = std::min(share, tier.efficiency);
  return share;
}

// Returns an end of the interval of log(true / predicted time) of given links, at `deviations`.
double end_of_links(const Cluster& cluster, double bytes, double deviations) {
  const collective::Prior prior = collective::links_prior(bytes);
  const double small = small_part(bytes);
  const double large = std::sqrt(1 - small * small);
  // Measured links determine the time of large messages.
  if (std::ranges::all_of(cluster.tiers, &Tier::measured)) {
    return small * prior.bias +
           deviations * std::hypot(small * prior.spread, large * kMeasuredUnknown);
  }
  return prior.bias + deviations * prior.spread + large * std::log(reached_share(cluster));
}

// Times of collectives with their spread: calibrated ones, else NCCL's.
class LikelyTimes {
 public:
  explicit LikelyTimes(const Cluster& cluster) : cluster_(cluster), nccl_(cluster_) {
    const bool measured = std::ranges::all_of(cluster.tiers, &Tier::measured);
    if (cluster.fabric != Fabric::kUnknown || cluster.nodes == 1 || measured) return;
    sockets_ = cluster;
    sockets_->fabric = Fabric::kTcp;
    over_sockets_.emplace(*sockets_);
  }
  LikelyTimes(const LikelyTimes&) = delete;  // the models refer to the clusters
  LikelyTimes& operator=(const LikelyTimes&) = delete;

  const Cluster& cluster() const { return cluster_; }

  std::optional<CollectiveTime> calibrated(const collective::Collective& asked) const {
    return cluster_.cost_model ? cluster_.cost_model(asked) : std::nullopt;
  }

  // Returns NCCL's time. Its spread is that towards the deviations' end: a fabric that nobody named
  // may be sockets, and their time is then the slow end.
  std::optional<CollectiveTime> guessed(const collective::Collective& asked,
                                        double deviations) const {
    auto answer = nccl_.time(asked);
    if (!answer || !over_sockets_ || deviations <= 0) return answer;
    const auto slow = over_sockets_->time(asked);
    if (!slow || slow->time <= answer->time) return answer;
    answer->spread =
        std::max(answer->spread, std::log(slow->time / answer->time) / kHeldDeviations);
    return answer;
  }

 private:
  Cluster cluster_;
  std::optional<Cluster> sockets_;
  collective::NcclCostModel nccl_;
  std::optional<collective::NcclCostModel> over_sockets_;
};

struct ShiftedNetwork {
  Cluster cluster;
  collective::LinkShift shift;  // shift of its links
};

// Returns the network with small, or with large, messages at one end of their likely range.
// `fit_errors`: the spread of both, if the scenario was calibrated.
ShiftedNetwork shifted_network(const Cluster& cluster, bool small, double deviations,
                               std::optional<double> fit_errors) {
  Cluster moved = cluster;
  collective::LinkShift shift{.from = cluster.tiers};
  // Calibrated links have the calibration's spread.
  const std::optional<double> known = fit_errors           ? fit_errors
                                      : cluster.cost_model ? std::optional(kMeasuredUnknown)
                                                           : std::nullopt;
  const auto end_at = [&](double bytes) {
    if (known) return deviations * *known;
    if (cluster.library != Library::kNccl || cluster.ranks() == 1) {
      return end_of_links(cluster, bytes, deviations);
    }
    const auto path = collective::path_of(cluster, collective::world_group(cluster.ranks()));
    return deviations * collective::nccl_prior(path, bytes).spread;
  };
  if (small) {
    shift.latency = std::exp(end_at(8 * kKiB));
    for (Tier& tier : moved.tiers) tier.latency *= shift.latency;
    moved.collective_overhead *= shift.latency;
  } else {
    shift.bandwidth = std::exp(-end_at(64.0 * kMiB));
    for (Tier& tier : moved.tiers) {
      tier.bandwidth *= shift.bandwidth;
      tier.flow_cap *= shift.bandwidth;
    }
  }
  const auto times = std::make_shared<const LikelyTimes>(cluster);
  moved.cost_model = [=](const collective::Collective& asked) -> std::optional<CollectiveTime> {
    std::optional<CollectiveTime> answer = times->calibrated(asked);
    if (!answer) answer = times->guessed(asked, deviations);
    if (!answer) return answer;
    const double part = small_part(static_cast<double>(asked.bytes()));
    const double spread = fit_errors           ? *fit_errors
                          : answer->spread > 0 ? answer->spread
                                               : kMeasuredUnknown;
    const double shared = known ? 1 : 1 - apart(guessed_kind_of(times->cluster(), asked));
    answer->time *=
        std::exp(deviations * spread * (small ? part : std::sqrt(shared * (1 - part * part))));
    return answer;
  };
  return {std::move(moved), std::move(shift)};
}

// Returns the network with large messages of one kind at one end of that kind's own interval.
Cluster with_way_moved(const Cluster& cluster, GuessedKind way, double deviations) {
  Cluster moved = cluster;
  const auto times = std::make_shared<const LikelyTimes>(cluster);
  moved.cost_model = [=](const collective::Collective& asked) {
    auto answer = times->guessed(asked, deviations);
    if (!answer || guessed_kind_of(times->cluster(), asked) != way) return answer;
    const double part = small_part(static_cast<double>(asked.bytes()));
    answer->time *=
        std::exp(deviations * answer->spread * std::sqrt(apart(way) * (1 - part * part)));
    return answer;
  };
  return moved;
}

// Returns the network of one draw.
ShiftedNetwork network_at(const Cluster& cluster, const Draw& draw,
                          std::optional<double> fit_errors) {
  const double small = draw.inputs[place_of(Uncertainty::kLatency)];
  const double large = draw.inputs[place_of(Uncertainty::kBandwidth)];
  const auto end = [&](bool of_small, double deviations) {
    const ShiftedNetwork moved = shifted_network(cluster, of_small, deviations, fit_errors);
    return of_small ? moved.shift.latency : moved.shift.bandwidth;
  };
  const auto between = [&](bool of_small, double deviations) {
    return factor_between(end(of_small, -kHeldDeviations), end(of_small, kHeldDeviations),
                          deviations);
  };
  Cluster moved = cluster;
  const collective::LinkShift shift{cluster.tiers, between(true, small), between(false, large)};
  for (Tier& tier : moved.tiers) {
    tier.latency *= shift.latency;
    tier.bandwidth *= shift.bandwidth;
    tier.flow_cap *= shift.bandwidth;
  }
  moved.collective_overhead *= shift.latency;
  const auto times = std::make_shared<const LikelyTimes>(cluster);
  const bool known = fit_errors || cluster.cost_model;
  moved.cost_model = [=](const collective::Collective& asked) -> std::optional<CollectiveTime> {
    const double part = small_part(static_cast<double>(asked.bytes()));
    const GuessedKind way = guessed_kind_of(times->cluster(), asked);
    const double alone = known ? 0 : apart(way);
    const double deviations =
        part * small + std::sqrt(1 - part * part) * (std::sqrt(1 - alone) * large +
                                                     std::sqrt(alone) * draw.ways[place_of(way)]);
    std::optional<CollectiveTime> answer = times->calibrated(asked);
    if (!answer) answer = times->guessed(asked, deviations);
    if (!answer) return answer;
    const double spread = fit_errors           ? *fit_errors
                          : answer->spread > 0 ? answer->spread
                                               : kMeasuredUnknown;
    answer->time *= std::exp(spread * deviations);
    return answer;
  };
  return {std::move(moved), shift};
}

// Returns the likely time of copies into and out of buckets at one end, as a share of the predicted
// time. Copies that a profiler saw wait for the host may take only their kernels' time.
double copies_at(const Workload& workload, double deviations) {
  if (!workload.copies_measured) return std::exp(deviations * kDeviceSpread);
  const double spread = std::exp(deviations * kTimedComputation);
  Seconds all = 0;
  for (const Tensor& tensor : workload.tensors) all += tensor.copy_in + tensor.copy_out;
  if (deviations > 0 || workload.copy_kernels < 0 || all <= 0) return spread;
  return std::min(spread, workload.copy_kernels / all);
}

// Returns the time of the step's operators with this launch time, over the predicted one. 1 if
// launches are not the assumed ones.
double hosted(const Scenario& scenario, Seconds launch) {
  const Workload& workload = scenario.workload;
  Device device = scenario.cluster.device;
  if (device.launch != hardware::kLaunch || device.flops == 0 || device.memory == 0) return 1;
  const Seconds predicted = operators::evaluate_operators(workload.operators, device).all();
  device.launch = launch;
  return operators::evaluate_operators(workload.operators, device).all() / predicted;
}

// Returns the time of a micro-batch with the host's of layers with experts, over the predicted one.
double hosted_experts(const Workload& workload) {
  const Seconds computed = workload.forward + backward_time(workload);
  if (computed <= 0) return 1;
  return 1 + kHostOfExperts * count_layers(workload, true) / computed;
}

// Returns the likely time of computation at one end, over the predicted one.
double computation_at(const Scenario& scenario, const FitErrors& fit_errors, double deviations) {
  const Workload& workload = scenario.workload;
  if (fit_errors.computation || !workload.rated_times) {
    const double timed = std::max(kTimedComputation, workload.time_spread);
    return std::exp(deviations * std::max(kOwnStep, fit_errors.computation.value_or(timed)));
  }
  constexpr int kVolta = 70, kBlackwell = 100;
  const int capability = scenario.cluster.device.compute_capability;
  const double least = deviations > 0 ? hosted_experts(workload) : 0;
  if (workload.operators->empty() || workload.parallel.whole_job()) {
    return std::max(least, std::exp(deviations * kRatedComputation));
  }
  const bool seen = capability >= kVolta && capability < kBlackwell;
  const double rate = std::exp(deviations * (seen ? kRatedOperators : kRatedComputation));
  return deviations > 0 ? std::max({least, rate, hosted(scenario, hardware::kLaunchAtMost)})
                        : std::min(rate, hosted(scenario, hardware::kLaunchAtLeast));
}

// Returns true if the kernels are of two code bases, so that the time of one predicts nothing of
// the other's.
bool other_kernels(const Sensitivity& one, const Sensitivity& other) {
  return one.kernels != 0 && other.kernels != 0 && one.kernels != other.kernels;
}

// Returns the interval of a ratio from the squares of its inputs' effects and of its own error.
Interval interval_by(double ratio, const Sensitivity& numerator, const Sensitivity& denominator,
                     double own) {
  const auto square = [](double value) { return value * value; };
  double up = square(kHeldDeviations * own);
  double down = up;
  for (std::size_t d = 0; d < kUncertainties; ++d) {
    if (d == place_of(Uncertainty::kComputation) && other_kernels(numerator, denominator)) {
      up += square(numerator.slower[d]) + square(denominator.faster[d]);
      down += square(numerator.faster[d]) + square(denominator.slower[d]);
      continue;
    }
    // Hooks that only one of them has.
    if (d == place_of(Uncertainty::kFramework) && numerator.hooks > 0 && denominator.hooks > 0) {
      if (numerator.hooks > denominator.hooks) up += square(numerator.slower[d]);
      if (numerator.hooks < denominator.hooks) down += square(denominator.slower[d]);
    }
    const double one = numerator.slower[d] - denominator.slower[d];
    const double other = numerator.faster[d] - denominator.faster[d];
    const double most = std::max({one, other, 0.0});
    const double least = std::min({one, other, 0.0});
    up += most * most;
    down += least * least;
  }
  for (std::size_t w = 0; w < kGuessedKinds; ++w) {
    const double one = numerator.ways.at(w)[1] - denominator.ways.at(w)[1];
    const double other = numerator.ways.at(w)[0] - denominator.ways.at(w)[0];
    const double most = std::max({one, other, 0.0});
    const double least = std::min({one, other, 0.0});
    up += most * most;
    down += least * least;
  }
  return {ratio * std::exp(-std::sqrt(down)), ratio * std::exp(std::sqrt(up))};
}

}  // namespace

std::string_view words_of(Uncertainty uncertainty) {
  constexpr std::array<std::string_view, kUncertainties> kWords{
      "the time of small messages on the network",
      "the time of large messages on the network",
      "the time of the computation",
      "the time of encoding, copying and updates on the host",
      "the slowdown of computation during a collective",
      "the cost of parallel training besides its collectives"};
  return kWords.at(place_of(uncertainty));
}

bool measured_under_another_scheme(const Scenario& scenario, const Strategy& strategy) {
  const Strategy* baseline = find_strategy(scenario, scenario.baseline);
  return baseline != nullptr && !scenario.workload.rated_times &&
         holds_shards(*baseline) != holds_shards(strategy);
}

double own_of_ratio(double ratio, const Sensitivity& numerator, const Sensitivity& denominator) {
  const auto alone = [](const Sensitivity& one) {
    return std::sqrt(std::max(0.0, one.own * one.own - one.hashed * one.hashed));
  };
  const double apart = std::hypot(alone(numerator), alone(denominator));
  const double gained = 1 - std::min(ratio, 1 / ratio);
  const bool guessed = numerator.work && denominator.work;
  const double more = guessed ? kOwnWork * (*numerator.work - *denominator.work) : 0;
  return std::hypot(std::hypot(std::min(kOwnRatio, apart), kOwnGain * gained, more),
                    std::hypot(numerator.hashed, denominator.hashed));
}

Interval interval_of(Seconds time, const Sensitivity& sensitivity) {
  return interval_by(time, sensitivity, Sensitivity{}, sensitivity.own);
}

Interval ratio_interval(double ratio, const Sensitivity& numerator,
                        const Sensitivity& denominator) {
  return interval_by(ratio, numerator, denominator, own_of_ratio(ratio, numerator, denominator));
}

double chance_shorter(Seconds first, const Sensitivity& first_sensitivity, Seconds second,
                      const Sensitivity& second_sensitivity) {
  return chance_shorter(first, second,
                        ratio_interval(second / first, second_sensitivity, first_sensitivity));
}

double chance_shorter(Seconds first, Seconds second, const Interval& interval) {
  const double ratio = second / first;
  // The side of the interval towards 1 determines the chance of crossing it.
  const double room = ratio > 1 ? std::log(ratio / interval.low) : std::log(interval.high / ratio);
  if (room <= 0) return ratio > 1 ? 1 : ratio < 1 ? 0 : 0.5;
  return normal_distribution(std::log(ratio) * kHeldDeviations / room);
}

std::pair<Uncertainty, double> widest(const Sensitivity& sensitivity) {
  double all = kHeldDeviations * kHeldDeviations * sensitivity.own * sensitivity.own;
  double most = 0;
  Uncertainty widest = Uncertainty::kComputation;
  for (const Uncertainty uncertainty : kAllUncertainties) {
    const std::size_t d = place_of(uncertainty);
    double reach = std::max(std::fabs(sensitivity.slower[d]), std::fabs(sensitivity.faster[d]));
    if (uncertainty == Uncertainty::kBandwidth) {
      for (const auto& ends : sensitivity.ways) {
        reach = std::hypot(reach, std::max(std::fabs(ends[0]), std::fabs(ends[1])));
      }
    }
    all += reach * reach;
    if (reach > most) {
      most = reach;
      widest = uncertainty;
    }
  }
  return {widest, all > 0 ? most * most / all : 0};
}

struct Uncertainties::Plans {
  // As TrainingStretch.
  struct Phase {
    plan::Plan plan;
    int periods = 0;
    int warmup = 0;
    double steps = 0;
  };
  const Strategy& strategy;
  std::vector<Phase> phases;
  mutable plan::Plan shifted = {};  // the last one; the next one takes its memory

  // Returns true if some bucket is encoded, decoded or copied, or the host updates.
  bool handles() const {
    using Reason = plan::Busy::Reason;
    const auto handled = [](const plan::Op& op) {
      const auto* busy = std::get_if<plan::Busy>(&op.work);
      return busy != nullptr &&
             (busy->reason == Reason::kEncode || busy->reason == Reason::kDecode ||
              busy->reason == Reason::kCopyIn || busy->reason == Reason::kCopyOut);
    };
    return std::ranges::any_of(phases, [&](const Phase& phase) {
      return phase.plan.updates_on_host || std::ranges::any_of(phase.plan.ops, handled);
    });
  }

  // Returns true if a shift of this input may change the model's step.
  bool depend_on(Uncertainty uncertainty, const Cluster& cluster) const {
    const Device& device = cluster.device;
    const bool alone = cluster.ranks() == 1;
    if (uncertainty == Uncertainty::kFramework) return false;
    if (uncertainty == Uncertainty::kOverlap) return !alone && device.overlap.any();
    if (uncertainty == Uncertainty::kDevice) return device.sums > 0 || handles();
    return uncertainty == Uncertainty::kComputation || !alone;
  }
};

// The scenario with one input shifted: another network or device, and factors of the plan's
// computation.
class Uncertainties::Shifted {
 public:
  Shifted(std::shared_ptr<collective::CostCache> cache, Device device)
      : cache_(std::move(cache)), executor_(run::make_cached_executor(cache_)), device_(device) {}

  void move_computation(double factor) { computation_ = factor; }

  // Sets the end of the device's interval, in standard deviations, and the factor of copies.
  void move_device(double deviations, double copies) {
    handling_ = std::exp(deviations * kDeviceSpread);
    copies_ = copies;
    host_ = std::exp(deviations * (device_.host_update > 0 ? kDeviceSpread : kHostSpread));
    device_.sums /= handling_;
  }

  // Multiplies the time that either side loses during overlap by this factor.
  void move_overlap(double factor) {
    constexpr double kMaxLoss = 0.99;
    Overlap& overlap = device_.overlap;
    const double lost = std::min(kMaxLoss, factor * overlap.slowdown / (1 + overlap.slowdown));
    const Overlap given = overlap;
    overlap.slowdown = lost / (1 - lost);
    overlap.collective_slowdown *= factor;
    overlap.delay *= factor;
    // Overlap takes at most as long as one after the other, because one of them uses each shared
    // unit. A worse interference stays as given.
    const double most = std::max(1.0, given.slowdown * given.collective_slowdown);
    const double worse = overlap.slowdown * overlap.collective_slowdown / most;
    if (worse <= 1) return;
    overlap.slowdown /= std::sqrt(worse);
    overlap.collective_slowdown /= std::sqrt(worse);
  }

  Seconds step(const Plans& plans) {
    Seconds sum = 0;
    double steps = 0;
    plan::Plan& plan = plans.shifted;
    for (const Plans::Phase& phase : plans.phases) {
      plan = phase.plan;
      for (auto& op : plan.ops) scale(op.work, plan.updates_on_host);
      plan = run::with_interference(std::move(plan), device_, *cache_);
      const auto outcome = executor_->run(plan, {}, phase.periods);
      sum += step_time_of(plan, outcome.timeline, phase.warmup) * phase.steps;
      steps += phase.steps;
    }
    return sum / steps;
  }
  run::ExecutorTraits traits() const { return executor_->traits(); }

 private:
  void scale(plan::Work& work, bool updates_on_host) const {
    if (auto* compute = std::get_if<plan::Compute>(&work)) {
      const bool on_host = updates_on_host && compute->phase == plan::Phase::kUpdate;
      compute->seconds *= on_host ? host_ : computation_;
    }
    auto* busy = std::get_if<plan::Busy>(&work);
    if (busy == nullptr) return;
    using Reason = plan::Busy::Reason;
    const Reason reason = busy->reason;
    if (reason == Reason::kEncode || reason == Reason::kDecode) busy->seconds *= handling_;
    if (reason == Reason::kCopyIn || reason == Reason::kCopyOut) busy->seconds *= copies_;
  }

  std::shared_ptr<collective::CostCache> cache_;
  std::unique_ptr<run::Executor> executor_;
  Device device_;
  double computation_ = 1;
  double handling_ = 1;
  double copies_ = 1;
  double host_ = 1;
};

Uncertainties::Uncertainties(const Scenario& scenario, const FitErrors& fit_errors)
    : scenario_(scenario),
      fit_errors_(fit_errors),
      cache_(std::make_shared<collective::CostCache>(scenario.cluster)),
      as_given_(std::make_unique<Shifted>(cache_, scenario.cluster.device)) {}

Uncertainties::~Uncertainties() = default;

Uncertainties::Shifted& Uncertainties::shift_input(Uncertainty uncertainty, bool slower) {
  auto& known = shifted_[place_of(uncertainty)][slower ? 1 : 0];
  if (known) return *known;
  const double deviations = slower ? kHeldDeviations : -kHeldDeviations;
  // Computation differs per plan; the network's costs hold for all plans.
  std::shared_ptr<collective::CostCache> cache = cache_;
  if (of_network(uncertainty)) {
    const ShiftedNetwork moved = shifted_network(
        scenario_.cluster, uncertainty == Uncertainty::kLatency, deviations, fit_errors_.network);
    cache = std::make_shared<collective::CostCache>(moved.cluster, moved.shift);
  }
  known = std::make_unique<Shifted>(std::move(cache), scenario_.cluster.device);
  if (uncertainty == Uncertainty::kComputation) {
    known->move_computation(computation_at(scenario_, fit_errors_, deviations));
  }
  if (uncertainty == Uncertainty::kDevice) {
    known->move_device(deviations, copies_at(scenario_.workload, deviations));
  }
  if (uncertainty == Uncertainty::kOverlap) {
    const OverlapPrior estimate = overlap_believed(scenario_.cluster);
    known->move_overlap(slower ? estimate.most : estimate.least);
  }
  return *known;
}

// Returns true if the times of NCCL's collectives are guesses.
bool Uncertainties::guesses() const {
  const Cluster& cluster = scenario_.cluster;
  return !fit_errors_.network && !cluster.cost_model && cluster.library == Library::kNccl;
}

// Returns the kinds of NCCL's collectives in the plans.
std::vector<GuessedKind> Uncertainties::ways_of(const Plans& plans) const {
  std::set<GuessedKind> ways;
  for (const Plans::Phase& phase : plans.phases) {
    for (const plan::Op& op : phase.plan.ops) {
      const auto* asked = std::get_if<collective::Collective>(&op.work);
      if (asked == nullptr || !asked->nccl || asked->groups.size < 2) continue;
      ways.insert(guessed_kind_of(scenario_.cluster, *asked));
    }
  }
  return {ways.begin(), ways.end()};
}

Uncertainties::Shifted& Uncertainties::shift_input(GuessedKind way, bool slower) {
  auto& known = ways_.at(static_cast<std::size_t>(way)).at(slower ? 1 : 0);
  if (known) return *known;
  const double deviations = slower ? kHeldDeviations : -kHeldDeviations;
  known = std::make_unique<Shifted>(
      std::make_shared<collective::CostCache>(with_way_moved(scenario_.cluster, way, deviations)),
      scenario_.cluster.device);
  return *known;
}

namespace {

// Returns the same job with fewer micro-batches per step and the same remainder over its pipeline;
// nullopt if they are few. All beyond the first few take equal times, even if an input is off.
std::optional<Scenario> shorten_job(const Scenario& scenario) {
  constexpr std::int64_t kFew = 256;
  const std::int64_t stages = scenario.workload.parallel.pipeline;
  const std::int64_t given = scenario.workload.micro_batches;
  const std::int64_t few = (kFew + stages - 1) / stages * stages + given % stages;
  if (stages < 2 || given <= few) return std::nullopt;
  Scenario shorter = scenario;
  shorter.workload.micro_batches = few;
  return shorter;
}

}  // namespace

// Returns all inputs as one draw has them, without the framework's share.
std::unique_ptr<Uncertainties::Shifted> Uncertainties::inputs_at(const Draw& draw) {
  const auto at = [&](Uncertainty input) { return draw.inputs[place_of(input)]; };
  const auto between = [&](Uncertainty input, auto of) {
    return factor_between(of(-kHeldDeviations), of(kHeldDeviations), at(input));
  };
  const ShiftedNetwork moved = network_at(scenario_.cluster, draw, fit_errors_.network);
  auto drawn =
      std::make_unique<Shifted>(std::make_shared<collective::CostCache>(moved.cluster, moved.shift),
                                scenario_.cluster.device);
  drawn->move_computation(between(Uncertainty::kComputation, [&](double deviations) {
    return computation_at(scenario_, fit_errors_, deviations);
  }));
  drawn->move_device(at(Uncertainty::kDevice),
                     between(Uncertainty::kDevice, [&](double deviations) {
                       return copies_at(scenario_.workload, deviations);
                     }));
  const OverlapPrior estimate = overlap_believed(scenario_.cluster);
  drawn->move_overlap(factor_between(estimate.least, estimate.most, at(Uncertainty::kOverlap)));
  return drawn;
}

const std::vector<double>& Uncertainties::draws(const Strategy& strategy) {
  const Plans plans = plans_of(strategy);
  const Seconds plain = step(plans, *as_given_);
  const std::pair key(strategy.name, plain);
  const auto known =
      std::ranges::find_if(known_draws_, [&](const auto& one) { return one.first == key; });
  if (known != known_draws_.end()) return known->second;
  if (drawn_.empty()) {
    for (const Draw& draw : common_draws()) drawn_.push_back(inputs_at(draw));
  }
  const Interval host = framework_share(strategy, plain);
  std::vector<double> logs;
  for (std::size_t k = 0; k < drawn_.size(); ++k) {
    const double z = common_draws()[k].inputs[place_of(Uncertainty::kFramework)];
    const double longer = factor_between(1 + host.low, 1 + host.high, z);
    logs.push_back(std::log(step(plans, *drawn_[k]) / plain * longer));
  }
  constexpr std::size_t kKept = 4;  // the baseline and the row at hand, mostly
  if (known_draws_.size() == kKept) known_draws_.pop_back();
  return known_draws_.emplace_front(key, std::move(logs)).second;
}

Interval Uncertainties::ratio(double ratio, const Compared& numerator,
                              const Compared& denominator) {
  const Interval ends = ratio_interval(ratio, numerator.sensitivity, denominator.sensitivity);
  constexpr double kEqual = 1.005;
  const bool open = ends.low < 1 && ends.high > 1 && std::max(ratio, 1 / ratio) > kEqual;
  const bool apart = other_kernels(numerator.sensitivity, denominator.sensitivity) ||
                     numerator.sensitivity.hooks != denominator.sensitivity.hooks;
  if (!open || apart || scenario_.cluster.ranks() == 1 || shorten_job(scenario_)) return ends;
  const std::vector<double> above = draws(numerator.strategy);
  const std::vector<double>& below = draws(denominator.strategy);
  std::vector<double> both;
  for (std::size_t k = 0; k < above.size(); ++k) both.push_back(above[k] - below[k]);
  const Interval drawn = interval_of_draws(
      ratio, both, own_of_ratio(ratio, numerator.sensitivity, denominator.sensitivity));
  return {std::min(drawn.low, ratio), std::max(drawn.high, ratio)};
}

Uncertainties::Plans Uncertainties::plans_of(const Strategy& strategy) const {
  Plans plans{strategy, {}};
  for_each_phase(scenario_, strategy, as_given_->traits(), [&](TrainingStretch& phase) {
    plans.phases.push_back({std::move(phase.plan), phase.periods, phase.warmup, phase.steps});
    for (plan::Bucket& bucket : plans.phases.back().plan.buckets) bucket.tensors.clear();
  });
  return plans;
}

Seconds Uncertainties::step(const Plans& plans, Shifted& shifted) const {
  const Seconds mean = shifted.step(plans);
  expect_time(mean, plans.strategy);
  return mean;
}

std::vector<Seconds> Uncertainties::shifted_steps(const Strategy& strategy,
                                                  const std::vector<InputEnd>& ends) {
  const Plans plans = plans_of(strategy);
  std::optional<Seconds> plain;
  std::vector<Seconds> steps;
  for (const auto& [uncertainty, slower] : ends) {
    if (plans.depend_on(uncertainty, scenario_.cluster)) {
      steps.push_back(step(plans, shift_input(uncertainty, slower)));
      continue;
    }
    if (!plain) plain = step(plans, *as_given_);
    steps.push_back(*plain);
  }
  return steps;
}

// Returns the likely change of a step as a share. A given overhead may be off either way; an
// unknown one can only add. After a calibration of all costs of a step, other rows may differ
// either way.
Interval Uncertainties::framework_share(const Strategy& strategy, Seconds step) const {
  const bool alone = scenario_.cluster.ranks() == 1;
  const Seconds overhead =
      scenario_.cluster.step_overhead() + (alone ? 0 : scenario_.workload.buffer_broadcast);
  double spread = std::min(0.5, kFrameworkSpread * overhead / step);
  if (fit_errors_.computation) spread = kFrameworkUnknown;
  if (fit_errors_.framework) spread = *fit_errors_.framework;
  const Interval crossed = crossed_share(scenario_, strategy, step);
  const bool unknown = spread == 0 && !fit_errors_.framework;
  if (!unknown) {
    return {std::min(-kHeldDeviations * spread, crossed.low),
            std::max(kHeldDeviations * spread, crossed.high)};
  }
  const double least = std::max(kHeldDeviations * kFrameworkUnknown, crossed.high);
  // Ranks of Gloo compute on the host: no kernel waits for it.
  if (scenario_.cluster.library == Library::kGloo || hooks_of(strategy) == 0) {
    return {crossed.low, least};
  }
  const Workload& workload = scenario_.workload;
  const double passes = static_cast<double>(workload.micro_batches) *
                        count_layers(workload, false) /
                        static_cast<double>(workload.parallel.pipeline);
  const dialect::Dialect* own = dialect::find_dialect(strategy.dialect);
  const double by_layer = hooks_of(strategy) == 3 ? passes * own->host_per_layer / step : 0;
  return {crossed.low, std::max({least, host_share(strategy), by_layer})};
}

// Returns the root mean square deviation of steps from this one if flows are hashed by other seeds.
// The switches' seed is unknown.
double Uncertainties::collisions(const Plans& plans, Seconds plain) {
  constexpr std::uint64_t kSeeds = 4;
  const Cluster& given = scenario_.cluster;
  if (given.topology == nullptr || !given.topology->hashed) return 0;
  for (std::uint64_t i = rehashed_.size() + 1; i <= kSeeds; ++i) {
    fabric::Topology topology = *given.topology;
    topology.seed += i;
    Cluster cluster = given;
    cluster.topology = std::make_shared<const fabric::Topology>(std::move(topology));
    rehashed_.push_back(std::make_unique<Shifted>(std::make_shared<collective::CostCache>(cluster),
                                                  cluster.device));
  }
  double squares = 0;
  for (const auto& other : rehashed_) {
    const double off = std::log(step(plans, *other) / plain);
    squares += off * off;
  }
  return std::sqrt(squares / kSeeds);
}

Sensitivity Uncertainties::sensitivity(const Strategy& strategy) {
  return sensitivity(strategy, {}, {kAllUncertainties.begin(), kAllUncertainties.end()});
}

Sensitivity Uncertainties::sensitivity(const Strategy& strategy, const Sensitivity& known,
                                       const std::vector<Uncertainty>& changed) {
  if (const auto shorter = shorten_job(scenario_)) {
    return Uncertainties(*shorter, fit_errors_).sensitivity(strategy, known, changed);
  }
  Sensitivity sensitivity = known;
  const Plans plans = plans_of(strategy);
  const Seconds plain = step(plans, *as_given_);
  const bool alone = scenario_.cluster.ranks() == 1;
  for (const Uncertainty uncertainty : changed) {
    const std::size_t d = place_of(uncertainty);
    const bool moves = plans.depend_on(uncertainty, scenario_.cluster);
    const auto at = [&](bool slower) {
      return moves ? std::log(step(plans, shift_input(uncertainty, slower)) / plain) : 0;
    };
    sensitivity.slower[d] = at(true);
    sensitivity.faster[d] = at(false);
  }
  if (std::ranges::any_of(changed, of_network)) {
    sensitivity.ways = {};
    for (const GuessedKind way : guesses() ? ways_of(plans) : std::vector<GuessedKind>()) {
      auto& ends = sensitivity.ways.at(static_cast<std::size_t>(way));
      for (const bool slower : {false, true}) {
        ends.at(slower ? 1 : 0) = std::log(step(plans, shift_input(way, slower)) / plain);
      }
    }
  }
  const std::size_t framework = place_of(Uncertainty::kFramework);
  const Interval added = alone ? Interval{} : framework_share(strategy, plain);
  sensitivity.slower[framework] = std::log1p(added.high);
  sensitivity.faster[framework] = std::log1p(added.low);
  const Workload& workload = scenario_.workload;
  const Seconds computed = earlier_passes(workload) + workload.forward + backward_time(workload);
  const double exposed = std::clamp(1 - computed / plain, 0.0, 1.0);
  const bool all = changed.size() == kUncertainties;
  if (all) sensitivity.hashed = collisions(plans, plain);
  sensitivity.own = std::hypot(kOwnStep, kOwnExposed * exposed, sensitivity.hashed);
  const bool guessed = workload.rated_times && !fit_errors_.computation;
  sensitivity.kernels = guessed ? kernels_of(strategy) : 0;
  sensitivity.hooks = alone ? 0 : hooks_of(strategy);
  const double sharing = workload.parallel.tensor * workload.parallel.context;  // of a sample
  if (guessed && computed > 0) {
    sensitivity.work = std::log(computed * sharing / static_cast<double>(samples_of(workload)));
  }
  return sensitivity;
}

}  // namespace syncline::measure
