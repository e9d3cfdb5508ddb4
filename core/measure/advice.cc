#include "core/measure/advice.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/collective/library.h"
#include "core/compress/codec.h"
#include "core/dialect/changes.h"
#include "core/dialect/write.h"
#include "core/error.h"
#include "core/input/knobs.h"
#include "core/input/parts.h"
#include "core/json/reader.h"
#include "core/measure/study.h"
#include "core/statistics.h"

namespace syncline::measure {
namespace {

// Candidates of one kind: only the best of them is reported.
struct Kind {
  dialect::ChangeKind kind = dialect::ChangeKind::kFusion;
  std::vector<Change> candidates;
};

Kind fusion_changes(const Strategy& strategy) {
  Kind kind;
  for (const int mebibytes : {1, 2, 4, 8, 16, 32, 64}) {
    Strategy changed = strategy;
    changed.fusion = Fusion{};
    changed.fusion.rule = Fusion::Rule::kSize;
    changed.fusion.size = mebibytes * kMiB;
    changed.fusion.align = strategy.fusion.align;
    changed.fusion.to_fp32 = strategy.fusion.to_fp32;
    changed.partition = 0;  // parts are made of gradients that travel alone
    // Ticks are the framework's: they stay, with their packing.
    changed.fusion.cycle = strategy.fusion.cycle;
    if (changed.fusion.cycle > 0) changed.fusion.close = Fusion::Close::kBefore;
    kind.candidates.push_back({"fuse gradients up to " + std::to_string(mebibytes) +
                                   " MiB (fusion: rule size, size_mb " + std::to_string(mebibytes) +
                                   ")",
                               changed});
  }
  if (strategy.fusion.cycle > 0) return kind;
  Strategy alone = strategy;
  alone.fusion = Fusion{};
  kind.candidates.push_back({"send each gradient by itself (fusion: rule none)", alone});
  return kind;
}

Kind copy_changes(const Strategy& strategy) {
  Kind kind;
  kind.kind = dialect::ChangeKind::kCopies;
  if (!strategy.bucket_copies) return kind;
  Strategy changed = strategy;
  changed.bucket_copies = false;
  kind.candidates.push_back({"keep gradients in their buckets (bucket_copies: false)", changed});
  return kind;
}

Kind stream_changes(const Strategy& strategy) {
  Kind kind;
  kind.kind = dialect::ChangeKind::kStreams;
  if (!strategy.overlap) {
    Strategy changed = strategy;
    changed.overlap = true;
    kind.candidates.push_back({"communicate during the backward pass (overlap: true)", changed});
    return kind;
  }
  for (const int streams : {2, 3, 4}) {
    if (streams <= strategy.streams) continue;
    Strategy changed = strategy;
    changed.streams = streams;
    kind.candidates.push_back({"use " + std::to_string(streams) +
                                   " communication streams (streams: " + std::to_string(streams) +
                                   ")",
                               changed});
  }
  return kind;
}

Kind hierarchy_changes(const Strategy& strategy, const Cluster& cluster) {
  Kind kind;
  kind.kind = dialect::ChangeKind::kHierarchy;
  const int group = cluster.gpus_per_node;
  if (cluster.nodes < 2 || group < 2 || strategy.hierarchy.form != Hierarchy::Form::kFlat ||
      strategy.exchange != Strategy::Exchange::kAllReduce || strategy.local_sgd.subgroup > 1) {
    return kind;
  }
  for (const bool sharded : {true, false}) {
    Strategy changed = strategy;
    changed.algorithm = collective::library_algorithm(cluster);
    changed.hierarchy = Hierarchy{};
    changed.hierarchy.form = sharded ? Hierarchy::Form::kSharded : Hierarchy::Form::kLeaders;
    changed.hierarchy.group_size = group;
    kind.candidates.push_back(
        {std::string("all-reduce in two levels, inside each node and across (hierarchy: form ") +
             (sharded ? "sharded)" : "leaders)"),
         changed});
  }
  return kind;
}

Kind algorithm_changes(const Strategy& strategy, const Cluster& cluster) {
  Kind kind;
  kind.kind = dialect::ChangeKind::kAlgorithm;
  // A library that is known chooses by itself.
  if (cluster.library != Library::kLinks) return kind;
  if (strategy.hierarchy.form != Hierarchy::Form::kFlat) return kind;
  for (const auto& algorithm : collective::algorithms()) {
    if (algorithm.name == strategy.algorithm) continue;
    if (!algorithm.fits(collective::CollectiveKind::kAllReduce, cluster.ranks())) continue;
    const bool halves =
        algorithm.fits(collective::CollectiveKind::kReduceScatter, cluster.ranks()) &&
        algorithm.fits(collective::CollectiveKind::kAllGather, cluster.ranks());
    if (strategy.exchange != Strategy::Exchange::kAllReduce && !halves) continue;
    Strategy changed = strategy;
    changed.algorithm = algorithm.name;
    kind.candidates.push_back({"all-reduce by " + std::string(algorithm.name) +
                                   " (algorithm: " + std::string(algorithm.name) + ")",
                               changed});
  }
  return kind;
}

// Gradients are summed whole, in their own format, at every step.
bool sums_all(const Strategy& strategy) {
  return strategy.compression.codec.empty() && !strategy.local_sgd.enabled &&
         strategy.exchange != Strategy::Exchange::kSharded;
}

// DGC leaves small gradients and those in 16 bits alone, PowerSGD vectors.
bool encodes_nothing(const Strategy& strategy, const Workload& workload) {
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  return codec != nullptr &&
         std::none_of(workload.tensors.begin(), workload.tensors.end(), [&](const Tensor& tensor) {
           return codec->applies(tensor, strategy.compression.min_elements);
         });
}

Kind rounding_changes(const Strategy& strategy, const Workload& workload, const Cluster& cluster) {
  Kind kind;
  kind.kind = dialect::ChangeKind::kRounding;
  const auto short_already = [](const Tensor& tensor) {
    return size_of(tensor.dtype) <= size_of(DType::kFp16);
  };
  const auto& tensors = workload.tensors;
  if (!sums_all(strategy) || std::all_of(tensors.begin(), tensors.end(), short_already)) {
    return kind;
  }
  for (const char* codec : {"fp16", "bf16"}) {
    if (codec == std::string("bf16") && !dialect::has_bf16(cluster)) continue;
    Strategy changed = strategy;
    changed.compression.codec = codec;
    kind.candidates.push_back(
        {"send gradients in half precision (compression: codec " + std::string(codec) + ")",
         changed});
  }
  return kind;
}

Kind compression_changes(const Strategy& strategy, const Cluster& cluster) {
  Kind kind;
  kind.kind = dialect::ChangeKind::kCompression;
  // Neither a sparse exchange nor one of factors has halves.
  if (!sums_all(strategy) || strategy.exchange != Strategy::Exchange::kAllReduce) return kind;
  Strategy sparse = strategy;
  sparse.compression.codec = "dgc";
  kind.candidates.push_back({"send 0.1 % of each large gradient (compression: codec dgc)", sparse});
  if (cluster.device.flops == 0) return kind;  // what its products take is not known
  constexpr int kRank = 4;
  Strategy factored = strategy;
  factored.compression.codec = "powersgd";
  factored.compression.rank = kRank;
  // torch's hook waits for the device at each bucket.
  if (cluster.library == Library::kNccl) {
    factored.overlap = false;
    factored.streams = 1;
  }
  kind.candidates.push_back({"send factors of each matrix (compression: codec powersgd, rank " +
                                 std::to_string(kRank) + ")",
                             factored});
  return kind;
}

// As many steps for each block of ranks as its speed allows, with the same mean.
std::vector<std::int64_t> periods_by_speed(const std::vector<double>& speeds, std::int64_t period) {
  std::vector<std::int64_t> periods;
  double speed = 0;
  std::int64_t steps = 0;
  for (const double own : speeds) {
    speed += own / mean(speeds);
    periods.push_back(std::lround(speed * static_cast<double>(period)) - steps);
    steps += periods.back();
  }
  return periods;
}

Kind averaging_changes(const Strategy& strategy, const Scenario& scenario) {
  Kind kind;
  kind.kind = dialect::ChangeKind::kAveraging;
  if (const auto& speeds = scenario.cluster.speeds; !speeds.empty()) {
    Strategy changed = strategy;
    LocalSgd& local = changed.local_sgd;
    local.periods = periods_by_speed(speeds, local.period);
    if (local.enabled && !input::conflict_of(changed, scenario.workload, scenario.cluster)) {
      std::string list;
      for (const std::int64_t each : local.periods) {
        list += (list.empty() ? "" : ", ") + std::to_string(each);
      }
      kind.candidates.push_back(
          {"let faster ranks take more steps (local_sgd: periods [" + list + "])", changed});
    }
  }
  if (!sums_all(strategy) || strategy.cross_step ||
      strategy.exchange != Strategy::Exchange::kAllReduce) {
    return kind;
  }
  Strategy changed = strategy;
  changed.fusion.cycle = 0;
  changed.local_sgd.enabled = true;
  changed.local_sgd.period = 4;
  kind.candidates.push_back({"average parameters every 4 steps (local_sgd: period 4)", changed});
  return kind;
}

// The same kinds of change in the keys of the dialect in which the strategy is written.
std::vector<Change> said_changes(dialect::ChangeKind kind, const Scenario& scenario,
                                 const Json& written) {
  std::vector<Change> candidates;
  const dialect::Dialect* dialect = dialect::find_dialect(written.value("dialect", ""));
  if (dialect == nullptr || dialect->changes == nullptr) return candidates;
  const Json config = written.value("config", Json::object());
  const bool as_documents = written.value("read_as", "code") == "documents";
  for (const auto& change : dialect->changes(config, exchanging(scenario))) {
    if (change.kind != kind) continue;
    const std::string text = dialect::change_text(*dialect, config, change.patch);
    if (text.empty()) continue;
    Json changed = config;
    changed.merge_patch(change.patch);
    try {
      dialect::Reading reading = dialect::reading_of(
          *dialect, changed, scenario.workload, scenario.cluster,
          {.as_documents = as_documents, .algorithm = written.value("algorithm", "")});
      candidates.push_back({text, std::move(reading.strategy), std::move(changed)});
    } catch (const InputError&) {
      // The framework refuses this beside the other keys: nothing to advise.
    }
  }
  return candidates;
}

// Our own words for a strategy of a dialect: what they are there, or that there are none.
std::string in_words_of(const std::string& change, const Strategy& changed,
                        const Scenario& scenario, std::string_view dialect) {
  constexpr std::size_t kLongest = 200;
  const dialect::Dialect& row = *dialect::find_dialect(dialect);
  std::optional<dialect::Written> found;
  try {
    found = dialect::write_config(row, changed, scenario.workload, scenario.cluster);
  } catch (const InputError&) {
    // The framework refuses whatever might say it.
  }
  // The algorithm stands beside a configuration, not in it.
  if (!found || !found->exact || !found->algorithm.empty()) {
    const bool applied = row.apply_refusal != nullptr &&
                         row.apply_refusal(changed, scenario.workload, scenario.cluster).empty();
    const std::string name(dialect);
    return change + (applied ? ", in " + name + " by the file that syncline emit --python writes"
                             : ", which cannot be written in " + name);
  }
  const std::string config = dialect::config_text(row, found->config);
  return change + ", in " + std::string(dialect) + " " +
         (config.size() <= kLongest ? config : "what syncline emit writes");
}

// The best of some candidates, if it gains `least_percent` and more than `gain_before`.
class Chooser {
 public:
  Chooser(const Scenario& scenario, const Strategy& strategy, run::Executor& executor,
          collective::CostCache& cache)
      : scenario_(scenario),
        strategy_(strategy),
        executor_(executor),
        cache_(cache),
        now_(step_time(strategy)) {}

  std::optional<Advice> best(const std::vector<Change>& candidates, double least_percent) {
    std::optional<Advice> best;
    for (const auto& candidate : candidates) {
      const Seconds then = step_time(candidate.strategy);
      const double gain = 100 * (1 - then / now_);
      if (gain < least_percent || (best && gain <= best->gain_percent)) continue;
      best = Advice{candidate.text, candidate.strategy, then, gain,
                    training_beside(candidate.strategy, strategy_)};
    }
    return best;
  }

 private:
  Seconds step_time(const Strategy& strategy) {
    return evaluate_strategy(scenario_, strategy, executor_, cache_).metrics.step_time;
  }

  const Scenario& scenario_;
  const Strategy& strategy_;
  run::Executor& executor_;
  collective::CostCache& cache_;
  Seconds now_;
};

// Each of Paddle's switches that is off, where the workload's operators tell what it would match.
Kind compute_changes(const Workload& workload, const Strategy& strategy) {
  Kind kind;
  kind.kind = dialect::ChangeKind::kCompute;
  if (workload.operators.empty()) return kind;
  struct Switch {
    const char* name;
    bool ComputeFusion::*knob;
  };
  for (const Switch& one :
       {Switch{"fuse_relu_depthwise_conv", &ComputeFusion::fuse_relu_depthwise_conv},
        Switch{"fuse_bn_act_ops", &ComputeFusion::fuse_bn_act_ops},
        Switch{"fuse_bn_add_act_ops", &ComputeFusion::fuse_bn_add_act_ops},
        Switch{"fuse_gemm_epilogue", &ComputeFusion::fuse_gemm_epilogue},
        Switch{"fuse_elewise_add_act_ops", &ComputeFusion::fuse_elewise_add_act_ops},
        Switch{"fuse_all_optimizer_ops", &ComputeFusion::fuse_all_optimizer_ops}}) {
    if (strategy.compute_fusion.*one.knob) continue;
    Strategy changed = strategy;
    changed.compute_fusion.*one.knob = true;
    if (one.knob == &ComputeFusion::fuse_all_optimizer_ops) {
      changed.update = Strategy::Update::kAfterAll;
    }
    kind.candidates.push_back(
        {"fuse operators (compute_fusion: " + std::string(one.name) + ")", changed});
  }
  return kind;
}

}  // namespace

std::string_view word_of(TrainingChange training) {
  switch (training) {
    case TrainingChange::kSame:
      return "same";
    case TrainingChange::kRounded:
      return "rounded";
    case TrainingChange::kChanged:
      break;
  }
  return "changed";
}

TrainingChange training_beside(const Strategy& strategy, const Strategy& base) {
  const std::string& codec = strategy.compression.codec;
  const compress::Codec* row = compress::find_codec(codec);
  // What the base casts to fp32 for its sums is rounded in each of them.
  const bool narrows = base.fusion.to_fp32 && !strategy.fusion.to_fp32;
  const TrainingChange sums = narrows ? TrainingChange::kRounded : TrainingChange::kSame;
  const bool rounds = row != nullptr && !row->sparse && !row->low_rank;
  const bool alike =
      rounds ? codec == base.compression.codec : strategy.compression == base.compression;
  if (!input::changes_training(strategy)) return sums;
  if (!(strategy.local_sgd == base.local_sgd)) return TrainingChange::kChanged;
  if (alike) return sums;
  return rounds ? TrainingChange::kRounded : TrainingChange::kChanged;
}

std::vector<Change> training_changes(const Scenario& scenario, const Strategy& strategy,
                                     const Json* written) {
  std::vector<Change> changes;
  if (scenario.cluster.ranks() == 1) return changes;
  for (Kind& kind :
       std::vector<Kind>{rounding_changes(strategy, scenario.workload, exchanging(scenario)),
                         compression_changes(strategy, exchanging(scenario)),
                         averaging_changes(strategy, scenario)}) {
    if (kind.candidates.empty()) continue;  // used up, or of no use here
    if (!strategy.dialect.empty() && written != nullptr) {
      for (auto& said : said_changes(kind.kind, scenario, *written)) {
        changes.push_back(std::move(said));
      }
    }
    for (auto& ours : kind.candidates) changes.push_back(std::move(ours));
  }
  std::erase_if(changes, [&](const Change& change) {
    return input::conflict_of(change.strategy, scenario.workload, scenario.cluster) ||
           encodes_nothing(change.strategy, scenario.workload) ||
           training_beside(change.strategy, strategy) == TrainingChange::kSame;
  });
  return changes;
}

std::vector<Advice> advise(const Scenario& scenario, const Strategy& strategy,
                           run::Executor& executor, collective::CostCache& cache,
                           double least_percent, const Json* written) {
  std::vector<Advice> advice;
  std::vector<Kind> kinds{compute_changes(scenario.workload, strategy)};
  if (scenario.cluster.ranks() > 1) {
    for (Kind& kind : std::vector<Kind>{
             fusion_changes(strategy), copy_changes(strategy), stream_changes(strategy),
             hierarchy_changes(strategy, exchanging(scenario)),
             algorithm_changes(strategy, scenario.cluster),
             rounding_changes(strategy, scenario.workload, exchanging(scenario)),
             compression_changes(strategy, exchanging(scenario)),
             averaging_changes(strategy, scenario)}) {
      kinds.push_back(std::move(kind));
    }
  }
  Chooser chooser(scenario, strategy, executor, cache);
  for (const Kind& kind : kinds) {
    double least = least_percent;
    if (!strategy.dialect.empty() && written != nullptr) {
      const auto candidates = said_changes(kind.kind, scenario, *written);
      if (auto said = chooser.best(candidates, least)) {
        least += said->gain_percent;
        advice.push_back(std::move(*said));
      }
    }
    auto ours = chooser.best(kind.candidates, least);
    if (!ours) continue;
    if (!strategy.dialect.empty()) {
      ours->change = in_words_of(ours->change, ours->strategy, scenario, strategy.dialect);
    }
    advice.push_back(std::move(*ours));
  }
  std::stable_sort(advice.begin(), advice.end(), [](const Advice& a, const Advice& b) {
    return a.gain_percent > b.gain_percent;
  });
  return advice;
}

}  // namespace syncline::measure
