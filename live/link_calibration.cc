#include "live/link_calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/collective/price.h"
#include "core/compress/sparsity.h"
#include "core/measure/scenario_fit.h"
#include "core/run/sample_gradients.h"
#include "core/statistics.h"

namespace syncline {
namespace {

// One thing that is timed: `count` equal collectives one behind the other, or an encoding.
struct Probe {
  std::string what;
  Plan plan;
  Collective collective;  // as many as count
  int count = 1;
  bool encodes = false;
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

Probe probe_of(std::string what, const Collective& collective, int ranks, int count) {
  Probe probe;
  probe.what = std::move(what);
  probe.collective = collective;
  probe.count = count;
  Plan& plan = probe.plan;
  plan.ranks = ranks;
  plan.streams = 2;
  plan.ops.push_back({kComputeStream, {}, Compute{Phase::kForward, 0, 0, -1}, 0, {}});
  for (int i = 0; i < count; ++i) {
    Bucket bucket;
    bucket.tensors = {0};
    bucket.elements = collective.elements;
    bucket.bytes = bucket.padded_bytes = collective.bytes();
    plan.buckets.push_back(bucket);
    Collective own = collective;
    own.bucket = i;
    plan.ops.push_back({1, {0}, own, 0, {}});
  }
  plan.ops.push_back(
      {kComputeStream, {static_cast<OpId>(count)}, Compute{Phase::kUpdate, 0, 0, -1}, 0, {}});
  return probe;
}

// Sizes a factor of four apart, in elements that every number of ranks divides.
std::vector<std::int64_t> sizes_up_to(std::int64_t largest, int ranks) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = largest; bytes >= 1024; bytes /= 4) {
    sizes.push_back(std::max<std::int64_t>(1, bytes / 4 / ranks) * ranks);
  }
  std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

// Many small ones, so that the step around them weighs little; of large ones a single one.
int count_for(std::int64_t bytes) {
  constexpr std::int64_t kEnough = 2 << 20;
  return static_cast<int>(std::clamp<std::int64_t>(kEnough / bytes, 1, 24));
}

std::vector<Probe> link_probes(const Cluster& shape, std::int64_t largest) {
  const int ranks = shape.ranks();
  const int inside = shape.gpus_per_node;
  std::vector<Probe> probes;
  const auto add = [&](const std::string& what, CollectiveKind kind, const Groups& groups) {
    if (groups.size < 2) return;
    for (const std::int64_t elements : sizes_up_to(largest, ranks)) {
      Collective collective;
      collective.kind = kind;
      collective.algorithm = find_algorithm("ring");
      collective.groups = groups;
      collective.elements = elements;
      probes.push_back(probe_of(what, collective, ranks, count_for(collective.bytes())));
    }
  };
  add("all_reduce", CollectiveKind::kAllReduce, world_group(ranks));
  add("all_gather", CollectiveKind::kAllGather, world_group(ranks));
  if (inside > 1 && shape.nodes > 1) {
    add("all_reduce inside nodes", CollectiveKind::kAllReduce, block_groups(ranks, inside));
    add("all_reduce across nodes", CollectiveKind::kAllReduce, shard_groups(ranks, inside));
  }
  return probes;
}

// Median step time of a plan, the first step left out.
Seconds step_time(LiveExecutor& executor, const Plan& plan, const Gradients& input, int repeats) {
  const auto ends = executor.run(plan, input, repeats + 1).timeline.period_ends;
  std::vector<Seconds> steps;
  for (std::size_t i = 1; i < ends.size(); ++i) steps.push_back(ends[i] - ends[i - 1]);
  return middle_of(steps);
}

Seconds median_span(const Timeline& timeline, OpId op) {
  std::vector<Seconds> lengths;
  for (const auto& span : timeline.spans) {
    if (span.op == op && span.period > 0) lengths.push_back(span.end - span.begin);
  }
  return middle_of(lengths);
}

// Encode and decode as a plan has them, of tensors of three sizes.
struct CodecSample {
  LinkSample sample;
  double traffic = 0;  // bytes of memory, as the codec reckons
};

std::vector<CodecSample> codec_samples(Meeting& meeting, const LiveExecutorFactory& backend,
                                       const Codec& codec, int repeats) {
  std::vector<CodecSample> samples;
  const int ranks = meeting.ranks();
  for (const std::int64_t elements : {16384LL, 262144LL, 2359296LL}) {
    const Workload workload = one_tensor(elements);
    const auto executor = backend(workload, meeting);
    constexpr double kSparsity = 0.999;
    Bucket bucket;
    bucket.tensors = {0};
    bucket.elements = elements;
    bucket.bytes = bucket.padded_bytes = elements * 4;
    bucket.codec = &codec;
    bucket.kept = codec.sparse ? kept_elements(elements, kSparsity) : elements;
    Collective collective;
    collective.algorithm = find_algorithm("ring");
    collective.groups = world_group(ranks);
    collective.kind = codec.sparse ? CollectiveKind::kAllGather : CollectiveKind::kAllReduce;
    collective.elements = codec.sparse ? bucket.kept * ranks : elements;
    collective.unit = codec.encoded_bytes(elements, bucket.kept) / bucket.kept;
    Plan plan;
    plan.ranks = ranks;
    plan.streams = 2;
    plan.buckets = {bucket};
    plan.ops = {{kComputeStream, {}, Compute{Phase::kBackward, 0, 0, 0}, 0, {}},
                {kComputeStream, {0}, Encode{0, 0}, 0, {}},
                {1, {1}, collective, 0, {}},
                {1, {2}, Decode{0, 0}, 0, {}},
                {kComputeStream, {3}, Compute{Phase::kUpdate, 0, 0, -1}, 0, {}}};
    Gradients input(static_cast<std::size_t>(ranks));
    input[static_cast<std::size_t>(meeting.rank())] =
        sample_gradients(workload, meeting.rank(), ranks, 1, SampleValues::kReal);
    const Timeline timeline = executor->run(plan, input, repeats + 1).timeline;
    const std::string name(codec.name);
    samples.push_back({{name + " encode", elements * 4, median_span(timeline, 1), 0},
                       codec.encode_traffic(elements, bucket.kept, 4)});
    samples.push_back({{name + " decode", elements * 4, median_span(timeline, 3), 0},
                       codec.decode_traffic(elements, bucket.kept, ranks, 4)});
  }
  return samples;
}

// Everyone fits rank 0's figures, to the last bit.
void share_first(Meeting& meeting, std::vector<double>& figures) {
  std::string mine(figures.size() * sizeof(double), '\0');
  std::memcpy(mine.data(), figures.data(), mine.size());
  const std::string first = meeting.from_first(mine);
  std::memcpy(figures.data(), first.data(), first.size());
}

// The cluster with fitted figures: decimal logarithms of each tier's latency and bandwidth, then of
// the fixed cost.
Cluster with_links(Cluster cluster, const std::vector<double>& logs) {
  std::size_t next = 0;
  for (auto& tier : cluster.tiers) {
    tier.latency = std::pow(10.0, logs[next++]);
    tier.bandwidth = std::pow(10.0, logs[next++]);
  }
  cluster.collective_overhead = std::pow(10.0, logs[next]);
  return cluster;
}

void fit_links(const std::vector<Probe>& probes, LinkCalibration& calibration) {
  std::vector<Calibration::Parameter> parameters;
  // From a hundred nanoseconds to a second, from a kilobyte to ten terabytes a second.
  for (std::size_t t = 0; t < calibration.cluster.tiers.size(); ++t) {
    parameters.push_back({"latency", -4, -7, 0});
    parameters.push_back({"bandwidth", 8.5, 3, 13});
  }
  parameters.push_back({"overhead", -4.5, -7, 0});
  const auto times = [&](const std::vector<double>& logs) {
    PriceBook book(with_links(calibration.cluster, logs));
    std::vector<Seconds> list;
    for (const auto& probe : probes) list.push_back(book.time(probe.collective));
    return list;
  };
  const auto logs = fit_parameters(parameters, [&](const std::vector<double>& trial) {
    auto errors = times(trial);
    for (std::size_t i = 0; i < errors.size(); ++i) {
      errors[i] = errors[i] / calibration.samples[i].measured - 1;
    }
    return errors;
  });
  const auto fitted = times(logs);
  for (std::size_t i = 0; i < fitted.size(); ++i) calibration.samples[i].fitted = fitted[i];
  calibration.cluster = with_links(calibration.cluster, logs);
}

// Seconds = launch + traffic / memory, least squares of relative errors, neither below zero.
void fit_device(std::vector<CodecSample>& samples, LinkCalibration& calibration) {
  double aa = 0;
  double ab = 0;
  double bb = 0;
  double a = 0;
  double b = 0;
  for (const auto& s : samples) {
    const double x = 1 / s.sample.measured;
    const double y = s.traffic / s.sample.measured;
    aa += x * x;
    ab += x * y;
    bb += y * y;
    a += x;
    b += y;
  }
  const double determinant = aa * bb - ab * ab;
  double launch = determinant > 0 ? (a * bb - b * ab) / determinant : 0;
  double per_byte = determinant > 0 ? (b * aa - a * ab) / determinant : b / bb;
  if (launch < 0) {
    launch = 0;
    per_byte = b / bb;
  }
  Device& device = calibration.cluster.device;
  device.launch = launch;
  device.memory = 1 / per_byte;
  for (auto& s : samples) {
    s.sample.fitted = launch + s.traffic * per_byte;
    calibration.samples.push_back(s.sample);
  }
}

}  // namespace

LinkCalibration calibrate_links(Meeting& meeting, const LiveExecutorFactory& backend,
                                const Cluster& shape, const LinkCalibrationSettings& settings) {
  LinkCalibration calibration;
  calibration.cluster = shape;
  calibration.cluster.law = {};
  calibration.cluster.source = "measured live by syncline";
  for (auto& tier : calibration.cluster.tiers) {
    tier.flow_cap = std::numeric_limits<double>::infinity();
    tier.oversubscription = 1;
  }
  const auto probes = link_probes(shape, settings.largest);
  const Workload workload = one_tensor(settings.largest / 4 + shape.ranks());
  {
    const auto executor = backend(workload, meeting);
    Gradients input(static_cast<std::size_t>(shape.ranks()));
    input[static_cast<std::size_t>(meeting.rank())] =
        sample_gradients(workload, meeting.rank(), shape.ranks(), 1);
    for (const auto& probe : probes) {
      const Seconds step = step_time(*executor, probe.plan, input, settings.repeats);
      calibration.samples.push_back({probe.what, probe.collective.bytes(), step / probe.count, 0});
    }
  }
  std::vector<CodecSample> codec;
  if (settings.codec != nullptr) {
    codec = codec_samples(meeting, backend, *settings.codec, settings.repeats);
  }
  std::vector<double> measured;
  for (const auto& sample : calibration.samples) measured.push_back(sample.measured);
  for (const auto& sample : codec) measured.push_back(sample.sample.measured);
  share_first(meeting, measured);
  for (std::size_t i = 0; i < calibration.samples.size(); ++i) {
    calibration.samples[i].measured = measured[i];
  }
  for (std::size_t i = 0; i < codec.size(); ++i) {
    codec[i].sample.measured = measured[calibration.samples.size() + i];
  }

  if (!probes.empty()) fit_links(probes, calibration);
  if (!codec.empty()) fit_device(codec, calibration);
  std::vector<double> errors;
  for (const auto& sample : calibration.samples) {
    errors.push_back(std::abs(sample.fitted / sample.measured - 1));
  }
  if (!errors.empty()) {
    calibration.median_error = middle_of(errors);
    calibration.worst_error = *std::max_element(errors.begin(), errors.end());
  }
  return calibration;
}

void set_measured_links(const Cluster& measured, Json& json) {
  const auto rounded = [](double value) {
    if (value == 0) return 0.0;
    const double unit = std::pow(10.0, std::floor(std::log10(value)) - 5);
    return std::round(value / unit) * unit;
  };
  const auto set_tier = [&](const Tier& tier, Json& place) {
    place = {{"latency_us", rounded(tier.latency / kMicrosecond)},
             {"bandwidth_gbps", rounded(tier.bandwidth / kGigabitPerSecond)}};
  };
  std::size_t next = 0;
  if (measured.gpus_per_node > 1) set_tier(measured.tiers[next++], json["intra"]);
  if (measured.nodes > 1) set_tier(measured.tiers[next], json["inter"]);
  json["collective_overhead_us"] = rounded(measured.collective_overhead / kMicrosecond);
  json["source"] = measured.source;
  if (measured.device.memory > 0) {
    json["device"]["memory_gbytes_per_s"] = rounded(measured.device.memory / 1e9);
    json["device"]["launch_us"] = rounded(measured.device.launch / kMicrosecond);
  }
}

}  // namespace syncline
