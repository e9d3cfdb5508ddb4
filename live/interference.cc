#include <algorithm>
#include <cmath>

#include "core/base/index.h"
#include "core/base/statistics.h"
#include "core/run/sample_gradients.h"
#include "live/figures.h"
#include "live/link_calibration.h"

namespace syncline::live {
namespace {

constexpr Seconds kPass = kMillisecond;  // a pass as planned; its operators take their own time
constexpr int kCollectives = 16;

// Makes the computation of a network: a product of square matrices, and a sum of two.
Workload square_products(std::int64_t edge, std::int64_t payload) {
  Workload workload;
  workload.name = "products";
  workload.forward = kPass;
  Tensor& gradient = workload.tensors.emplace_back();
  gradient.name = "gradient";
  gradient.elements = payload / 4;
  const Bytes bytes = edge * edge * 2;
  for (const char* name : {"x", "w", "y", "z"})
    workload.operators.edit().values.push_back({name, bytes});
  Operator product;
  product.kind = "matmul_v2";
  product.inputs = {{0}, {1}};
  product.outputs = {{2}};
  product.matrix_flops = 2 * std::pow(static_cast<double>(edge), 3);
  product.dtype = DType::kBf16;
  product.columns = edge;
  Operator sum = product;
  sum.kind = "elementwise_add";
  sum.inputs = {{0}, {2}};
  sum.outputs = {{3}};
  sum.matrix_flops = 0;
  workload.operators.edit().operators = {product, sum};
  return workload;
}

// Makes a plan of passes during all-reduces of the workload's gradient; either may be 0.
plan::Plan beside(const Workload& workload, int ranks, int passes, int collectives) {
  collective::Collective collective;
  collective.algorithm = collective::find_algorithm("ring");
  collective.groups = collective::world_group(ranks);
  collective.elements = workload.tensors.front().elements;
  return equal_collectives(collective, ranks, collectives, passes * kPass);
}

struct Spans {
  run::Span computation;
  std::vector<run::Span> collectives;
};

// Returns this rank's spans in the median period by its computation.
Spans spans_of(LiveExecutor& executor, ControlChannel& channel, const Workload& workload,
               const plan::Plan& plan, int repeats) {
  run::Gradients input(index(plan.ranks));
  input[index(channel.rank())] = run::sample_gradients(workload, channel.rank(), plan.ranks, 1);
  std::vector<Spans> periods(index(repeats + 1));
  for (const run::Span& span : executor.run(plan, input, repeats + 1).timeline.spans) {
    if (span.rank != channel.rank()) continue;
    Spans& period = periods[index(span.period)];
    if (span.op == 0) period.computation = span;
    if (span.op > 0 && index(span.op) <= plan.buckets.size()) period.collectives.push_back(span);
  }
  periods.erase(periods.begin());
  const auto middle = periods.begin() + static_cast<std::ptrdiff_t>(periods.size() / 2);
  std::nth_element(periods.begin(), middle, periods.end(), [](const Spans& a, const Spans& b) {
    return a.computation.end - a.computation.begin < b.computation.end - b.computation.begin;
  });
  return *middle;
}

Seconds length(const run::Span& span) { return span.end - span.begin; }

Seconds median_length(const std::vector<run::Span>& spans) {
  std::vector<Seconds> lengths;
  for (const run::Span& span : spans) lengths.push_back(length(span));
  return median(lengths);
}

// Returns the slowdown of work that takes `alone`, and took `whole` with `overlap` of it shared.
double slowdown_of(Seconds alone, Seconds whole, Seconds overlap) {
  const Seconds done = overlap - (whole - alone);
  return done > 0 ? std::max(0.0, overlap / done - 1) : 0;
}

// Measures collectives alone, computation alone, and both at once.
InterferenceSample measured(ControlChannel& channel, LiveExecutor& executor,
                            const Workload& workload, int repeats) {
  const int ranks = channel.ranks();
  const auto spans = [&](int passes, int collectives) {
    return spans_of(executor, channel, workload, beside(workload, ranks, passes, collectives),
                    repeats);
  };
  constexpr int kFew = 4;
  InterferenceSample sample;
  sample.collective = median_length(spans(0, kCollectives).collectives);
  // Collectives outlast the computation: some of them begin and end during it.
  const Seconds pass = length(spans(kFew, 0).computation) / kFew;
  const double passes = kCollectives / 2.5 * sample.collective / std::max(pass, 1e-9);
  const std::string count = channel.from_first(bytes_of(std::vector{std::clamp(passes, 2.0, 1e4)}));
  const int agreed = static_cast<int>(read_figures<double>(count, channel, 0, 1).front());
  sample.computation = length(spans(agreed, 0).computation);
  const Spans both = spans(agreed, kCollectives);
  const Seconds end = both.computation.end;
  const Seconds covered = std::min(end, both.collectives.back().end) - both.computation.begin;
  sample.slowdown = slowdown_of(sample.computation, length(both.computation), covered);
  std::vector<run::Span> inside;
  for (const run::Span& span : both.collectives) {
    if (span.end <= end) inside.push_back(span);
  }
  if (inside.empty()) inside = both.collectives;
  sample.collective_slowdown =
      std::max(0.0, median_length(inside) / std::max(sample.collective, 1e-9) - 1);
  return sample;
}

}  // namespace

std::vector<InterferenceSample> interference_samples(ControlChannel& channel,
                                                     const ComputingExecutor& computing,
                                                     std::int64_t edge, std::int64_t payload,
                                                     int repeats) {
  const Workload workload = square_products(edge, payload);
  Device device;  // predicts operators without a kernel: none here
  device.flops = device.memory = 1e12;
  std::vector<InterferenceSample> samples;
  for (const int channels : {0, 2, 4, 8, 16}) {
    const auto executor = computing(device, channels)(workload, channel);
    if (executor->shares_device()) return {};
    samples.push_back(measured(channel, *executor, workload, repeats));
    samples.back().channels = channels;
  }
  return samples;
}

}  // namespace syncline::live
