//   no cost              one rank; no compute times, so that overlap is impossible; encoding
//                        without cost, as the device's memory rate is not given; a hierarchy of one
//                        level; parameters averaged after every step
//   reversed list        gradients in forward order (gradient_order.h)
//   waiting ranks        ranks that compute faster than the slowest (cluster.speeds)
//   ignored setting      a setting that a framework ignores
//   wrong unit           a NIC above 1600 Gbit/s or of a usual rate in GB/s, a GPU's port above 20
//                        Tbit/s, a message's latency of 10 ms or, between nodes, below 0.2 us, a
//                        device above 100 PFLOP/s or 100 TB/s, buckets of 1000 times the
//                        gradients, a bucket of a few elements, a Horovod threshold of a few bytes
//                        or cycle of a few microseconds; and, if the document is available, a
//                        backward_ms that contradicts its gradients' backward_us
//   hardware             a device's name that is another device's than its base, more GPUs than the
//                        named node has, bf16 on a device without products in it
//   global batch         activations that no GPU holds, while those of a share of the batch fit
//   several networks     rows evaluated by NCCL and rows on the plain links
//   first step           DDP's, which exchanges one bucket of all gradients, and its time
//   missing shapes       assumed shapes of the tensors that PowerSGD factors
//   not measured         collectives outside the sizes and counts of the cluster's calibration
//   guess                basis of NCCL's choices; assumptions about a named node or device
//                        (catalogue/hardware), if the document is available
//
// Some of these are doubtful: input that is likely a mistake. Such a line begins with kDoubtful,
// and verbs print it before their results.
#include "studies/warnings/warnings.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "catalogue/hardware/device.h"
#include "core/base/statistics.h"
#include "core/collective/library.h"
#include "core/collective/nccl.h"
#include "core/compress/power_sgd.h"
#include "core/executor.h"
#include "core/job/overlap.h"
#include "core/metrics.h"
#include "core/metrics/phases.h"
#include "core/operators/evaluate.h"
#include "core/plan/compute_fusion.h"
#include "core/plan/planner.h"
#include "formats/dialect/dialect.h"
#include "formats/json/text.h"
#include "studies/rows/memory.h"
#include "studies/rows/row_evaluator.h"
#include "studies/rows/uncertainty.h"
#include "studies/warnings/gradient_order.h"

namespace syncline::measure {
namespace {

std::string doubtful(const std::string& text) { return std::string(kDoubtful) + text; }

// Limits beyond which a unit is likely wrong: each is well above products on the market.
constexpr BytesPerSecond kFastestNic = 1600 * kGigabitPerSecond;
constexpr BytesPerSecond kFastestGpuPort = 20000 * kGigabitPerSecond;
constexpr Seconds kSlowestMessage = 10 * kMillisecond;
constexpr Seconds kQuickestMessage = 0.2 * kMicrosecond;
constexpr double kMaxFlops = 1e17;
constexpr BytesPerSecond kFastestMemory = 1e5 * kGigabytePerSecond;
// Limit of a bucket, in multiples of the gradients; small models count as kSmallModel.
constexpr double kBeyondModel = 1000;
constexpr Bytes kSmallModel = 64 * kMiB;

constexpr std::size_t kNamedStrategies = 4;

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// Returns "strategy 'a'", "strategies 'a', 'b' and 3 more".
std::string names_text(const std::vector<std::string>& names) {
  std::string text = names.size() == 1 ? "strategy " : "strategies ";
  const std::size_t named = names.size() > kNamedStrategies + 1 ? kNamedStrategies : names.size();
  for (std::size_t i = 0; i < named; ++i) {
    const bool last = i > 0 && i + 1 == names.size();
    text += i == 0 ? "'" : last ? " and '" : ", '";
    text += names[i] + "'";
  }
  if (named < names.size()) text += " and " + std::to_string(names.size() - named) + " more";
  return text;
}

// Warnings about strategies; the same warning of several strategies is one line.
class StrategyWarnings {
 public:
  void add(const Strategy& strategy, const std::string& text) {
    auto entry = std::ranges::find(said_, text, &Said::first);
    if (entry == said_.end()) entry = said_.insert(entry, {text, {}});
    if (entry->second.empty() || entry->second.back() != strategy.name) {
      entry->second.push_back(strategy.name);
    }
  }

  // Appends the warnings of at least `least` strategies.
  void append_to(std::vector<std::string>& lines, std::size_t least = 1) const {
    for (const auto& [text, names] : said_) {
      if (names.size() < least) continue;
      const bool suspicious = text.starts_with(kDoubtful);
      const std::string line =
          names_text(names) + ": " + text.substr(suspicious ? kDoubtful.size() : 0);
      lines.push_back(suspicious ? doubtful(line) : line);
    }
  }

 private:
  using Said = std::pair<std::string, std::vector<std::string>>;  // text, names of strategies
  std::vector<Said> said_;
};

bool uses_nccl(const Strategy& strategy) {
  return strategy.algorithm == collective::kNcclName ||
         strategy.hierarchy.inside == collective::kNcclName ||
         strategy.hierarchy.across == collective::kNcclName;
}

// Returns the source of the times of NCCL's collectives.
std::string times_words(const Cluster& cluster) {
  if (cluster.cost_model) return "times by the cluster's calibration where it covers them";
  const std::string text =
      "times are those of NCCL 2.28.9's own model and what published logs show beyond it, not "
      "calibrated here";
  const bool unnamed = cluster.nodes > 1 && cluster.fabric == Fabric::kUnknown;
  const bool measured = std::ranges::any_of(cluster.tiers, &Tier::measured);
  return text + (unnamed ? "; cluster.fabric (rdma, efa, tcp, ...) narrows their interval" : "") +
         (measured ? "; bandwidths with \"measured\" are used as they are" : "");
}

std::string nccl_warning(const Cluster& cluster) {
  const collective::NcclTopology t =
      collective::nccl_topology(cluster, collective::world_group(cluster.ranks()));
  std::ostringstream text;
  const hardware::KnownDevice* device = hardware::recognise_device(cluster.device.name);
  if (device != nullptr && device->compute_capability == 0) {
    text << device->summary
         << " runs RCCL, which is not modelled: NCCL's model of NVIDIA's devices "
         << "stands in for it; ";
  }
  text << "NCCL chooses for compute capability " << t.least_capability
       << (t.nvswitch ? " with NVSwitch" : "") << ", " << t.ring.channels
       << (t.ring.channels == 1 ? " channel of " : " channels of ")
       << t.tree.intra / kGigabytePerSecond << " GB/s inside a node and "
       << t.ring.inter / kGigabytePerSecond << " GB/s across (cluster.nccl overrides); "
       << times_words(cluster);
  return text.str();
}

// Warns of a batch that no GPU holds, while a rank's share of it fits: it is likely that of all
// GPUs. A measured batch is not suspected.
void suspect_batch(const Scenario& scenario, std::vector<std::string>& lines) {
  constexpr std::int64_t kLargeBatch = 256;  // smaller ones may fit by recomputation
  const Workload& workload = scenario.workload;
  const int ranks = scenario.cluster.ranks();
  if (!workload.rated_times || workload.batch < kLargeBatch || workload.batch % ranks != 0) return;
  const Memory memory = memory_of(scenario, Strategy());
  if (memory.available <= 0 || memory.activations <= memory.available) return;
  if (memory.activations / ranks > memory.available) return;
  lines.push_back(doubtful("workload.batch is each GPU's, and the activations of " +
                           std::to_string(workload.batch) + " samples take about " +
                           number_text(std::round(memory.activations / 1e9)) +
                           " GB: was the batch of all " + std::to_string(ranks) + " GPUs meant (" +
                           std::to_string(workload.batch / ranks) + " each)?"));
}

bool multiplies_in_bf16(const Workload& workload) {
  const auto& operators = workload.operators->operators;
  if (operators.empty()) {
    return std::ranges::count(workload.tensors, DType::kBf16, &Tensor::dtype) > 0;
  }
  return std::ranges::any_of(operators, [](const Operator& op) {
    return op.dtype == DType::kBf16 && op.matrix_flops > 0;
  });
}

void suspect_bf16(const Workload& workload, const Device& device, std::vector<std::string>& lines) {
  if (device.bf16 || !workload.rated_times || !multiplies_in_bf16(workload)) return;
  lines.push_back(doubtful(
      device.name + " has no fast products in bf16: they take the rate of fp32 (fp16 is faster)"));
}

// Warns of products with unaligned rows, if they cost more than a little.
void warning_on_columns(const Workload& workload, const Device& device,
                        std::vector<std::string>& lines) {
  constexpr double kWorth = 0.03, kPercent = 100;
  constexpr std::int64_t kWhole = 64;
  Seconds lost = 0;
  std::int64_t columns = 0;
  for (const Operator& op : workload.operators->operators) {
    const double share = operators::aligned_share(op, device);
    if (!workload.rated_times || op.matrix_flops == 0 || share == 1) continue;
    lost += op.matrix_flops / device.product_flops(op.dtype) * (1 / share - 1);
    columns = op.columns;
  }
  const Seconds computed = workload.forward + backward_time(workload);
  if (lost <= kWorth * computed) return;
  lines.push_back(
      std::to_string(columns) + " columns are no multiple of 8, so their products keep " +
      "to slow kernels: " + number_text(std::round(kPercent * lost / computed)) +
      " % of the computation, which " + std::to_string((columns + kWhole - 1) / kWhole * kWhole) +
      " would spare (pad what has so many, such as the vocabulary, to a multiple of " +
      std::to_string(kWhole) + ")");
}

void warning_on_workload(const Scenario& scenario, std::vector<std::string>& lines) {
  const Workload& workload = scenario.workload;
  const bool computes_alike =
      workload.operators->empty() ||
      std::ranges::none_of(scenario.strategies, plan::any, &Strategy::compute_fusion);
  warning_on_columns(workload, scenario.cluster.device, lines);
  if (scenario.cluster.ranks() == 1 && computes_alike) {
    lines.push_back("one rank has nothing to communicate: every strategy costs the same");
  }
  if (backward_time(workload) == 0 && workload.forward == 0) {
    lines.push_back(
        "the workload has no compute times (forward_ms, backward_us or backward_ms, or FLOPs with "
        "cluster.device.tflops): only communication is predicted, nothing can overlap");
  }
  if (is_forward_order(workload)) {
    lines.push_back(
        doubtful("the gradients look listed in forward order, '" + workload.tensors.front().name +
                 "' first and '" + workload.tensors.back().name +
                 "' last; they are read in the order in which the backward pass makes them "
                 "ready: turn the list round (torch: reversed(list(model.named_parameters())))"));
  }
  suspect_batch(scenario, lines);
  suspect_bf16(workload, scenario.cluster.device, lines);
}

// Warns of usual rates in Gbit/s that are written in GB/s.
void suspect_gigabytes(const std::string& key, double gigabits, std::vector<std::string>& lines) {
  for (const double usual : {10.0, 25.0, 50.0, 100.0}) {
    if (std::abs(gigabits * 8 - usual) > 1e-6 * usual) continue;
    lines.push_back(doubtful(key + ".bandwidth_gbps is read in Gbit/s: were " +
                             number_text(gigabits) + " GB/s meant (" + number_text(usual) +
                             " Gbit/s)?"));
  }
}

// Warns of a tier. If collectives were measured, the tier summarises them, and need not be a NIC.
void warning_on_tier(const Cluster& cluster, const Tier& tier, std::vector<std::string>& lines) {
  const std::string key = "cluster." + tier.name;
  const bool inside = tier.span <= cluster.gpus_per_node;
  const bool ports_of_nodes = tier.name == "inter";
  const BytesPerSecond each = tier.bandwidth / tier.nics;
  const std::string speed = key + ".bandwidth_gbps: " + number_text(each / kGigabitPerSecond) +
                            " Gbit/s is more than any ";
  if (inside && each > kFastestGpuPort) {
    lines.push_back(doubtful(speed + "GPU's port carries (" +
                             number_text(kFastestGpuPort / kGigabitPerSecond) +
                             "): was Mbit/s meant?"));
  } else if (ports_of_nodes && !cluster.cost_model && each > kFastestNic) {
    lines.push_back(doubtful(speed + "NIC carries (" +
                             number_text(kFastestNic / kGigabitPerSecond) +
                             "): was Mbit/s meant, or is it the sum of several (give nics)?"));
  } else if (ports_of_nodes && !cluster.cost_model) {
    suspect_gigabytes(key, each / tier.efficiency / kGigabitPerSecond, lines);
  }
  if (tier.latency >= kSlowestMessage && (inside || ports_of_nodes)) {
    lines.push_back(key + ".latency_us: " + number_text(tier.latency / kMicrosecond) +
                    " us per message is a wide-area network's: were nanoseconds meant?");
  }
  if (ports_of_nodes && !cluster.cost_model && tier.latency > 0 &&
      tier.latency < kQuickestMessage) {
    const double given = tier.latency / kMicrosecond;
    constexpr double kMicrosecondsAMillisecond = 1000;
    lines.push_back(doubtful(key + ".latency_us: no network takes " + number_text(given) +
                             " us per message between nodes: were milliseconds meant (" +
                             number_text(given * kMicrosecondsAMillisecond) + " us)?"));
  }
}

std::string assumed_overlap(const Overlap& overlap) {
  const std::string slowdown = number_text(100 * overlap.slowdown) + " %";
  if (overlap.collective_slowdown == overlap.slowdown) {
    return "computation and collectives are assumed to slow each other down by " + slowdown +
           " where they overlap, the mean of published measurements "
           "(cluster.device.overlap_slowdown)";
  }
  return "computation is assumed to slow down by " + slowdown +
         " during a collective, which waits " + number_text(overlap.delay / kMillisecond) +
         " ms for a processor, as where ranks leave none idle (cluster.device.overlap_slowdown and "
         "overlap_delay_us; `syncline record` measures them)";
}

// Returns true if the slowdown of computation by collectives, and vice versa, is not given.
bool unknown_overlap(const Cluster& cluster) {
  return cluster.ranks() > 1 && cluster.library == Library::kLinks && !cluster.library_given &&
         !cluster.device.overlap.given && cluster.device.data_parallel_slowdown == 0;
}

void warning_on_cluster(const Cluster& cluster, std::vector<std::string>& lines) {
  const Overlap& overlap = cluster.device.overlap;
  if (overlap.any() && !overlap.given && cluster.ranks() > 1)
    lines.push_back(assumed_overlap(overlap));
  if (unknown_overlap(cluster)) {
    lines.emplace_back(
        "neither cluster.device nor cluster.library says what the ranks are: computation and "
        "collectives are assumed not to slow each other down, which NCCL's do by a fifth or more");
  }
  for (const auto& tier : cluster.tiers) warning_on_tier(cluster, tier, lines);
  if (cluster.topology != nullptr && cluster.cost_model) {
    lines.push_back(
        "cluster.fabric: the calibration is assumed to be measured on it, its hot links included");
  }
  const Device& device = cluster.device;
  if (device.flops > kMaxFlops) {
    lines.push_back(doubtful("cluster.device.tflops: " + number_text(device.flops / 1e12) +
                             " TFLOP/s is more than any device reaches: was GFLOP/s meant?"));
  }
  if (device.memory > kFastestMemory) {
    lines.push_back(doubtful(
        "cluster.device.memory_gbytes_per_s: " + number_text(device.memory / kGigabytePerSecond) +
        " GB/s is more than any memory reaches: was MB/s meant?"));
  }
}

void warning_on_hierarchy(const Strategy& strategy, int ranks, StrategyWarnings& warnings) {
  const auto& hierarchy = strategy.hierarchy;
  const bool one_level = hierarchy.group_size == 1 || hierarchy.group_size == ranks;
  if (hierarchy.form == Hierarchy::Form::kFlat || !one_level) return;
  warnings.add(strategy, "hierarchy with groups of " + std::to_string(hierarchy.group_size) +
                             " of " + std::to_string(ranks) + " ranks has only one level");
}

void warning_on_size(const Strategy& strategy, const Scenario& scenario,
                     StrategyWarnings& warnings) {
  const auto size = static_cast<double>(strategy.fusion.size);
  const auto model = static_cast<double>(gradient_bytes(scenario.workload));
  const dialect::Dialect* dialect = dialect::find_dialect(strategy.dialect);
  const bool meant = dialect != nullptr && strategy.fusion.size <= dialect->one_bucket;
  if (!meant && size > kBeyondModel * std::max(model, static_cast<double>(kSmallModel))) {
    warnings.add(strategy, doubtful("buckets of " + number_text(size / static_cast<double>(kMiB)) +
                                    " MiB are " + number_text(std::round(size / model)) +
                                    " times all gradients together: were bytes written where MiB "
                                    "are read?"));
  }
  for (const auto& value : strategy.suspicious) warnings.add(strategy, doubtful(value));
  for (const auto& note : strategy.notes) {
    if (tells_ignored(note)) warnings.add(strategy, note);
  }
}

// Warns of exchanges of sizes or counts that were not measured. Their costs are extrapolated with
// wide intervals, or by NCCL's model or the links if the calibration lacks them.
void warning_on_measurements(const Strategy& strategy, const Scenario& scenario,
                             StrategyWarnings& warnings) {
  if (!scenario.cluster.cost_model || scenario.cluster.ranks() == 1) return;
  std::size_t all = 0;
  std::size_t beyond = 0;
  std::size_t unknown = 0;
  for (const auto& phase : planned_phases(strategy, {})) {
    const auto plan = plan::make_plan(scenario.workload, scenario.cluster, strategy, phase.point);
    for (const auto& op : plan.ops) {
      const auto* collective = std::get_if<collective::Collective>(&op.work);
      if (collective == nullptr || collective->bytes() == 0) continue;
      const auto answer = scenario.cluster.cost_model(*collective);
      ++all;
      unknown += !answer;
      beyond += answer && !answer->measured;
    }
  }
  const auto of_all = [&](std::size_t count) {
    return (count == all ? "all" : std::to_string(count) + " of " + std::to_string(all)) +
           " collectives ";
  };
  if (beyond > 0) {
    warnings.add(strategy, of_all(beyond) +
                               "leave the sizes or counts that were measured: their times are "
                               "extrapolated, their intervals wide");
  }
  if (unknown > 0) {
    warnings.add(strategy,
                 of_all(unknown) +
                     "are of a kind or algorithm that was not measured: predicted without "
                     "the cluster's calibration");
  }
}

// Warns if later steps differ measurably from a training's first one: one warning for all such
// strategies, with the figures of the largest difference.
void warning_on_first_steps(const Scenario& scenario, StrategyWarnings& warnings) {
  constexpr double kTold = 1.01;
  const auto executor = run::make_model_executor({scenario.cluster, {}, scenario.seed});
  collective::CostCache cache(scenario.cluster);
  const auto step_of = [&](const Strategy& strategy) {
    return evaluate_strategy(scenario, strategy, *executor, cache).metrics.step_time;
  };
  const auto milliseconds = [](Seconds time) {
    return number_text(std::round(time / kMillisecond * 10) / 10) + " ms";
  };
  std::vector<const Strategy*> found;
  const Strategy* most = nullptr;
  Seconds most_whole = 0, most_later = 0;  // times of `most`
  for (const Strategy& strategy : scenario.strategies) {
    if (!strategy.traits.whole_first_step || scenario.cluster.ranks() == 1) continue;
    Strategy first = strategy;
    set_fusion(first, {});
    first.fusion.rule = Fusion::Rule::kOne;
    if (first.compression.rampup_begin_step > 0) first.compression = {};
    const Seconds whole = step_of(first);
    const Seconds later = step_of(strategy);
    if (whole < later * kTold) continue;
    if (found.empty() || whole / later > most_whole / most_later) {
      most_whole = whole;
      most_later = later;
      most = &strategy;
    }
    found.push_back(&strategy);
  }
  const bool several = found.size() > 1;
  for (const Strategy* strategy : found) {
    warnings.add(*strategy, "the first step sums all gradients in one bucket (" +
                                std::string(several ? "up to " : "") + milliseconds(most_whole) +
                                " instead of " + milliseconds(most_later) +
                                (several ? " in '" + most->name + "'" : "") +
                                "); predictions are for later steps, so leave the first out when "
                                "you measure");
  }
}

// Warns of gradients without shapes that a low-rank codec compresses.
void warning_on_shapes(const Strategy& strategy, const Workload& workload,
                       StrategyWarnings& warnings) {
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  if (codec == nullptr || !codec->low_rank || compress::shapes_known(workload)) return;
  warnings.add(strategy,
               "no gradient has a shape of two dimensions, so each counts as nearly a square for " +
                   std::string(codec->name));
}

// Warns of ranks that wait for the slowest block of ranks.
void warning_on_speeds(const Strategy& strategy, const Cluster& cluster,
                       StrategyWarnings& warnings) {
  constexpr double kFew = 0.05;
  const std::vector<double> times = plan::block_times(cluster, strategy.local_sgd);
  const double idle = 1 - mean(times) / std::ranges::max(times);
  if (cluster.ranks() == 1 || idle < kFew) return;
  std::string line = "ranks wait for the slowest ones: on the mean rank " +
                     std::to_string(std::lround(100 * idle)) + " % of the time to compute";
  if (strategy.local_sgd.outer.any()) {
    line += "; local_sgd.periods gives each block of ranks its own steps";
  }
  warnings.add(strategy, line);
}

// Warns that a strategy is priced by times that were measured under another scheme.
void warning_on_scheme(const Strategy& strategy, const Scenario& scenario,
                       StrategyWarnings& warnings) {
  if (scenario.cluster.ranks() == 1 || !measured_under_another_scheme(scenario, strategy)) return;
  const std::string baseline = "'" + scenario.baseline + "'";
  warnings.add(strategy, holds_shards(strategy)
                             ? "computation is timed as in " + baseline +
                                   ", without the copies and hooks of sharded parameters"
                             : "computation is timed as in " + baseline +
                                   ", whose copies and hooks of sharded parameters it may include: "
                                   "`record` this strategy's own job to leave them out");
}

// Notes the assumed figures of an offload.
void warning_on_offload(const Strategy& strategy, const Device& device,
                        StrategyWarnings& warnings) {
  if (strategy.offload == Strategy::Offload::kNone) return;
  constexpr Seconds kNanosecond = 1e-9;
  std::string line;
  if (states_on_host(strategy)) {
    line = "the host's processors take " + number_text(host_update(device) / kNanosecond) +
           " ns to update a parameter, all of a node together";
    if (device.host_update == 0) {
      line += ", a guess between published times of " +
              number_text(kHostUpdateLeast / kNanosecond) + " and " +
              number_text(kHostUpdateMost / kNanosecond) + " (cluster.device.host_update_ns)";
    }
    line += "; ";
  }
  warnings.add(strategy, line + "transfers between a device and the host's memory run at " +
                             number_text(host_link(device) / kGigabytePerSecond) +
                             " GB/s (cluster.device.host_link_gbytes_per_s), and no pass hides "
                             "them");
}

void warning_on_strategies(const Scenario& scenario, std::vector<std::string>& lines) {
  const int ranks = scenario.cluster.ranks();
  StrategyWarnings warnings;
  for (const auto& strategy : scenario.strategies) {
    if (uses_nccl(strategy) && ranks > 1) warnings.add(strategy, nccl_warning(scenario.cluster));
    if (!strategy.compression.codec.empty() && scenario.cluster.device.memory == 0) {
      warnings.add(strategy,
                   "cluster.device.memory_gbytes_per_s is not given, encoding costs nothing");
    }
    warning_on_shapes(strategy, scenario.workload, warnings);
    warning_on_hierarchy(strategy, ranks, warnings);
    const LocalSgd& local = strategy.local_sgd;
    warning_on_speeds(strategy, scenario.cluster, warnings);
    warning_on_offload(strategy, scenario.cluster.device, warnings);
    warning_on_scheme(strategy, scenario, warnings);
    if (local.enabled && local.period == 1 && !local.adaptive) {
      warnings.add(strategy, "local_sgd with period 1 averages parameters after every step");
    }
    if (const auto uncertainty = memory_uncertainty(scenario, strategy))
      warnings.add(strategy, *uncertainty);
    warning_on_size(strategy, scenario, warnings);
    warning_on_measurements(strategy, scenario, warnings);
  }
  warning_on_first_steps(scenario, warnings);
  warnings.append_to(lines);
}

// Warns if NCCL runs some strategies and others have an algorithm: rows of another network.
void warning_on_networks(const Scenario& scenario, std::vector<std::string>& lines) {
  if (scenario.cluster.library != Library::kNccl || scenario.cluster.ranks() == 1) return;
  std::vector<std::string> nccl, links;
  for (const auto& strategy : scenario.strategies) {
    (uses_nccl(strategy) ? nccl : links).push_back(strategy.name);
  }
  if (nccl.empty() || links.empty()) return;
  lines.push_back(names_text(nccl) + (nccl.size() == 1 ? " is" : " are") +
                  " predicted by NCCL's model, and " + names_text(links) + " on the links by " +
                  (links.size() == 1 ? "an algorithm of its own" : "algorithms of their own") +
                  ": part of what lies between them is the network's. \"algorithm\": \"nccl\" "
                  "compares them");
}

// Warns of backward_ms with backward_us, which keeps the waits' proportions and changes their sum.
// This adapts a file's model to another device; if both are in the scenario, one is a leftover.
std::optional<std::string> stretched_total(const input::Document& document) {
  const Json& workload = document.root.at("workload");
  if (!document.workload_file.empty() || !workload.contains("backward_ms")) return std::nullopt;
  double sum = 0;
  for (const auto& tensor : workload.value("tensors", Json::array())) {
    sum += tensor.value("backward_us", 0.0) * kMicrosecond;
  }
  const double total = workload["backward_ms"].get<double>() * kMillisecond;
  constexpr double kRounding = 0.01;
  if (sum == 0 || std::abs(total - sum) <= kRounding * sum) return std::nullopt;
  return "the gradients' backward_us add up to " + number_text(sum / kMillisecond) +
         " ms, and are stretched to backward_ms, " + number_text(total / kMillisecond) + " ms";
}

// Returns a note on hardware by name: its figures are rated ones, with assumed shares.
std::optional<std::string> named_hardware(const input::Document& document,
                                          const Scenario& scenario) {
  const Json& cluster = document.root.at("cluster");
  if (!cluster.is_object()) return std::nullopt;
  const Json node = cluster.value("node", Json());
  const Json device = cluster.value("device", Json());
  const Json base = device.is_object() ? device.value("base", Json()) : device;
  const bool share_given = device.is_object() && device.contains("efficiency");
  if (node.is_null() && (base.is_null() || share_given)) return std::nullopt;
  std::string text = node.is_null()
                         ? "cluster.device " + plain_text(base) + ": "
                         : "cluster.node " + plain_text(node) + ": links as rated, latencies";
  if (!share_given) {
    const int capability = scenario.cluster.device.compute_capability;
    text += std::string(node.is_null() ? "" : " and ") +
            "the reached shares of the device's rates (" + number_text(hardware::kReachedFlops) +
            " in fp32, " + number_text(hardware::reached_half_flops(capability)) +
            " in half precision, " + number_text(hardware::kReachedMemory) + " of memory)";
  }
  return text + " are assumed: give your own, or measure them (syncline calibrate)";
}

// Warns of figures that contradict a node or a device given by name.
void suspect_names(const input::Document& document, const Scenario& scenario,
                   std::vector<std::string>& lines) {
  const Json& cluster = document.root.at("cluster");
  if (!cluster.is_object()) return;
  const hardware::KnownNode* node = hardware::find_node(cluster.value("node", ""));
  if (node != nullptr && scenario.cluster.gpus_per_node > node->gpus) {
    lines.push_back(doubtful("cluster.gpus_per_node is " +
                             std::to_string(scenario.cluster.gpus_per_node) + ", and a " +
                             std::string(node->name) + " has " + std::to_string(node->gpus)));
  }
  const Json device = cluster.value("device", Json());
  if (!device.is_object() || !device.contains("name")) return;
  const std::string base =
      device.value("base", node != nullptr ? std::string(node->device) : std::string());
  const hardware::KnownDevice* evaluated = hardware::find_device(base);
  const std::string name = device["name"].get<std::string>();
  if (evaluated == nullptr || !hardware::contradicts(name, *evaluated)) return;
  lines.push_back(doubtful("cluster.device.name is '" + name + "', and the figures are those of " +
                           base + ": a name is a label (\"base\": \"" +
                           std::string(hardware::recognise_device(name)->name) +
                           "\" takes the figures of that device)"));
}

// Returns the text without digits, to recognise a warning at another sweep point.
std::string without_numbers(const std::string& text) {
  std::string form = text;
  std::erase_if(form, [](unsigned char letter) { return std::isdigit(letter) || letter == '.'; });
  return form;
}

}  // namespace

std::vector<std::string> warnings_of(const Scenario& scenario) {
  std::vector<std::string> lines;
  warning_on_workload(scenario, lines);
  warning_on_cluster(scenario.cluster, lines);
  warning_on_networks(scenario, lines);
  warning_on_strategies(scenario, lines);
  return lines;
}

std::vector<std::string> warnings_of(
    const input::Document& document, const Scenario& scenario, const Sweep& sweep,
    const std::function<bool()>& interrupted,
    const std::function<void(std::size_t, std::size_t)>& progress) {
  struct SeenLine {
    std::string form;
    std::string line;
    SweepPoint first;
    std::size_t last;  // the last point at which it holds, by its index
    std::size_t points = 1;
    bool varies = false;  // its numbers vary
  };
  std::vector<SeenLine> seen;
  const input::Document each = without_sweep(document);
  const std::size_t points = sweep.size();
  for (std::size_t i = 0; i < points && !interrupted(); ++i) {
    const SweepPoint point = sweep.point(i);
    const Scenario here = point.empty() ? scenario : at_point(each, point);
    std::vector<std::string> lines_here = warnings_of(here);
    const bool named_here = std::ranges::none_of(point, [](const auto& set) {
      return set.first == "cluster" || set.first == "cluster.node" ||
             set.first.starts_with("cluster.device");
    });
    if (named_here) suspect_names(document, here, lines_here);
    for (const auto& line : lines_here) {
      const std::string form = without_numbers(line);
      // A form occurs several times at one point if strategies differ by a number in their names.
      const auto known = std::ranges::find_if(
          seen, [&](const SeenLine& other) { return other.form == form && other.last != i; });
      if (known == seen.end()) {
        seen.push_back({form, line, point, i});
        continue;
      }
      known->varies |= line != known->line;
      ++known->points;
      known->last = i;
    }
    progress(i + 1, points);
  }
  std::vector<std::string> lines;
  if (const auto notes = document.root.find("notes"); notes != document.root.end()) {
    for (const Json& note : *notes) lines.push_back(note.get<std::string>());
  }
  if (auto line = named_hardware(document, scenario)) lines.push_back(std::move(*line));
  if (auto line = stretched_total(document)) lines.push_back(std::move(*line));
  for (auto& warning : seen) {
    if (warning.points < points) {
      warning.line += " (at " + std::to_string(warning.points) + " of " + std::to_string(points) +
                      " sweep points, first at " + point_text(warning.first) + ")";
    } else if (warning.varies) {
      warning.line += " (as at " + point_text(warning.first) + "; other sweep points differ)";
    }
    lines.push_back(std::move(warning.line));
  }
  std::stable_partition(lines.begin(), lines.end(),
                        [](const auto& line) { return line.starts_with(kDoubtful); });
  return lines;
}

bool tells_ignored(std::string_view note) {
  return note.find("no effect") != note.npos || note.find(" is ignored") != note.npos;
}

std::vector<std::string> strategy_notes(const std::vector<Strategy>& strategies,
                                        std::size_t least) {
  StrategyWarnings notes;
  for (const Strategy& strategy : strategies) {
    for (const auto& note : strategy.notes) {
      if (!tells_ignored(note)) notes.add(strategy, note);
    }
  }
  std::vector<std::string> lines;
  notes.append_to(lines, least);
  return lines;
}

std::vector<std::string> take_suspicious(std::vector<std::string>& warnings) {
  std::vector<std::string> suspicious;
  std::erase_if(warnings, [&](const std::string& warning) {
    if (!warning.starts_with(kDoubtful)) return false;
    suspicious.push_back(warning.substr(kDoubtful.size()));
    return true;
  });
  return suspicious;
}

}  // namespace syncline::measure
