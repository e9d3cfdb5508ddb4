// No training step is measured: step times predicted from the result are predictions.
#include "live/link_calibration.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/statistics.h"
#include "core/cost.h"
#include "core/run/sample_gradients.h"
#include "formats/input/scenario_json.h"
#include "formats/text/digits.h"
#include "live/figures.h"

namespace syncline::live {
namespace {

constexpr std::int64_t kProductEdge = 4096;

// One timed thing: `count` equal collectives one after the other, or an encoding.
struct Probe {
  std::string what;
  plan::Plan plan;
  collective::Collective collective;  // all are alike
  int count = 1;
  std::optional<std::size_t> tier;  // the tier whose curve gets a point
};

Workload one_tensor(std::int64_t elements) {
  Workload workload;
  workload.name = "probe";
  Tensor tensor;
  tensor.name = "probe";
  tensor.elements = elements;
  tensor.shape = {elements};
  workload.tensors.push_back(tensor);
  return workload;
}

Probe probe_of(std::string what, const collective::Collective& collective, int ranks, int count) {
  return {std::move(what), equal_collectives(collective, ranks, count, 0), collective, count, {}};
}

// Returns payloads in elements that every number of ranks divides: a factor of 2 apart up to 2 MiB,
// in the range of transports' thresholds, then of 4.
std::vector<std::int64_t> sizes_up_to(std::int64_t largest, int ranks) {
  constexpr std::int64_t kMin = 1024;
  constexpr std::int64_t kFine = 2 << 20;
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = kMin; bytes <= largest; bytes *= bytes < kFine ? 2 : 4) {
    const std::int64_t elements = std::max<std::int64_t>(1, bytes / 4 / ranks) * ranks;
    if (sizes.empty() || elements > sizes.back()) sizes.push_back(elements);
  }
  return sizes;
}

// Returns the number of collectives of a probe. Small ones are many: the step around them weighs
// little, and together they exceed a processor's cache, as a network's gradients do.
int count_for(std::int64_t bytes) {
  constexpr std::int64_t kEnough = 16 << 20;
  return static_cast<int>(std::clamp<std::int64_t>(kEnough / bytes, 1, 32));
}

// A kind of collective to measure: for the curve of its outermost tier `tier`, or as a check.
struct Series {
  std::string what;
  collective::CollectiveKind kind = collective::CollectiveKind::kAllReduce;
  collective::Groups groups;
  std::optional<std::size_t> tier;
};

std::vector<Series> series_of(const Cluster& shape) {
  const int ranks = shape.ranks();
  std::vector<Series> list;
  for (std::size_t t = 0; t < shape.tiers.size(); ++t) {
    const int span = shape.tiers[t].span;
    const std::string where = span == ranks ? "" : " in groups of " + std::to_string(span);
    list.push_back({"all_reduce" + where, collective::CollectiveKind::kAllReduce,
                    collective::block_groups(ranks, span), t});
  }
  list.push_back({"all_gather", collective::CollectiveKind::kAllGather,
                  collective::world_group(ranks), std::nullopt});
  const int inside = shape.gpus_per_node;
  if (inside > 1 && shape.nodes > 1) {
    list.push_back({"all_reduce across nodes", collective::CollectiveKind::kAllReduce,
                    collective::shard_groups(ranks, inside), std::nullopt});
  }
  return list;
}

std::vector<Probe> link_probes(const Cluster& shape, std::int64_t largest) {
  const int ranks = shape.ranks();
  std::vector<Probe> probes;
  for (const auto& series : series_of(shape)) {
    if (series.groups.size < 2) continue;
    for (const std::int64_t elements : sizes_up_to(largest, ranks)) {
      collective::Collective collective;
      collective.kind = series.kind;
      collective.algorithm = collective::find_algorithm("ring");
      collective.groups = series.groups;
      collective.elements = elements;
      probes.push_back(probe_of(series.what, collective, ranks, count_for(collective.bytes())));
      probes.back().tier = series.tier;
    }
  }
  return probes;
}

// Returns the median step time of a plan, without the first step.
Seconds step_time(LiveExecutor& executor, const plan::Plan& plan, const run::Gradients& input,
                  int repeats) {
  const auto ends = executor.run(plan, input, repeats + 1).timeline.period_ends;
  std::vector<Seconds> steps;
  for (std::size_t i = 1; i < ends.size(); ++i) steps.push_back(ends[i] - ends[i - 1]);
  return median(steps);
}

// Gives all ranks rank 0's figures, so that their fits are equal to the last bit.
template <typename Figure>
void share_first(ControlChannel& channel, std::vector<Figure>& figures) {
  figures = read_figures<Figure>(channel.from_first(bytes_of(figures)), channel, 0, figures.size());
}

// Returns a collective's cost before its first round. A ring all-reduce takes twice the rounds of
// an all-gather with the same messages, so the cost is 2 * gather - reduce. Uses small payloads: in
// larger ones it is lost in the transfer.
Seconds fixed_cost(const std::vector<Probe>& probes,
                   const std::vector<measure::LinkSample>& samples, int ranks) {
  constexpr std::int64_t kSmall = 16 << 10;
  std::vector<double> costs;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const auto& reduce = probes[i].collective;
    if (probes[i].tier == std::nullopt || reduce.groups.size != ranks) continue;
    if (reduce.bytes() > kSmall) continue;
    for (std::size_t j = 0; j < probes.size(); ++j) {
      const auto& gather = probes[j].collective;
      if (gather.kind != collective::CollectiveKind::kAllGather ||
          gather.elements != reduce.elements) {
        continue;
      }
      costs.push_back(2 * samples[j].measured - samples[i].measured);
    }
  }
  return costs.empty() ? 0 : std::max(0.0, median(costs));
}

void fit_links(const std::vector<Probe>& probes, LinkCalibration& calibration) {
  Cluster& cluster = calibration.cluster;
  cluster.collective_overhead = fixed_cost(probes, calibration.samples, cluster.ranks());
  calibration.curves.assign(cluster.tiers.size(), {});
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (!probes[i].tier) continue;
    const collective::Collective& collective = probes[i].collective;
    const double steps = 2.0 * (collective.groups.size - 1);
    const Seconds all = calibration.samples[i].measured - cluster.collective_overhead;
    cost::StepPoint point{static_cast<double>(collective.bytes()) / collective.groups.size,
                          std::max(all, 1e-9) / steps};
    cost::StepCurve& curve = calibration.curves[*probes[i].tier];
    // More bytes take no less time: a decrease is noise.
    constexpr double kRise = 1.0001;
    if (!curve.empty()) point.seconds = std::max(point.seconds, curve.back().seconds * kRise);
    curve.push_back(point);
  }
  for (std::size_t t = 0; t < cluster.tiers.size(); ++t) {
    cluster.tiers[t].latency = calibration.curves[t].front().seconds;
    cluster.tiers[t].bandwidth = cost::slope_of(calibration.curves[t]);
  }
  cluster.cost_model = cost::step_cost_model(cluster, calibration.curves);
  collective::CostCache cache(cluster);
  for (std::size_t i = 0; i < probes.size(); ++i) {
    calibration.samples[i].fitted = cache.time(probes[i].collective);
  }
}

// Sets the cluster's interference to that of the library's own number of channels, and lists the
// samples of other numbers too.
void set_overlap(const std::vector<InterferenceSample>& samples, Bytes payload,
                 LinkCalibration& calibration) {
  Overlap& overlap = calibration.cluster.device.overlap;
  overlap.slowdown = samples.front().slowdown;
  overlap.collective_slowdown = samples.front().collective_slowdown;
  overlap.given = true;
  for (const auto& sample : samples) {
    const std::string with = sample.channels == 0
                                 ? std::string(", the library's channels")
                                 : ", " + std::to_string(sample.channels) + " channels";
    calibration.samples.push_back({"products during all_reduce" + with, payload,
                                   sample.computation * (1 + sample.slowdown),
                                   sample.computation * (1 + overlap.slowdown)});
    calibration.samples.push_back({"all_reduce during products" + with, payload,
                                   sample.collective * (1 + sample.collective_slowdown),
                                   samples.front().collective * (1 + overlap.collective_slowdown)});
  }
}

}  // namespace

plan::Plan equal_collectives(const collective::Collective& collective, int ranks, int count,
                             Seconds computation) {
  plan::Plan plan;
  plan.ranks = ranks;
  plan.streams = 2;
  plan.ops.push_back(
      {plan::kComputeStream, {}, plan::Compute{plan::Phase::kForward, computation, 0, -1}, 0, {}});
  plan::Op update{plan::kComputeStream, {}, plan::Compute{plan::Phase::kUpdate, 0, 0, -1}, 0, {}};
  for (int i = 0; i < count; ++i) {
    plan::Bucket bucket;
    bucket.tensors = {0};
    bucket.elements = collective.elements;
    bucket.bytes = bucket.padded_bytes = collective.bytes();
    plan.buckets.push_back(bucket);
    collective::Collective own = collective;
    own.bucket = i;
    update.after = {static_cast<plan::OpId>(plan.ops.size())};
    plan.ops.push_back({1, {}, own, 0, {}});
    if (computation <= 0) plan.ops.back().after = {0};
  }
  plan.ops.push_back(update);
  return plan;
}

Cluster unmeasured_cluster(const std::string& name, int nodes, int ranks_per_node) {
  Cluster cluster;
  cluster.name = name;
  cluster.nodes = nodes;
  cluster.gpus_per_node = ranks_per_node;
  const auto add_tier = [&](const char* key, int span) {
    Tier& tier = cluster.tiers.emplace_back();
    tier.name = key;
    tier.span = span;
    tier.latency = kMicrosecond;
    tier.bandwidth = kGigabitPerSecond;
  };
  if (ranks_per_node > 1) add_tier("intra", ranks_per_node);
  if (nodes > 1) add_tier("inter", cluster.ranks());
  return cluster;
}

LinkCalibration calibrate_links(ControlChannel& channel, const LiveExecutorFactory& backend,
                                const Cluster& shape, const LinkCalibrationSettings& settings) {
  LinkCalibration calibration;
  calibration.cluster = shape;
  calibration.cluster.cost_model = {};
  calibration.cluster.source = "measured live by syncline";
  for (auto& tier : calibration.cluster.tiers) {
    tier.flow_cap = std::numeric_limits<double>::infinity();
    tier.oversubscription = 1;
  }
  const auto probes = link_probes(shape, settings.largest);
  const Workload workload = one_tensor(settings.largest / 4 + shape.ranks());
  {
    const auto executor = backend(workload, channel);
    run::Gradients input(static_cast<std::size_t>(shape.ranks()));
    input[static_cast<std::size_t>(channel.rank())] =
        run::sample_gradients(workload, channel.rank(), shape.ranks(), 1);
    for (const auto& probe : probes) {
      const Seconds step = step_time(*executor, probe.plan, input, settings.repeats);
      calibration.samples.push_back({probe.what, probe.collective.bytes(), step / probe.count, 0});
    }
  }
  std::vector<CodecSample> codec;
  if (settings.codec != nullptr) {
    codec = codec_samples(channel, backend, *settings.codec, settings.repeats);
  }
  std::vector<InterferenceSample> beside;
  if (settings.computing != nullptr) {
    beside = interference_samples(channel, settings.computing, kProductEdge, settings.largest,
                                  settings.repeats);
    share_first(channel, beside);
  }
  std::vector<double> measured;
  for (const auto& sample : calibration.samples) measured.push_back(sample.measured);
  for (const auto& sample : codec) measured.push_back(sample.sample.measured);
  share_first(channel, measured);
  for (std::size_t i = 0; i < calibration.samples.size(); ++i) {
    calibration.samples[i].measured = measured[i];
  }
  for (std::size_t i = 0; i < codec.size(); ++i) {
    codec[i].sample.measured = measured[calibration.samples.size() + i];
  }

  if (!probes.empty()) fit_links(probes, calibration);
  if (!codec.empty()) {
    fit_device(codec, calibration.cluster.device);
    for (const auto& sample : codec) calibration.samples.push_back(sample.sample);
  }
  if (!beside.empty()) set_overlap(beside, settings.largest, calibration);
  return calibration;
}

void set_measured_links(const LinkCalibration& calibration, Json& json) {
  const Cluster& measured = calibration.cluster;
  constexpr int kDigits = 6;
  const auto set_tier = [&](std::size_t t, Json& place) {
    Tier tier;  // only the measured figures
    tier.latency = measured.tiers[t].latency;
    tier.bandwidth = measured.tiers[t].bandwidth;
    Json keys = input::tier_json(tier, calibration.curves[t], kDigits);
    for (const char* kept : {"name", "nodes_per_group"}) {
      if (place.contains(kept)) keys[kept] = place[kept];
    }
    place = keys;
  };
  // Levels that join a single unit have no tier.
  std::size_t next = 0;
  const int inside = measured.gpus_per_node;
  if (inside > 1) set_tier(next++, json["intra"]);
  if (next < measured.tiers.size()) set_tier(next++, json["inter"]);
  for (std::size_t level = 0; next < measured.tiers.size(); ++next, ++level) {
    set_tier(next, json["upper"][level]);
  }
  json["collective_overhead_us"] =
      significant(measured.collective_overhead / kMicrosecond, kDigits);
  json["source"] = measured.source;
  if (measured.device.memory > 0) {
    Json& device = json["device"];
    input::set_device_figure(device, &Device::memory, measured.device.memory, kDigits);
    input::set_device_figure(device, &Device::launch, measured.device.launch, kDigits);
  }
  if (const Overlap& overlap = measured.device.overlap; overlap.given) {
    json["device"]["overlap_slowdown"] = significant(overlap.slowdown, kDigits);
    json["device"]["overlap_collective_slowdown"] =
        significant(overlap.collective_slowdown, kDigits);
  }
}

}  // namespace syncline::live
