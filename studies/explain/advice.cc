#include "studies/explain/advice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/statistics.h"
#include "core/codec.h"
#include "core/collective/library.h"
#include "core/plan/pipeline.h"
#include "formats/dialect/changes.h"
#include "formats/dialect/paddle.h"
#include "formats/dialect/pytorch_apply.h"
#include "formats/dialect/write.h"
#include "formats/input/conflicts.h"
#include "formats/input/knobs.h"
#include "formats/input/scenario_json.h"
#include "formats/json/reader.h"
#include "studies/rows/fitting.h"
#include "studies/study/study.h"

namespace syncline::measure {
namespace {

// Candidates of one kind: only the best of them is reported.
using Candidates = std::pair<dialect::ChangeKind, std::vector<Change>>;

// Returns the strategy with a part of it set otherwise.
template <typename Set>
Change changed(std::string text, const Strategy& strategy, const Set& set) {
  Change change{std::move(text), strategy};
  set(change.strategy);
  return change;
}

// Returns a fusion without a rule that pads and sums gradients as `own` does.
Fusion without_rule(const Fusion& own) {
  Fusion fusion;
  fusion.align = own.align;
  fusion.sum_format = own.sum_format;
  return fusion;
}

std::vector<Change> fusion_changes(const Strategy& strategy) {
  std::vector<Change> candidates;
  for (const int mebibytes : {1, 2, 4, 8, 16, 32, 64}) {
    Strategy changed = strategy;
    set_fusion(changed, without_rule(strategy.fusion));
    changed.fusion.rule = Fusion::Rule::kSize;
    changed.fusion.size = mebibytes * kMiB;
    changed.partition = 0;  // parts are made of gradients that travel alone
    // Ticks are the framework's: they stay, with their packing.
    changed.fusion.cycle = strategy.fusion.cycle;
    if (changed.fusion.cycle > 0) changed.fusion.close = Fusion::Close::kBefore;
    candidates.push_back({"fuse gradients up to " + std::to_string(mebibytes) + " MiB", changed});
  }
  if (strategy.fusion.cycle > 0) return candidates;
  candidates.push_back(changed("send each gradient by itself", strategy,
                               [](Strategy& own) { set_fusion(own, without_rule(own.fusion)); }));
  return candidates;
}

std::vector<Change> copy_changes(const Strategy& strategy) {
  if (!strategy.bucket_copies) return {};
  return {changed("keep gradients in their buckets", strategy,
                  [](Strategy& own) { own.bucket_copies = false; })};
}

std::vector<Change> stream_changes(const Strategy& strategy) {
  if (!strategy.overlap) {
    return {changed("communicate during the backward pass", strategy,
                    [](Strategy& own) { own.overlap = true; })};
  }
  std::vector<Change> candidates;
  for (const int streams : {2, 3, 4}) {
    if (streams <= strategy.streams) continue;
    const std::string number = std::to_string(streams);
    candidates.push_back(changed("use " + number + " communication streams", strategy,
                                 [&](Strategy& own) { own.streams = streams; }));
  }
  return candidates;
}

// Returns the sum in the last micro-batch alone. A framework's job has its own words for that.
std::vector<Change> accumulation_changes(const Strategy& strategy, const Workload& workload) {
  const bool several = strategy.each_micro_batch && workload.micro_batches > 1;
  if (!several || !strategy.dialect.empty() || strategy.traits.fetches.any()) return {};
  return {changed("sum gradients in the last micro-batch alone", strategy,
                  [](Strategy& own) { own.each_micro_batch = false; })};
}

std::vector<Change> hierarchy_changes(const Strategy& strategy, const Cluster& cluster) {
  std::vector<Change> candidates;
  const int group = cluster.gpus_per_node;
  if (cluster.nodes < 2 || group < 2 || strategy.hierarchy.form != Hierarchy::Form::kFlat ||
      strategy.exchange != Strategy::Exchange::kAllReduce || strategy.local_sgd.subgroup > 1) {
    return candidates;
  }
  for (const auto form : {Hierarchy::Form::kSharded, Hierarchy::Form::kLeaders}) {
    Strategy changed = strategy;
    changed.algorithm = collective::library_algorithm(cluster);
    changed.hierarchy = Hierarchy{};
    changed.hierarchy.form = form;
    changed.hierarchy.group_size = group;
    candidates.push_back({"all-reduce in two levels, inside each node and across", changed});
  }
  return candidates;
}

std::vector<Change> algorithm_changes(const Strategy& strategy, const Cluster& cluster) {
  std::vector<Change> candidates;
  // A library that is known chooses by itself.
  if (cluster.library != Library::kLinks) return candidates;
  if (strategy.hierarchy.form != Hierarchy::Form::kFlat) return candidates;
  for (const auto& algorithm : collective::algorithms()) {
    if (algorithm.name == strategy.algorithm) continue;
    if (!algorithm.fits(collective::CollectiveKind::kAllReduce, cluster.ranks())) continue;
    const bool halves =
        algorithm.fits(collective::CollectiveKind::kReduceScatter, cluster.ranks()) &&
        algorithm.fits(collective::CollectiveKind::kAllGather, cluster.ranks());
    if (strategy.exchange != Strategy::Exchange::kAllReduce && !halves) continue;
    const std::string name(algorithm.name);
    candidates.push_back(
        changed("all-reduce by " + name, strategy, [&](Strategy& own) { own.algorithm = name; }));
  }
  return candidates;
}

// Returns true if gradients are summed whole, in their own format, at every step.
bool sums_all(const Strategy& strategy) {
  return strategy.compression.codec.empty() && !strategy.local_sgd.enabled &&
         strategy.exchange != Strategy::Exchange::kSharded;
}

// Returns true if no gradient is encoded: DGC skips small and 16-bit ones, PowerSGD vectors.
bool encodes_nothing(const Strategy& strategy, const Workload& workload) {
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  return codec != nullptr && std::ranges::none_of(workload.tensors, [&](const Tensor& tensor) {
           return codec->applies(tensor, strategy.compression.min_elements);
         });
}

std::vector<Change> rounding_changes(const Strategy& strategy, const Workload& workload,
                                     const Cluster& cluster) {
  std::vector<Change> candidates;
  const auto short_already = [](const Tensor& tensor) {
    return size_of(tensor.dtype) <= size_of(DType::kFp16);
  };
  if (!sums_all(strategy) || std::ranges::all_of(workload.tensors, short_already)) return {};
  for (const std::string codec : {"fp16", "bf16"}) {
    if (codec == "bf16" && !dialect::has_bf16(cluster)) continue;
    candidates.push_back(changed("send gradients in half precision, " + codec, strategy,
                                 [&](Strategy& own) { own.compression.codec = codec; }));
  }
  return candidates;
}

std::vector<Change> compression_changes(const Strategy& strategy, const Workload& workload,
                                        const Cluster& cluster) {
  // Neither a sparse exchange nor one of factors has halves.
  if (!sums_all(strategy) || strategy.exchange != Strategy::Exchange::kAllReduce) return {};
  std::vector<Change> candidates;
  if (!dialect::dgc_lacks_momentum(workload)) {
    candidates.push_back(changed("send 0.1 % of each large gradient", strategy,
                                 [](Strategy& own) { own.compression.codec = "dgc"; }));
  }
  if (cluster.device.flops == 0) return candidates;  // the time of its products is not known
  constexpr int kRank = 4;
  Strategy factored = strategy;
  factored.compression.codec = "powersgd";
  factored.compression.rank = kRank;
  // torch's hook waits for the device at each bucket.
  if (cluster.library == Library::kNccl) {
    factored.overlap = false;
    factored.streams = 1;
  }
  candidates.push_back({"send factors of each matrix, rank " + std::to_string(kRank), factored});
  return candidates;
}

// Returns the steps of each block of ranks in proportion to its speed, with the same mean.
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

std::vector<Change> averaging_changes(const Strategy& strategy, const Scenario& scenario) {
  std::vector<Change> candidates;
  if (const auto& speeds = scenario.cluster.speeds; !speeds.empty()) {
    Strategy changed = strategy;
    LocalSgd& local = changed.local_sgd;
    local.periods = periods_by_speed(speeds, local.period);
    if (local.enabled && !input::conflict_of(changed, scenario.workload, scenario.cluster)) {
      candidates.push_back({"let faster ranks take more steps", changed});
    }
  }
  if (!sums_all(strategy) || strategy.cross_step ||
      strategy.exchange != Strategy::Exchange::kAllReduce) {
    return candidates;
  }
  candidates.push_back(changed("average parameters every 4 steps", strategy, [](Strategy& own) {
    own.fusion.cycle = 0;
    own.local_sgd.enabled = true;
    own.local_sgd.period = 4;
  }));
  return candidates;
}

// Returns changes of this kind in the keys of the strategy's dialect.
std::vector<Change> framework_changes(dialect::ChangeKind kind, const Scenario& scenario,
                                      const Json& written) {
  std::vector<Change> candidates;
  const dialect::Dialect* dialect = dialect::find_dialect(written.value("dialect", ""));
  if (dialect == nullptr || dialect->changes == nullptr) return candidates;
  const Json config = written.value("config", Json::object());
  const bool as_documents = written.value("read_as", "code") == "documents";
  const std::string algorithm = written.value("algorithm", "");
  for (const auto& change : dialect->changes(config, exchanging(scenario))) {
    const bool idle =
        kind == dialect::ChangeKind::kAccumulation && scenario.workload.micro_batches == 1;
    if (change.kind != kind || idle) continue;
    const std::string text = dialect::change_text(*dialect, config, change.patch);
    if (text.empty()) continue;
    Json changed = config;
    changed.merge_patch(change.patch);
    try {
      dialect::Reading reading =
          dialect::reading_of(*dialect, changed, scenario.workload, scenario.cluster,
                              {.as_documents = as_documents, .algorithm = algorithm});
      const bool fits = algorithm.empty() ||
                        !input::conflict_of(reading.strategy, scenario.workload, scenario.cluster);
      if (!fits) continue;
      candidates.push_back({std::string(dialect::words_of(kind)), std::move(reading.strategy),
                            std::move(changed), text});
    } catch (const InputError&) {
      // The framework refuses this next to the other keys: no advice.
    }
  }
  return candidates;
}

// Sets how a change is set: by its dialect's keys, a file of ours, or a scenario's keys.
void find_setting(const Strategy& base, const Scenario& scenario, Advice& advice) {
  const Strategy& changed = advice.strategy;
  constexpr std::size_t kLongest = 200;
  if (base.dialect.empty()) {
    advice.set_with = own_keys(changed, base);
    return;
  }
  const dialect::Dialect& row = *dialect::find_dialect(base.dialect);
  std::optional<dialect::Written> found;
  try {
    found = dialect::write_config(row, changed, scenario.workload, scenario.cluster);
  } catch (const InputError&) {
    // The framework cannot express it.
  }
  const std::string name = base.dialect;
  // The algorithm is no part of a configuration.
  if (!found || !found->exact || !found->algorithm.empty()) {
    const bool applied = row.apply_refusal != nullptr &&
                         row.apply_refusal(changed, scenario.workload, scenario.cluster).empty();
    advice.outside = !applied;
    advice.set_with =
        applied ? "the file of syncline tune --emit " + name + " --python"
                : "cannot be written in " + name + ", in a scenario " + own_keys(changed, base);
    return;
  }
  const std::string config = dialect::config_text(row, found->config, scenario.workload.parallel);
  advice.set_with =
      config.size() <= kLongest ? config : "what syncline tune --emit " + name + " writes";
}

// Returns each of Paddle's switches that is off, if the workload has operators to match.
std::vector<Change> compute_changes(const Workload& workload, const Strategy& strategy) {
  std::vector<Change> candidates;
  if (workload.operators->empty()) return candidates;
  for (const auto& [name, on, usual] : dialect::kBuildSwitches) {
    if (strategy.compute_fusion.*on) continue;
    Strategy changed = strategy;
    changed.compute_fusion.*on = true;
    if (on == &ComputeFusion::fuse_all_optimizer_ops) changed.update = Strategy::Update::kAfterAll;
    candidates.push_back({"fuse operators", changed});
  }
  return candidates;
}

// Returns other schemes of the framework that train alike.
std::vector<Change> scheme_changes(const Scenario& scenario, const Strategy& strategy,
                                   const Json* written) {
  std::vector<Change> candidates;
  if (scenario.cluster.ranks() == 1) return candidates;
  const Json own = written != nullptr ? *written : Json{{"dialect", strategy.dialect}};
  for (auto& [scheme, read] : schemes_of(scenario, own)) {
    const bool same =
        scheme.dialect == strategy.dialect && scheme.config == own.value("config", Json());
    if (same || training_beside(read, strategy) != TrainingChange::kSame) continue;
    const dialect::Dialect& dialect = *dialect::find_dialect(scheme.dialect);
    candidates.push_back(
        {"train by " + scheme.name, std::move(read), scheme.config,
         "in " + scheme.dialect + " " +
             dialect::config_text(dialect, scheme.config, scenario.workload.parallel)});
  }
  return candidates;
}

// Returns the changes of how a strategy trains.
std::vector<Candidates> training_candidates(const Scenario& scenario, const Strategy& strategy) {
  using Kind = dialect::ChangeKind;
  return {
      {Kind::kRounding, rounding_changes(strategy, scenario.workload, exchanging(scenario))},
      {Kind::kCompression, compression_changes(strategy, scenario.workload, exchanging(scenario))},
      {Kind::kAveraging, averaging_changes(strategy, scenario)}};
}

// Returns the changes of each kind that do not conflict with the job.
std::vector<Candidates> all_candidates(const Scenario& scenario, const Strategy& strategy) {
  using Kind = dialect::ChangeKind;
  std::vector<Candidates> all{{Kind::kCompute, compute_changes(scenario.workload, strategy)}};
  if (scenario.cluster.ranks() == 1) return all;
  std::vector<Change> levels = hierarchy_changes(strategy, exchanging(scenario));
  std::erase_if(levels, [&](const Change& change) {
    return plan::uneven_groups(change.strategy, scenario.workload).has_value();
  });
  all.insert(all.end(), {{Kind::kFusion, fusion_changes(strategy)},
                         {Kind::kCopies, copy_changes(strategy)},
                         {Kind::kStreams, stream_changes(strategy)},
                         {Kind::kAccumulation, accumulation_changes(strategy, scenario.workload)},
                         {Kind::kHierarchy, std::move(levels)},
                         {Kind::kAlgorithm, algorithm_changes(strategy, scenario.cluster)}});
  std::ranges::move(training_candidates(scenario, strategy), std::back_inserter(all));
  const auto now = input::conflict_of(strategy, scenario.workload, scenario.cluster);
  for (Candidates& candidates : all) {
    std::erase_if(candidates.second, [&](const Change& change) {
      // A framework may have settings together that go idle in ours: those are no change's fault.
      const auto then = input::conflict_of(change.strategy, scenario.workload, scenario.cluster);
      return then && (!now || then->key != now->key);
    });
  }
  return all;
}

}  // namespace

std::string_view word_of(TrainingChange training) {
  constexpr std::array<std::string_view, 3> kWords{"same", "rounded", "changed"};
  return kWords.at(static_cast<std::size_t>(training));
}

bool rounds_sums(const Strategy& strategy, const Strategy& base) {
  // A base that sums in fp32, or in the gradients' own format, does not round each sum.
  const Fusion& sums = strategy.fusion;
  return (base.fusion.sums_in_fp32() && !sums.sums_in_fp32()) ||
         (sums.sums_in_half() && sums.sum_format != base.fusion.sum_format);
}

// Compares codecs, LocalSGD and the format of sums.
TrainingChange training_beside(const Strategy& strategy, const Strategy& base) {
  const std::string& codec = strategy.compression.codec;
  const compress::Codec* row = compress::find_codec(codec);
  const TrainingChange sums =
      rounds_sums(strategy, base) ? TrainingChange::kRounded : TrainingChange::kSame;
  const bool rounds = row != nullptr && !row->sparse && !row->low_rank;
  const bool alike =
      rounds ? codec == base.compression.codec : strategy.compression == base.compression;
  if (!input::changes_training(strategy)) return sums;
  if (!(strategy.local_sgd == base.local_sgd)) return TrainingChange::kChanged;
  if (alike) return sums;
  return rounds ? TrainingChange::kRounded : TrainingChange::kChanged;
}

std::string own_keys(const Strategy& strategy, const Strategy& base) {
  const Json before = input::strategy_json(base);
  const Json own = input::strategy_json(strategy);
  std::string text;
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  for (const auto& [key, value] : own.items()) {
    const bool named = key == "name" || key == "about";
    if (named || (before.contains(key) && before[key] == value)) continue;
    add(Json(key).dump() + ": " + dialect::on_one_line(value));
  }
  // Keys that are left out have their defaults again.
  for (const auto& [key, value] : before.items()) {
    if (own.contains(key) || key == "about" || key == "dialect") continue;
    const bool flag = value.is_boolean();
    add(flag ? Json(key).dump() + ": " + Json(!value.get<bool>()).dump()
             : "without " + Json(key).dump());
  }
  return text;
}

std::vector<Change> training_changes(const Scenario& scenario, const Strategy& strategy,
                                     const Json* written) {
  std::vector<Change> changes;
  if (scenario.cluster.ranks() == 1) return changes;
  for (const auto& [kind, ours] : training_candidates(scenario, strategy)) {
    if (ours.empty()) continue;  // used up, or of no use here
    if (!strategy.dialect.empty() && written != nullptr) {
      std::ranges::move(framework_changes(kind, scenario, *written), std::back_inserter(changes));
    }
    changes.insert(changes.end(), ours.begin(), ours.end());
  }
  std::erase_if(changes, [&](const Change& change) {
    return input::conflict_of(change.strategy, scenario.workload, scenario.cluster) ||
           encodes_nothing(change.strategy, scenario.workload) ||
           training_beside(change.strategy, strategy) == TrainingChange::kSame;
  });
  return changes;
}

std::optional<Change> outer_steps(const Scenario& scenario, const Strategy& strategy) {
  constexpr std::int64_t kPeriod = 100;  // as Streaming DiLoCo trains (Douillard et al. 2025)
  const auto& tiers = scenario.cluster.tiers;
  const int group = tiers.size() > 1 ? tiers[tiers.size() - 2].span : 1;
  const bool plain = sums_all(strategy) && !strategy.cross_step &&
                     strategy.exchange == Strategy::Exchange::kAllReduce &&
                     strategy.hierarchy.form == Hierarchy::Form::kFlat;
  if (!plain || scenario.cluster.ranks() <= group) return std::nullopt;
  Change change =
      changed("average by an outer step every " + std::to_string(kPeriod) + " steps, DiLoCo",
              strategy, [&](Strategy& own) {
                own.fusion.cycle = 0;
                own.local_sgd.enabled = true;
                own.local_sgd.period = kPeriod;
                own.local_sgd.subgroup = group;
                own.local_sgd.outer.optimizer = Outer::Optimizer::kNesterov;
              });
  if (input::conflict_of(change.strategy, scenario.workload, scenario.cluster)) return std::nullopt;
  return change;
}

std::vector<Advice> advise(const Scenario& scenario, const Strategy& strategy,
                           run::Executor& executor, collective::CostCache& cache,
                           double least_percent, const Json* written) {
  const auto metrics_of = [&](const Strategy& own) {
    return evaluate_strategy(scenario, own, executor, cache).metrics;
  };
  const Metrics today = metrics_of(strategy);
  const Seconds now = today.step_time;
  const bool cramped = !memory_of(scenario, strategy).fits();
  // The best of some candidates, if it gains so much.
  const auto best_of = [&](const std::vector<Change>& candidates, double least) {
    std::optional<Advice> best;
    for (const auto& candidate : candidates) {
      const Memory memory = memory_of(scenario, candidate.strategy);
      if (!memory.fits()) continue;  // nobody could take it
      Metrics then = metrics_of(candidate.strategy);
      const double gain = 100 * (1 - then.step_time / now);
      if (gain < least || (best && gain <= best->gain_percent())) continue;
      best = Advice{{},
                    candidate.text,
                    candidate.set_with,
                    candidate.strategy,
                    training_beside(candidate.strategy, strategy)};
      best->memory = memory;
      best->speedup = now / then.step_time;
      best->metrics = std::move(then);
    }
    if (best && best->set_with.empty()) find_setting(strategy, scenario, *best);
    return best;
  };
  std::vector<Advice> advice;
  // Another scheme is a large change: it must gain clearly, or fit if today's does not.
  constexpr double kSchemePercent = 5, kWhatever = -1e9;
  const bool framed = cramped || !strategy.dialect.empty();  // else nobody named a framework
  auto scheme =
      best_of(framed ? scheme_changes(scenario, strategy, written) : std::vector<Change>{},
              cramped ? kWhatever : std::max(kSchemePercent, least_percent));
  for (const auto& [kind, candidates] : all_candidates(scenario, strategy)) {
    double least = least_percent;
    if (!strategy.dialect.empty() && written != nullptr) {
      if (auto change = best_of(framework_changes(kind, scenario, *written), least)) {
        least += change->gain_percent();
        advice.push_back(std::move(*change));
      }
    }
    auto ours = best_of(candidates, least);
    if (!ours) continue;
    advice.push_back(std::move(*ours));
  }
  if (const auto outer = outer_steps(scenario, strategy); outer && waits_for_network(today)) {
    if (auto best = best_of({*outer}, least_percent)) advice.push_back(std::move(*best));
  }
  // A key that sets the same scheme is said once.
  const auto is_scheme = [&](const Advice& one) {
    return scheme && one.metrics.step_time == scheme->metrics.step_time &&
           one.memory.total() == scheme->memory.total();
  };
  if (cramped) {
    std::erase_if(advice, is_scheme);
  } else if (std::ranges::any_of(advice, is_scheme)) {
    scheme.reset();
  }
  if (scheme && !cramped) advice.push_back(*scheme);
  std::ranges::stable_sort(advice, std::ranges::greater(), &Advice::gain_percent);
  std::ranges::stable_partition(advice, [](const Advice& one) { return !one.outside; });
  if (scheme && cramped) advice.insert(advice.begin(), std::move(*scheme));
  return advice;
}

}  // namespace syncline::measure
