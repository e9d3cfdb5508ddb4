#include "core/dialect/horovod.h"

#include <cmath>
#include <cstdlib>
#include <deque>
#include <utility>

namespace syncline {
namespace {

using Parts = std::vector<std::vector<int>>;

constexpr double kDefaultThreshold = 128.0 * static_cast<double>(kMiB);
constexpr double kDefaultCycleMs = 1;
// Controller::TensorFusionThresholdBytes: a fusion buffer splits evenly among the ranks of a node
// into pieces of 64 elements of the largest type.
constexpr Bytes kBufferUnit = Bytes{64} * 8;

// A variable as a number: written as one, or as text that is one.
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

// SetBoolFromEnv: the number in front of the text, above zero is true. "true" is no number.
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

// What travels: a gradient's own type, or halves with compression "fp16".
struct Wire {
  bool half = false;
  DType dtype(const Tensor& tensor) const { return half ? DType::kFp16 : tensor.dtype; }
  Bytes bytes(const Tensor& tensor) const { return tensor.elements * size_of(dtype(tensor)); }
};

// Controller::FuseResponses, for what is ready at one tick: the first gradient opens a bucket, and
// those behind it are added as long as the sum stays within the threshold. A gradient of another
// type is looked past while the bucket and all that was looked past would stay within it; what was
// looked past comes first for the next bucket.
void pack(std::deque<int> ready, const std::vector<Tensor>& tensors, const Wire& wire,
          Bytes threshold, Parts& groups) {
  while (!ready.empty()) {
    const Tensor& first = tensors[static_cast<std::size_t>(ready.front())];
    std::vector<int> group{ready.front()};
    ready.pop_front();
    Bytes bytes = wire.bytes(first);
    Bytes looked_past = 0;
    std::vector<int> skipped;
    while (!ready.empty()) {
      const int index = ready.front();
      const Tensor& tensor = tensors[static_cast<std::size_t>(index)];
      const Bytes added = wire.bytes(tensor);
      if (wire.dtype(tensor) == wire.dtype(first) && bytes + added <= threshold) {
        group.push_back(index);
        bytes += added;
      } else {
        looked_past += added;
        if (bytes + looked_past > threshold) break;
        skipped.push_back(index);
      }
      ready.pop_front();
    }
    ready.insert(ready.begin(), skipped.begin(), skipped.end());
    groups.push_back(std::move(group));
  }
}

// Gradients by the tick at which they are released: ticks come every `cycle` from the step's
// begin. Without a cycle each moment is a tick. Sparse gradients are gathered, not reduced.
std::vector<std::deque<int>> by_tick(const Workload& workload, Seconds cycle) {
  std::vector<std::deque<int>> ticks;
  Seconds now = workload.forward;
  double last = -1;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    now += workload.tensors[i].backward;
    if (workload.tensors[i].sparse) continue;
    const double tick = cycle > 0 ? std::ceil(now / cycle) : now;
    if (ticks.empty() || tick != last) ticks.emplace_back();
    last = tick;
    ticks.back().push_back(static_cast<int>(i));
  }
  return ticks;
}

Bytes rounded_threshold(double bytes, const Cluster& cluster) {
  const Bytes unit = cluster.gpus_per_node * kBufferUnit;
  const auto whole = static_cast<Bytes>(bytes);
  return (whole + unit - 1) / unit * unit;
}

Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool) {
  Reading reading;
  Strategy& strategy = reading.strategy;
  const double threshold =
      variable(config, "HOROVOD_FUSION_THRESHOLD", kDefaultThreshold, {0, 1e15});
  const double cycle_ms = variable(config, "HOROVOD_CYCLE_TIME", kDefaultCycleMs, {0, 1e6});
  const bool hierarchical = flag(config, "HOROVOD_HIERARCHICAL_ALLREDUCE", reading.notes);
  const bool autotune = flag(config, "HOROVOD_AUTOTUNE", reading.notes);
  const Wire wire{config.word_or("compression", "none", {"none", "fp16"}) == "fp16"};
  config.finish();
  if (threshold != std::floor(threshold)) {
    config.fail("HOROVOD_FUSION_THRESHOLD", "expected a whole number of bytes");
  }

  strategy.fusion.rule = Fusion::Rule::kGroups;
  const auto ticks = by_tick(workload, cycle_ms * kMillisecond);
  for (const auto& ready : ticks) {
    pack(ready, workload.tensors, wire, rounded_threshold(threshold, cluster),
         strategy.fusion.groups);
  }
  if (wire.half) strategy.compression.codec = "fp16";

  if (cycle_ms > 0) {
    reading.notes.push_back("only gradients released at the same tick travel together: " +
                            std::to_string(ticks.size()) +
                            " ticks with gradients in this backward pass; the wait for the tick "
                            "itself is not modelled yet");
  }
  if (hierarchical && (cluster.nodes == 1 || cluster.gpus_per_node == 1)) {
    reading.notes.push_back(std::string("hierarchical all-reduce is flat with one ") +
                            (cluster.nodes == 1 ? "node" : "GPU a node"));
  } else if (hierarchical) {
    strategy.hierarchy.form = Hierarchy::Form::kSharded;
    strategy.hierarchy.group_size = cluster.gpus_per_node;
  }
  if (autotune) {
    reading.notes.push_back(
        "HOROVOD_AUTOTUNE would vary threshold and cycle time while training; it is not emulated "
        "here: the values given are kept");
  }
  return reading;
}

}  // namespace

Dialect horovod_dialect() {
  return {"horovod", "Horovod: HOROVOD_FUSION_THRESHOLD, _CYCLE_TIME, compression", read};
}

}  // namespace syncline
