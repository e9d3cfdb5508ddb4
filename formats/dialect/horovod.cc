#include "formats/dialect/dialects.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>

#include "formats/dialect/changes.h"
#include "formats/dialect/framework_keys.h"
#include "formats/json/reader.h"

namespace syncline::dialect {
namespace {

constexpr double kDefaultThreshold = 128.0 * static_cast<double>(kMiB);
constexpr double kDefaultCycleMs = 1;
// Controller::TensorFusionThresholdBytes: a fusion buffer splits evenly among the ranks of a node
// into pieces of 64 elements of the largest type.
constexpr Bytes kBufferUnit = Bytes{64} * 8;
// The time of a cycle of 0: the thread polls again at once.
constexpr Seconds kPoll = kMicrosecond;

// Returns a variable as a number, from a number or from text.
double variable(Reader& config, const char* key, double fallback, Reader::Limits limits) {
  const Json* value = config.find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) return config.number(key, limits);
  const auto text = value->get<std::string>();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') {
    config.fail(key, "found " + describe(*value) + ", expected a number");
  }
  return checked_number(Json(number), limits, config.file(), config.place_of(key));
}

// Reads as SetBoolFromEnv: the number before the text is above zero. "true" is no number.
bool flag(Reader& config, const char* key, std::vector<std::string>& notes) {
  const Json* value = config.find(key);
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  if (value->is_number_integer()) return config.integer(key, 0, 1) > 0;
  if (!value->is_string()) {
    config.fail(key, "found " + describe(*value) + ", expected 0 or 1, or true or false");
  }
  const auto text = value->get<std::string>();
  char* end = nullptr;
  const long number = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str()) {
    notes.push_back(std::string(key) + ": Horovod reads a number, and '" + text +
                    "' is none: off. Write 1");
  }
  return number > 0;
}

// Reads the autotuner's own variables, which act only with HOROVOD_AUTOTUNE.
void read_autotune(Reader& config, std::vector<std::string>& notes) {
  const bool on = flag(config, "HOROVOD_AUTOTUNE", notes);
  constexpr double kMax = 1e9;
  const double warm_up = variable(config, "HOROVOD_AUTOTUNE_WARMUP_SAMPLES", 3, {0, kMax});
  const double steps = variable(config, "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", 10, {1, kMax});
  const double points = variable(config, "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", 20, {1, kMax});
  variable(config, "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", 0.8, {0, 1});
  const std::string given =
      list_given(config, {"HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE",
                          "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES",
                          "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE"});
  config.text_or("HOROVOD_AUTOTUNE_LOG", "");
  note(notes, {{!on && !given.empty(), "no effect without HOROVOD_AUTOTUNE: " + given}});
  if (!on) return;
  constexpr double kSamplesAScore = 5;
  const auto length = static_cast<std::int64_t>((warm_up + points + 1) * kSamplesAScore * steps);
  notes.push_back("HOROVOD_AUTOTUNE varies threshold and cycle time while training, for about " +
                  std::to_string(length) +
                  " steps, and twice as long for each switch that is left to it; it is not "
                  "emulated here: the values given are kept");
  note(notes, {{!config.has("HOROVOD_FUSION_THRESHOLD"),
                "HOROVOD_AUTOTUNE looks for a threshold up to 64 MiB: it cannot come back to the "
                "default of 128 MiB"}});
}

Bytes rounded_threshold(double bytes, const Cluster& cluster) {
  const Bytes unit = cluster.gpus_per_node * kBufferUnit;
  const auto whole = static_cast<Bytes>(bytes);
  return (whole + unit - 1) / unit * unit;
}

// Adds suspicions of other units than Horovod's. A threshold is rounded up to the buffer's pieces,
// 512 bytes for each GPU of a node; a cycle below 0.1 ms is not plausible.
void suspect_units(Bytes size, double cycle_ms, const Cluster& cluster, Strategy& strategy) {
  constexpr Bytes kTwoPieces = 1024;
  constexpr double kShortestMs = 0.1;
  constexpr double kMillisecondsASecond = 1000;
  if (size > 0 && size <= kTwoPieces * cluster.gpus_per_node) {
    strategy.suspicious.emplace_back(
        "HOROVOD_FUSION_THRESHOLD is read in bytes, which are too few here for two gradients: were "
        "MiB meant (64 MiB are 67108864)?");
  }
  if (cycle_ms > 0 && cycle_ms < kShortestMs) {
    std::ostringstream text;
    text << "HOROVOD_CYCLE_TIME is read in milliseconds: were " << cycle_ms << " s meant ("
         << cycle_ms * kMillisecondsASecond << " ms)?";
    strategy.suspicious.push_back(text.str());
  }
}

Reading read(Reader config, const Workload&, const Cluster& cluster, bool) {
  Reading reading;
  Strategy& strategy = reading.strategy;
  const double threshold =
      variable(config, "HOROVOD_FUSION_THRESHOLD", kDefaultThreshold, {0, 1e15});
  const double cycle_ms = variable(config, "HOROVOD_CYCLE_TIME", kDefaultCycleMs, {0, 1e6});
  const bool hierarchical = flag(config, "HOROVOD_HIERARCHICAL_ALLREDUCE", reading.notes);
  read_autotune(config, reading.notes);
  if (flag(config, "HOROVOD_TORUS_ALLREDUCE", reading.notes)) {
    config.fail("HOROVOD_TORUS_ALLREDUCE",
                "the torus all-reduce is not modelled; HOROVOD_HIERARCHICAL_ALLREDUCE is the "
                "nearest");
  }
  const bool gathers = flag(config, "HOROVOD_HIERARCHICAL_ALLGATHER", reading.notes);
  note(reading.notes,
       {{gathers,
         "HOROVOD_HIERARCHICAL_ALLGATHER acts on gathered (sparse) gradients alone, which are "
         "predicted flat"}});
  variable(config, "HOROVOD_CACHE_CAPACITY", 1024, {0, 1e9});
  constexpr double kMaxStreams = 64;
  strategy.streams =
      static_cast<int>(variable(config, "HOROVOD_NUM_NCCL_STREAMS", 1, {1, kMaxStreams}));
  const bool half = config.word_or("compression", "none", {"none", "fp16"}) == "fp16";
  finish_keys(config, key_list("horovod"), reading.notes);
  if (threshold != std::floor(threshold)) {
    config.fail("HOROVOD_FUSION_THRESHOLD", "expected a whole number of bytes");
  }

  strategy.fusion.rule = Fusion::Rule::kSize;
  strategy.fusion.close = Fusion::Close::kBefore;
  strategy.fusion.size = rounded_threshold(threshold, cluster);
  strategy.fusion.cycle = cycle_ms > 0 ? cycle_ms * kMillisecond : kPoll;
  if (half) strategy.compression.codec = "fp16";
  suspect_units(strategy.fusion.size, cycle_ms, cluster, strategy);

  const bool several = cluster.ranks() > 1;
  const bool levels = cluster.nodes > 1 && cluster.gpus_per_node > 1;
  note(reading.notes,
       {{several && cycle_ms > 0,
         "gradients wait for a tick, one every " + Json(cycle_ms).dump() +
             " ms, and only those of one tick travel together: on average half a cycle is lost "
             "before the first"},
        {several && cycle_ms == 0,
         "HOROVOD_CYCLE_TIME = 0 polls without a pause: gradients travel together only if they "
         "are ready within a microsecond"},
        {hierarchical && !levels, std::string("hierarchical all-reduce is flat with one ") +
                                      (cluster.nodes == 1 ? "node" : "GPU a node")}});
  if (hierarchical && levels) {
    strategy.hierarchy.form = Hierarchy::Form::kSharded;
    strategy.hierarchy.group_size = cluster.gpus_per_node;
  }
  return reading;
}

// Returns configurations. Horovod always has ticks; a strategy without them gets the default cycle,
// which is then the difference.
std::vector<Json> suggest(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                          const Workload&, const Cluster& cluster) {
  Json config = Json::object();
  const Hierarchy& hierarchy = strategy.hierarchy;
  if (hierarchy.form == Hierarchy::Form::kSharded &&
      hierarchy.group_size == cluster.gpus_per_node) {
    config["HOROVOD_HIERARCHICAL_ALLREDUCE"] = 1;
  }
  if (strategy.compression.codec == "fp16") config["compression"] = "fp16";
  if (strategy.streams > 1) config["HOROVOD_NUM_NCCL_STREAMS"] = strategy.streams;
  Bytes size = 0;
  for (const auto& bucket : buckets) {
    if (bucket.tensors.size() > 1) size = std::max(size, bucket.bytes);
  }
  if (strategy.fusion.rule == Fusion::Rule::kSize) size = strategy.fusion.size;
  config["HOROVOD_FUSION_THRESHOLD"] = size;
  const Seconds cycle = strategy.fusion.cycle;
  if (cycle == kPoll) {
    config["HOROVOD_CYCLE_TIME"] = 0;
  } else if (cycle > 0) {
    config["HOROVOD_CYCLE_TIME"] = cycle / kMillisecond;
  }
  return {config};
}

Changes changes(const Json&, const Cluster&) {
  Changes changes;
  for (const int mebibytes : kTriedMebibytes) {
    changes.push_back({ChangeKind::kFusion, {{"HOROVOD_FUSION_THRESHOLD", mebibytes * kMiB}}});
  }
  for (const double milliseconds : {0.1, 0.5, 1.0, 2.0, 2.5, 5.0, 10.0, 25.0}) {
    changes.push_back({ChangeKind::kFusion, {{"HOROVOD_CYCLE_TIME", milliseconds}}});
  }
  for (const int streams : {1, 2, 3, 4}) {
    changes.push_back({ChangeKind::kStreams, {{"HOROVOD_NUM_NCCL_STREAMS", streams}}});
  }
  for (const int hierarchical : {0, 1}) {
    changes.push_back({ChangeKind::kHierarchy, {{"HOROVOD_HIERARCHICAL_ALLREDUCE", hierarchical}}});
  }
  changes.push_back({ChangeKind::kRounding, {{"compression", "fp16"}}});
  return changes;
}

// Varies a threshold in bytes, a cycle time, hierarchy by a switch, and streams. Larger cycles let
// more gradients meet at a tick.
std::vector<Json> candidates(const Strategy& winner, const Workload& workload,
                             const Cluster& cluster, const Partitions& partitions) {
  const bool levels = cluster.nodes > 1 && cluster.gpus_per_node > 1;
  // The framework's own best may differ from a winner that it cannot express: one and two streams
  // are always tried, more if there are few gradients.
  constexpr std::size_t kFewGradients = 64;
  std::set<int> streams{1, winner.streams};
  if (winner.overlap) streams.insert(2);
  if (winner.overlap && workload.tensors.size() <= kFewGradients) streams.insert({3, 4});
  const auto with_cycle = [&](double cycle) {
    return for_each_size(partitions, Fusion::Close::kBefore, [&](Bytes size, Bytes) {
      std::vector<Json> configs;
      for (const int count : streams) {
        Json config{{"HOROVOD_FUSION_THRESHOLD", size}, {"HOROVOD_CYCLE_TIME", cycle}};
        if (count > 1) config["HOROVOD_NUM_NCCL_STREAMS"] = count;
        if (winner.compression.codec == "fp16") config["compression"] = "fp16";
        configs.push_back(config);
        if (!levels) continue;
        config["HOROVOD_HIERARCHICAL_ALLREDUCE"] = 1;
        configs.push_back(std::move(config));
      }
      return configs;
    });
  };
  std::vector<Json> configs;
  for (const double cycle : {1.0, 2.5, 5.0, 10.0, 25.0}) {
    for (auto& config : with_cycle(cycle)) configs.push_back(std::move(config));
  }
  return configs;
}

}  // namespace

Dialect horovod_dialect() {
  return {.name = "horovod",
          .summary = "Horovod: HOROVOD_FUSION_THRESHOLD, _CYCLE_TIME, compression",
          .read = read,
          .suggest = suggest,
          .changes = changes,
          .defaults = {{"HOROVOD_FUSION_THRESHOLD", 128 * kMiB},
                       {"HOROVOD_CYCLE_TIME", 1},
                       {"HOROVOD_NUM_NCCL_STREAMS", 1},
                       {"HOROVOD_HIERARCHICAL_ALLREDUCE", 0},
                       {"compression", "none"}},
          .candidates = candidates,
          .group_keys = {"HOROVOD_HIERARCHICAL_ALLREDUCE"}};
}

}  // namespace syncline::dialect
