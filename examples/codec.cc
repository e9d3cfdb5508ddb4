// A new codec: `strided` sends every n-th element of a gradient. All ranks send the same positions,
// so only values travel, half of the bytes of `dgc`, which also sends an index for each value.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "core/codec.h"
#include "core/cost.h"
#include "core/executor.h"
#include "core/job.h"
#include "core/metrics.h"
#include "core/strategy.h"

using namespace syncline::compress;
using syncline::Bytes;

static bool applies(const syncline::Tensor& tensor, std::int64_t min_elements) {
  return !tensor.sparse && tensor.elements >= min_elements;
}

static Bytes encoded_bytes(std::int64_t, std::int64_t kept) { return 4 * kept; }

// Bytes of device memory that encoding reads and writes: the kept values, and zeros in their place.
static double encode_traffic(std::int64_t, std::int64_t kept, Bytes) {
  return 12 * static_cast<double>(kept);
}

// Bytes of device memory that adding the values of all ranks reads and writes.
static double decode_traffic(std::int64_t, std::int64_t kept, int ranks, Bytes) {
  return 12 * static_cast<double>(kept) * ranks;
}

// Takes the values from the gradient; the others stay in it for later steps.
static Encoded encode(std::vector<float>& gradient, std::int64_t kept) {
  Encoded encoded;
  const auto count = static_cast<std::size_t>(kept);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = i * (gradient.size() / count);
    encoded.indices.push_back(static_cast<std::int32_t>(place));
    encoded.values.push_back(gradient[place]);
    gradient[place] = 0;
  }
  return encoded;
}

static void add(const Encoded& encoded, std::vector<float>& sum) {
  for (std::size_t i = 0; i < encoded.values.size(); ++i) {
    sum[static_cast<std::size_t>(encoded.indices[i])] += encoded.values[i];
  }
}

int main() {
  hand_in({.name = "strided",
           .summary = "every n-th element, without its index",
           .sparse = true,
           .applies = applies,
           .encoded_bytes = encoded_bytes,
           .encode_traffic = encode_traffic,
           .decode_traffic = decode_traffic,
           .encode = encode,
           .add = add});

  syncline::Job job;
  job.workload.forward = 10e-3;
  for (int layer = 7; layer >= 0; --layer) {
    job.workload.tensors.push_back({.name = "layer" + std::to_string(layer) + ".weight",
                                    .shape = {4000, 4000},
                                    .elements = 16'000'000,
                                    .backward = 2.5e-3});
  }
  job.cluster.nodes = 8;
  job.cluster.tiers = {{.name = "network", .span = 8, .latency = 20e-6, .bandwidth = 1e9}};
  const auto executor = syncline::run::make_model_executor({.cluster = job.cluster});
  syncline::collective::CostCache costs(job.cluster);
  std::printf("codec     sent per rank, MB  step, ms\n");
  for (const char* name : {"", "dgc", "strided"}) {
    syncline::Strategy strategy;
    strategy.compression.codec = name;
    strategy.compression.sparsity = {0.99};
    const auto metrics =
        syncline::measure::evaluate_strategy(job, strategy, *executor, costs).metrics;
    std::printf("%-8s  %17.1f  %8.1f\n", *name == '\0' ? "(none)" : name,
                metrics.bytes_on_wire / 1e6, metrics.step_time * 1e3);
  }
}
