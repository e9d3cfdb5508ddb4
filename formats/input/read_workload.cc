#include "formats/input/read_workload.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "catalogue/architectures/architecture.h"
#include "catalogue/hardware/device.h"
#include "core/base/error.h"
#include "core/base/index.h"
#include "core/operators/evaluate.h"
#include "core/plan/fusion.h"
#include "formats/dialect/ddp_buckets.h"
#include "formats/input/read_operators.h"
#include "formats/input/read_parallel.h"
#include "formats/json/reader.h"

namespace syncline::input {
namespace {

// Limits that no training reaches: a larger value has the wrong unit.
constexpr double kLongestMilliseconds = 1e8;  // a day for one pass
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;
constexpr std::size_t kMaxTensors = 1000000;
constexpr std::int64_t kMaxMicroBatches = 4096;

DType dtype_of(Reader& reader, DType fallback, const char* key = "dtype") {
  if (!reader.has(key)) return fallback;
  const std::string word =
      reader.word_or(key, to_string(fallback), {"fp32", "fp16", "bf16", "fp64"});
  if (word == "fp16") return DType::kFp16;
  if (word == "bf16") return DType::kBf16;
  if (word == "fp64") return DType::kFp64;
  return DType::kFp32;
}

// Reads the keys that tensors with and without gradients share.
Tensor read_shape(Reader& reader, DType fallback) {
  Tensor tensor;
  tensor.name = reader.text("name");
  tensor.dtype = dtype_of(reader, fallback);
  const Json& shape = reader.array("shape");
  tensor.elements = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t extent =
        checked_integer(shape[d], 1, kMaxElements, reader.file(),
                        reader.place_of("shape") + "[" + std::to_string(d) + "]");
    if (tensor.elements > kMaxElements / extent) {
      reader.fail("shape", "more than 2^40 elements");
    }
    tensor.elements *= extent;
    tensor.shape.push_back(extent);
  }
  return tensor;
}

struct TensorWork {
  DType products = DType::kFp32;
  bool has_wait = false;
  bool has_forward = false;
  double backward_flops = 0;
  double forward_flops = 0;
};

// Requires that keys of some tensors are given for all.
void require_all(Reader& reader, const std::string& keys, std::size_t given, std::size_t tensors) {
  if (given == 0 || given == tensors) return;
  reader.fail("tensors", keys + " is given for " + std::to_string(given) + " of " +
                             std::to_string(tensors) + " tensors; give all or none");
}

// Returns a whole model's FLOPs / rate of products; in half precision the data movement counts too.
Seconds time_of(double flops, DType dtype, const Device& device) {
  const double rate = device.product_flops(dtype);
  return flops / (rate == device.flops ? rate : rate * hardware::kWholeModel);
}

void set_products(Reader& reader, const Workload& workload, std::vector<TensorWork>& work) {
  for (std::size_t i = 0; i < work.size(); ++i) {
    work[i].products = dtype_of(reader, workload.tensors[i].dtype, "product_dtype");
  }
}

// Throws for times of the backward pass after the last gradient: no pass goes there.
void require_no_tail(Reader& reader, const Workload& workload,
                     const std::vector<TensorWork>& work) {
  for (std::size_t t = index(last_gradient(workload) + 1); t < work.size(); ++t) {
    if (workload.tensors[t].backward == 0 && work[t].backward_flops == 0) continue;
    reader.fail("tensors", workload.tensors[t].name +
                               " is frozen and after the last gradient, where nothing goes "
                               "backward: leave out its backward_us and backward_flops");
  }
}

// Sets the backward waits by the most direct of three sources: measured waits, a total divided by
// FLOPs (or elements), or FLOPs / the device's rate.
void evaluate_backward(Reader& reader, Workload& workload, const std::vector<TensorWork>& work,
                       const Device& device) {
  const bool has_total = reader.has("backward_ms");
  const double total =
      has_total ? reader.number("backward_ms", {0, kLongestMilliseconds}) * kMillisecond : 0;
  std::size_t waits = 0;
  double flops = 0;
  for (const auto& item : work) {
    waits += item.has_wait;
    flops += item.backward_flops;
  }
  require_all(reader, "backward_us", waits, work.size());
  const double sum = backward_time(workload);
  if (waits != 0 && (!has_total || sum > 0)) {
    if (has_total) {
      for (auto& tensor : workload.tensors) tensor.backward *= total / sum;
    }
    return;
  }
  if (!has_total && (flops == 0 || device.flops == 0)) return;
  workload.rated_times = !has_total;
  if (!has_total) {
    for (std::size_t i = 0; i < work.size(); ++i) {
      auto& tensor = workload.tensors[i];
      tensor.backward = time_of(work[i].backward_flops, work[i].products, device);
    }
    return;
  }
  // Without FLOPs, by elements, those of frozen parameters half: their gradients are not made.
  const auto weight = [&](std::size_t i) {
    if (flops > 0) return work[i].backward_flops;
    if (std::cmp_greater(i, last_gradient(workload))) return 0.0;
    const Tensor& tensor = workload.tensors[i];
    return static_cast<double>(tensor.elements) / (tensor.frozen ? 2 : 1);
  };
  double all = 0;
  for (std::size_t i = 0; i < work.size(); ++i) all += weight(i);
  for (std::size_t i = 0; i < work.size(); ++i) {
    workload.tensors[i].backward = total * (weight(i) / all);
  }
}

void evaluate_forward(Reader& reader, Workload& workload, const std::vector<TensorWork>& work,
                      const Device& device) {
  std::size_t given = 0;
  for (const auto& item : work) given += item.has_forward;
  require_all(reader, "forward_us", given, work.size());
  if (reader.has("forward_ms")) {
    workload.forward = reader.number("forward_ms", {0, kLongestMilliseconds}) * kMillisecond;
    return;
  }
  for (const auto& tensor : workload.tensors) workload.forward += tensor.forward;
  if (workload.forward > 0 || device.flops == 0) return;
  for (std::size_t i = 0; i < work.size(); ++i) {
    workload.forward += time_of(work[i].forward_flops, work[i].products, device);
  }
}

// Reads the measured times of copies between gradients and buckets, other parts of a step, and the
// uncertainty of these times.
void read_copies(Reader& reader, Workload& workload, std::size_t given) {
  workload.host_gap = reader.number_or("host_gap_ms", 0, {0, kLongestMilliseconds}) * kMillisecond;
  workload.buffer_broadcast =
      reader.number_or("buffer_broadcast_ms", 0, {0, kLongestMilliseconds}) * kMillisecond;
  workload.time_spread = reader.number_or("time_spread", 0, {0, 1});
  workload.copies_measured = given > 0;
  require_all(reader, "copy_in_us or copy_out_us", given, workload.tensors.size());
  if (!reader.has("copy_kernels_ms")) return;
  if (given == 0) {
    reader.fail("copy_kernels_ms",
                "is a part of the tensors' copy_in_us and copy_out_us, which "
                "are not given");
  }
  workload.copy_kernels =
      reader.number("copy_kernels_ms", {0, kLongestMilliseconds}) * kMillisecond;
}

// Sets missing times by the operators, and counts fusion from there.
void evaluate_by_operators(Reader& reader, Workload& workload, bool waits_given,
                           const Device& device) {
  if (device.flops == 0 || device.memory == 0) {
    reader.fail("operators",
                "needs cluster.device.tflops and memory_gbytes_per_s, which predict them");
  }
  const operators::StepTimes times = operators::evaluate_operators(workload.operators, device);
  const bool forward_given = reader.has("forward_ms");
  const bool backward_given = waits_given || reader.has("backward_ms");
  workload.times_given = forward_given || backward_given || reader.has("update_ms");
  workload.rated_times = !workload.times_given;
  if (!forward_given) workload.forward = times.forward;
  if (!reader.has("update_ms")) workload.update = times.update;
  if (waits_given) return;
  const Seconds total = std::accumulate(times.backward.begin(), times.backward.end(), Seconds{0});
  const Seconds wanted = backward_given ? backward_time(workload) : total;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    workload.tensors[i].backward = times.backward[i] * (wanted / total);
  }
}

void read_tensor(Reader& item, DType dtype, Workload& workload, std::vector<TensorWork>& work,
                 std::size_t& copied) {
  Tensor tensor = read_shape(item, dtype);
  constexpr int kMaxPlaces = 1 << 24;
  if (item.has("registered")) {
    tensor.registered = static_cast<int>(item.integer("registered", 0, kMaxPlaces));
  }
  tensor.part = static_cast<int>(item.integer_or("part", 0, 0, kMaxPlaces));
  tensor.expert = item.boolean_or("expert", false);
  tensor.frozen = item.boolean_or("frozen", false);
  if (item.has("sparse_rows")) {
    if (tensor.frozen)
      item.fail("sparse_rows", "is of a gradient, and a frozen parameter has none");
    tensor.sparse = true;
    const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
    tensor.sparse_rows = item.integer("sparse_rows", 0, rows);
  }
  TensorWork flops;
  flops.has_wait = item.has("backward_us");
  tensor.backward = item.number_or("backward_us", 0, {0, 1e11}) * kMicrosecond;
  tensor.forward = item.number_or("forward_us", 0, {0, 1e11}) * kMicrosecond;
  flops.has_forward = item.has("forward_us");
  copied += item.has("copy_in_us") || item.has("copy_out_us");
  tensor.copy_in = item.number_or("copy_in_us", 0, {0, 1e11}) * kMicrosecond;
  tensor.copy_out = item.number_or("copy_out_us", 0, {0, 1e11}) * kMicrosecond;
  flops.backward_flops = item.number_or("backward_flops", 0, {0, 1e21});
  flops.forward_flops = item.number_or("forward_flops", 0, {0, 1e21});
  item.finish();
  workload.tensors.push_back(std::move(tensor));
  work.push_back(flops);
}

// Reads the tensors. Returns their work, and the number of those with times of copies.
std::vector<TensorWork> read_tensors(Reader& reader, DType dtype, Workload& workload,
                                     std::size_t& copied) {
  std::vector<TensorWork> work;
  for (auto& item : reader.objects("tensors")) {
    const std::size_t before = workload.tensors.size();
    item.attempt([&] { read_tensor(item, dtype, workload, work, copied); });
    if (workload.tensors.size() > before) continue;
    // Messages name tensors by their places, so a wrong tensor keeps its place.
    workload.tensors.emplace_back().elements = 1;
    work.emplace_back();
  }
  if (workload.tensors.size() > kMaxTensors) reader.fail("tensors", "more than 1000000 tensors");
  if (workload.parallel.pipeline > 1 && std::ranges::any_of(workload.tensors, &Tensor::frozen)) {
    reader.fail("tensors", "frozen parameters in a pipeline are not modelled yet: leave them out");
  }
  return work;
}

// Names a workload after its architecture if it still has the name of another one.
void name_as_generated(const Reader& reader, Workload& workload) {
  const Json& given = reader.json().at("operators");
  const auto* row = operators::find_architecture(given.value("architecture", ""));
  const auto* named = operators::find_architecture(workload.name);
  if (row == nullptr || named == nullptr || row == named || row->shaped) return;
  workload.name = row->name;
  if (workload.source.starts_with("generated: ")) {
    workload.source = "generated: " + std::string(row->summary);
  }
}

// Adds the part of the layers' forward pass that kProducts computes again to their backward pass.
void repeat_products(const Device& device, Workload& workload) {
  const OperatorList& list = *workload.operators;
  const auto does = plan::again_or_kept(list);
  Seconds again = 0, all = 0;
  for (std::size_t o = 0; o < does.size(); ++o) {
    if (does[o] == plan::AgainOrKept::kOutside) continue;
    const Operator& op = list.operators[o];
    const Seconds time =
        std::max(operators::kernel_time(list, op, device), std::max(1, op.kernels) * device.launch);
    all += time;
    if (does[o] == plan::AgainOrKept::kAgain) again += time;
  }
  if (all <= 0) return;
  const std::vector<Seconds> forward = forward_times(workload);
  for (int t = 0; t <= last_gradient(workload); ++t) {
    Tensor& tensor = workload.tensors[index(t)];
    if (plan::layer_number(tensor.name) < 0) continue;
    tensor.backward += again / all * forward[index(t)];
  }
}

// Adds the forward pass to the backward pass under full recomputation. PyTorch stops at the last
// value that is needed, before a layer's last product, and the head is in no layer. kStopsEarly is
// the extra share of the forward pass in published runs (tests/hardware/reached_test.cc). Megatron,
// which cuts jobs, computes all of it.
void repeat_forward(const Device& device, Workload& workload) {
  constexpr double kStopsEarly = 0.63;
  if (workload.recompute == Workload::Recompute::kProducts) {
    return repeat_products(device, workload);
  }
  if (workload.recompute != Workload::Recompute::kFull) return;
  const double again = workload.parallel.whole_job() ? 1 : kStopsEarly;
  const std::vector<Seconds> forward = forward_times(workload);
  for (int t = 0; t <= last_gradient(workload); ++t) {
    Tensor& tensor = workload.tensors[index(t)];
    if (plan::recomputes_layer(workload, tensor)) tensor.backward += again * forward[index(t)];
  }
}

void read_recompute(Reader& reader, Workload& workload) {
  const std::string word =
      reader.word_or("activation_checkpointing", "none", {"none", "selective", "products", "full"});
  workload.recompute = word == "none"        ? Workload::Recompute::kNone
                       : word == "selective" ? Workload::Recompute::kSelective
                       : word == "products"  ? Workload::Recompute::kProducts
                                             : Workload::Recompute::kFull;
  constexpr std::int64_t kMaxLayers = 100000;
  workload.recompute_every =
      static_cast<int>(reader.integer_or("checkpointing_every", 1, 1, kMaxLayers));
  if (workload.recompute_every > 1 && word != "full") {
    reader.fail("checkpointing_every",
                "counts layers that are computed again in full, and "
                "\"activation_checkpointing\" is \"" +
                    word + "\"");
  }
}

// Throws for too many passes: a pipeline's passes are planned one by one, for each interval.
void require_few_passes(const Reader& reader, const Workload& workload) {
  constexpr std::int64_t kMaxPasses = 131072;
  const Parallel& parallel = workload.parallel;
  if (parallel.pipeline < 2 || workload.micro_batches * parallel.parts() <= kMaxPasses) return;
  reader.fail("micro_batches", "found " + std::to_string(workload.micro_batches) +
                                   ": the pipeline's " + std::to_string(parallel.parts()) +
                                   " parts make more than " + std::to_string(kMaxPasses) +
                                   " passes per step; expected at most " +
                                   std::to_string(kMaxPasses / parallel.parts()) +
                                   ": from there on each takes as long as the one before");
}

// Checks micro-batches: interleaved stages walk them in groups as large as the pipeline.
void judge_micro_batches(const Reader& reader, const Workload& workload) {
  require_few_passes(reader, workload);
  const Parallel& parallel = workload.parallel;
  const std::int64_t stages = parallel.pipeline;
  const std::int64_t rest = workload.micro_batches % stages;
  if (parallel.schedule != Schedule::kInterleaved || rest == 0) return;
  const std::int64_t fewer = workload.micro_batches - rest;
  reader.fail("micro_batches", "number of microbatches (" + std::to_string(workload.micro_batches) +
                                   ") is not divisible by pipeline-model-parallel-size (" +
                                   std::to_string(stages) +
                                   ") when using interleaved schedule (Megatron): expected " +
                                   (fewer > 0 ? std::to_string(fewer) + " or " : "") +
                                   std::to_string(fewer + stages));
}

}  // namespace

Workload read_workload(Reader reader, const Cluster& cluster) {
  const Device& device = cluster.device;
  Workload workload;
  reader.text_or("$schema", "");
  workload.name = reader.text("name");
  workload.source = reader.text_or("source", "");
  reader.text_or("about", "");
  workload.batch = reader.integer_or("batch", 1, 1, 1 << 30);
  // An architecture's work has a number of samples, given or not.
  workload.batch_given = reader.has("batch") || reader.has("operators");
  workload.micro_batches = reader.integer_or("micro_batches", 1, 1, kMaxMicroBatches);
  workload.framework_version = dialect::read_torch(reader);
  read_recompute(reader, workload);
  if (reader.has("parallel")) {
    workload.parallel = read_parallel(reader.object("parallel"), cluster);
    judge_micro_batches(reader, workload);
  }
  workload.delayed_scaling = reader.boolean_or("delayed_scaling", false);
  workload.optimizer_given = reader.has("optimizer");
  const std::string optimizer = reader.word_or("optimizer", "adam", {"sgd", "momentum", "adam"});
  workload.optimizer_states = optimizer == "sgd" ? 0 : optimizer == "momentum" ? 1 : 2;
  const DType dtype = dtype_of(reader, DType::kFp32);
  workload.update = reader.number_or("update_ms", 0, {0, kLongestMilliseconds}) * kMillisecond;
  const bool has_tensors = reader.has("tensors");
  if (!reader.has("operators")) reader.require("tensors");
  std::size_t copied = 0;
  std::vector<TensorWork> work = read_tensors(reader, dtype, workload, copied);
  read_copies(reader, workload, copied);
  const auto parts = std::ranges::count_if(workload.tensors, &Tensor::part);
  const auto placed = std::count_if(workload.tensors.begin(), workload.tensors.end(),
                                    [](const Tensor& tensor) { return tensor.registered >= 0; });
  require_all(reader, "registered", static_cast<std::size_t>(placed), workload.tensors.size());
  const bool none = std::ranges::all_of(workload.tensors, &Tensor::frozen);
  if (none && (has_tensors || !reader.has("operators"))) {
    reader.fail("tensors", workload.tensors.empty() ? "empty, expected at least one gradient"
                                                    : "all are frozen, expected one gradient");
  }
  for (auto& item : reader.objects("buffers")) {
    workload.buffers.push_back(read_shape(item, dtype));
    item.finish();
  }
  operators::Generated generated;
  if (reader.has("operators")) {
    generated = read_operators(reader.object("operators"), workload, has_tensors);
    name_as_generated(reader, workload);
  }
  work.resize(workload.tensors.size());
  set_products(reader, workload, work);
  require_no_tail(reader, workload, work);
  evaluate_backward(reader, workload, work, device);
  evaluate_forward(reader, workload, work, device);
  if (!workload.operators->empty()) {
    const bool waits = !work.empty() && work.front().has_wait;
    evaluate_by_operators(reader, workload, waits, device);
  }
  if (workload.rated_times) repeat_forward(device, workload);
  if (workload.parallel.whole_job()) {
    cut_workload(reader, parts > 0, workload.operators->empty() ? nullptr : &generated, cluster,
                 workload);
  }
  reader.finish({"operators.architecture", "operators.sequence", "operators.autocast",
                 "operators.fused_attention"});
  return workload;
}

}  // namespace syncline::input
