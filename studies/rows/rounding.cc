#include "studies/rows/rounding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include "core/codec.h"
#include "core/executor.h"
#include "core/plan.h"
#include "core/run/payload.h"
#include "core/run/sample_gradients.h"

namespace syncline::measure {
namespace {

constexpr std::int64_t kMaxRanks = 128;
constexpr std::int64_t kNumbers = 65'536;  // per rank, or more, so that each has a block of each

// Returns the format of most of the gradients' bytes.
DType main_format(const Workload& workload) {
  std::map<DType, Bytes> bytes;
  for (const Tensor& tensor : workload.tensors) {
    if (!tensor.frozen) bytes[tensor.dtype] += tensor.bytes();
  }
  if (bytes.empty()) return DType::kFp32;
  return std::ranges::max_element(bytes, {}, [](const auto& each) { return each.second; })->first;
}

bool rounds(const Strategy& strategy, DType format) {
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  if (codec != nullptr) return !codec->sparse && !codec->low_rank;
  if (strategy.fusion.sums_in_half()) return true;
  return size_of(format) < size_of(DType::kFp32) && !strategy.fusion.sums_in_fp32();
}

// Returns a strategy with only the settings that affect the exchange of gradients.
Strategy way_of(const Strategy& strategy) {
  Strategy way;
  way.algorithm = strategy.algorithm;
  way.hierarchy = strategy.hierarchy;
  way.compression = strategy.compression;
  way.compression.min_elements = 1;
  way.exchange = strategy.exchange;
  way.fusion.rule = Fusion::Rule::kOne;
  way.fusion.sum_format = strategy.fusion.sum_format;
  return way;
}

// Returns the relative error of the sums of one exchange by the host executor.
double measured(const Cluster& cluster, const Strategy& way, DType format) {
  const std::int64_t ranks = cluster.ranks();
  constexpr std::int64_t kBlock = 128;
  Workload workload;
  Tensor& tensor = workload.tensors.emplace_back();
  tensor.name = "gradient";
  tensor.elements = std::max<std::int64_t>(1, kNumbers / (kBlock * ranks)) * kBlock * ranks;
  tensor.shape = {tensor.elements};
  tensor.dtype = format;
  const plan::Plan plan = plan::make_plan(workload, cluster, way);
  run::Gradients input;
  std::vector<double> exact(static_cast<std::size_t>(tensor.elements), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    input.push_back(run::sample_gradients(workload, rank, static_cast<int>(ranks), 1,
                                          run::SampleValues::kReal));
    auto& values = input.back().front();
    std::vector<std::byte> narrow(values.size() * static_cast<std::size_t>(size_of(format)));
    run::encode_numbers(format, values.data(), tensor.elements, narrow.data());
    run::decode_numbers(format, narrow.data(), tensor.elements, values.data());
    for (std::size_t i = 0; i < exact.size(); ++i) {
      exact[i] += static_cast<double>(values[i]);
    }
  }
  const auto sums = run::make_host_executor(workload)->run(plan, input, 1).gradients;
  double error = 0, whole = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double off = static_cast<double>(sums.front().front()[i]) - exact[i];
    error += off * off;
    whole += exact[i] * exact[i];
  }
  return std::sqrt(error / whole);
}

}  // namespace

std::optional<double> rounding_error(const Scenario& scenario, const Strategy& strategy) {
  const Cluster& cluster = scenario.cluster;
  const DType format = main_format(scenario.workload);
  const bool asked = cluster.ranks() > 1 && cluster.ranks() <= kMaxRanks &&
                     !strategy.local_sgd.enabled && !scenario.workload.parallel.whole_job() &&
                     rounds(strategy, format);
  if (!asked) return std::nullopt;
  // Points of a sweep often share a result.
  using Key = std::tuple<std::string, std::string, Hierarchy::Form, int, Strategy::Exchange, DType,
                         std::optional<DType>, std::int64_t>;
  static std::mutex mutex;
  static std::map<Key, double> known;
  const Key key{strategy.algorithm,         strategy.compression.codec,
                strategy.hierarchy.form,    strategy.hierarchy.group_size,
                strategy.exchange,          format,
                strategy.fusion.sum_format, cluster.ranks()};
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known[key] = measured(cluster, way_of(strategy), format);
}

}  // namespace syncline::measure
