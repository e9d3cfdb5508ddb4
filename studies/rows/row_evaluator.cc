#include "studies/rows/row_evaluator.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "catalogue/hardware/device.h"
#include "core/base/error.h"
#include "core/metrics/bound.h"
#include "core/operators/evaluate.h"
#include "formats/input/document.h"
#include "formats/json/text.h"
#include "studies/rows/fabric_jobs.h"
#include "studies/rows/rounding.h"

namespace syncline::measure {
namespace {

std::vector<std::pair<std::int64_t, double>> sizes_of(const std::vector<plan::Bucket>& buckets) {
  std::vector<std::pair<std::int64_t, double>> sizes;
  for (const auto& bucket : buckets) {
    sizes.emplace_back(static_cast<std::int64_t>(bucket.tensors.size()),
                       static_cast<double>(bucket.bytes) / static_cast<double>(kMiB));
  }
  return sizes;
}

// Keeps the spans of these ranks. If only one rank has spans, they are copied to each of these.
void show_ranks(const std::vector<int>& ranks, run::Timeline& timeline) {
  auto& spans = timeline.spans;
  const bool alike = std::ranges::all_of(
      spans, [&](const run::Span& span) { return span.rank == spans.front().rank; });
  std::vector<run::Span> shown;
  for (const auto& span : spans) {
    if (!alike && std::ranges::count(ranks, span.rank) > 0) shown.push_back(span);
    for (const int rank : alike ? ranks : std::vector<int>{}) {
      shown.push_back(span);
      shown.back().rank = rank;
    }
  }
  spans = std::move(shown);
}

}  // namespace

double rated_seconds(const Scenario& scenario) {
  const auto* device = hardware::recognise_device(scenario.cluster.device.name);
  const Workload& workload = scenario.workload;
  if (device == nullptr || workload.operators->empty()) return 0;
  double seconds = 0;
  for (const Operator& op : workload.operators->operators) {
    const bool half = op.dtype == DType::kFp16 || (op.dtype == DType::kBf16 && device->bf16);
    if (op.part == StepPart::kUpdate) continue;
    const bool rounds = operators::rounds(op, device->compute_capability);
    const double rate = half     ? (rounds ? 2 : 1) * device->half_flops
                        : rounds ? device->half_flops / 2
                                 : device->flops;
    seconds += op.matrix_flops / rate;
  }
  return seconds * static_cast<double>(workload.micro_batches) / workload.parallel.pipeline;
}

std::string point_text(const SweepPoint& point) {
  std::string text;
  for (const auto& [path, value] : point) {
    text += (text.empty() ? "" : ", ") + path + " = " + plain_text(value);
  }
  return text;
}

std::string name_of(const RowKey& key) {
  return key.strategy + (key.point.empty() ? "" : ", ") + point_text(key.point);
}

bool matches_point(const SweepPoint& point, const SweepPoint& part) {
  return std::ranges::all_of(
      part, [&](const auto& wanted) { return std::ranges::count(point, wanted) > 0; });
}

std::optional<Published> find_published(const Scenario& scenario, const RowKey& key) {
  for (const auto& row : scenario.published) {
    if (row.strategy == key.strategy && matches_point(key.point, row.sweep)) return row;
  }
  return std::nullopt;
}

std::optional<double> relative_error(const Row& row) {
  if (!row.published) return std::nullopt;
  const Published& p = *row.published;
  if (p.step_time) return row.metrics.step_time / *p.step_time - 1;
  if (p.throughput) return row.metrics.throughput / *p.throughput - 1;
  if (p.speedup) return row.speedup / *p.speedup - 1;
  if (p.collectives) return row.metrics.collectives / static_cast<double>(*p.collectives) - 1;
  return std::nullopt;
}

input::Document without_sweep(input::Document document) {
  if (!document.root.contains("published") && !document.root.contains("calibration")) {
    document.root.erase("sweep");
  }
  return document;
}

Scenario at_point(input::Document document, const SweepPoint& point) {
  for (const auto& [path, value] : point) input::set_key(document, path, value);
  try {
    return input::parse_scenario(document);
  } catch (const InputError& error) {
    if (point.empty()) throw;
    throw InputError(std::string(error.what()) + " (at sweep point " + point_text(point) + ")");
  }
}

input::Document with_fitted(input::Document document, const std::vector<Fitted>& fitted,
                            const SweepPoint& point) {
  for (const auto& parameter : fitted) {
    if (matches_point(point, parameter.at)) {
      input::set_key(document, parameter.path, Json(parameter.value));
    }
  }
  return document;
}

// One sweep point: its strategies, and the baseline for comparison.
class RowEvaluator::PointStudy {
 public:
  PointStudy(input::Document document, const SweepPoint& point, const ExecutorFactory& factory,
             const std::optional<FitErrors>& fit_errors)
      : point_(point),
        scenario_(at_point(std::move(document), point)),
        factory_(factory),
        fit_errors_(fit_errors),
        cache_(scenario_.cluster) {
    for (const Strategy& each : scenario_.strategies) strategies_.emplace(each.name, &each);
    if (fit_errors) uncertainties_.emplace(scenario_, *fit_errors);
    executor_ = factory({scenario_.cluster, scenario_.simulation, scenario_.seed});
  }

  const SweepPoint& point() const { return point_; }

  Row row(const std::string& name, Traced* traced) {
    const Strategy& strategy = *strategies_.at(name);
    Figures figures = figures_of(strategy);
    Row row;
    row.strategy = name;
    row.executor = std::string(executor_->name());
    row.sweep = point_;
    row.metrics = figures.evaluated.metrics;
    row.memory = memory_of(scenario_, strategy);
    if (uncertainties_) row.rounding_error = rounding_error(scenario_, strategy).value_or(0);
    const std::int64_t ranks = scenario_.cluster.ranks();
    const auto tokens = static_cast<double>(scenario_.workload.tokens);
    row.rate = {ranks, row.metrics.throughput * tokens / static_cast<double>(ranks),
                rated_seconds(scenario_) / row.metrics.step_time};
    row.buckets = sizes_of(figures.evaluated.plan.buckets);
    row.fabric_jobs = std::move(figures.fabric_jobs);
    compare(strategy, figures, row);
    row.published = find_published(scenario_, {point_, name});
    if (const auto error = relative_error(row)) row.error_percent = *error * 100;
    if (traced != nullptr) {
      *traced = {name, std::move(figures.evaluated.plan), std::move(figures.evaluated.timeline)};
      traced->links = hottest_links(traced->plan, scenario_.cluster, cache_);
    }
    return row;
  }

 private:
  struct Figures {
    Evaluated evaluated;
    Sensitivity sensitivity;  // if intervals are requested
    FabricJobs fabric_jobs;
  };

  Figures figures_of(const Strategy& strategy) {
    if (!scenario_.others.empty()) return beside_others(strategy);
    Figures figures{evaluate_strategy(scenario_, strategy, *executor_, cache_), {}, {}};
    if (uncertainties_) figures.sensitivity = uncertainties_->sensitivity(strategy);
    return figures;
  }

  // Evaluates a strategy among the other jobs; their means depend on how it slows them.
  Figures beside_others(const Strategy& strategy) {
    Together all = together(scenario_, strategy);
    Scenario here = scenario_;
    here.cluster = all.cluster;
    const bool closed_form = executor_->traits().closed_form;
    const auto executor =
        closed_form ? factory_({here.cluster, here.simulation, here.seed})
                    : factory_({scenario_.cluster, here.simulation, here.seed, {}, all.others});
    Figures figures{evaluate_strategy(here, strategy, *executor, *all.cache), {}, {}};
    if (fit_errors_) figures.sensitivity = Uncertainties(here, *fit_errors_).sensitivity(strategy);
    if (!closed_form) simulated(strategy, figures.evaluated, all);
    figures.fabric_jobs = std::move(all.fabric_jobs);
    return figures;
  }

  // Replaces the model's steps by a simulation's.
  void simulated(const Strategy& strategy, const Evaluated& evaluated, Together& all) {
    auto& jobs = all.fabric_jobs.jobs;
    jobs[0].alone = evaluate_strategy(scenario_, strategy, *executor_, cache_).metrics.step_time;
    jobs[0].together = evaluated.metrics.step_time;
    for (std::size_t job = 1; job < jobs.size(); ++job) {
      const Scenario& other = scenario_.others[job - 1];
      if (others_alone_.size() < job) {
        collective::CostCache cache(other.cluster);
        const auto executor = factory_({other.cluster, scenario_.simulation, other.seed});
        const Strategy& own = *find_strategy(other, other.baseline);
        others_alone_.push_back(evaluate_strategy(other, own, *executor, cache).metrics.step_time);
      }
      jobs[job].alone = others_alone_[job - 1];
      const auto& ends = evaluated.others[job - 1];
      const int steps = all.others[job - 1].plan.steps;
      jobs[job].together = ends.size() < 2 ? std::numeric_limits<double>::quiet_NaN()
                                           : (ends.back() - ends.front()) /
                                                 (steps * static_cast<double>(ends.size() - 1));
    }
    find_hot_links(all);
  }

  // Sets the row's speedup over the baseline and, if asked for, its intervals and lower bound.
  void compare(const Strategy& strategy, const Figures& figures, Row& row) {
    const bool baseline = row.strategy == scenario_.baseline;
    if (baseline) baseline_ = {row.metrics.step_time, figures.sensitivity};
    if (!baseline_) {
      const Figures others = figures_of(*strategies_.at(scenario_.baseline));
      baseline_ = {others.evaluated.metrics.step_time, others.sensitivity};
    }
    row.speedup = baseline_->first / row.metrics.step_time;
    if (!uncertainties_) return;
    row.metrics.lower_bound = lower_bound_of(scenario_, strategy, row.metrics.step_time, cache_);
    row.sensitivity = figures.sensitivity;
    row.step = interval_of(row.metrics.step_time, row.sensitivity);
    row.gain = Interval{1, 1};
    if (baseline) return;
    const Strategy& base = *strategies_.at(scenario_.baseline);
    row.gain = scenario_.others.empty()
                   ? uncertainties_->ratio(row.speedup, {base, baseline_->second},
                                           {strategy, row.sensitivity})
                   : ratio_interval(row.speedup, baseline_->second, row.sensitivity);
  }

  SweepPoint point_;
  Scenario scenario_;
  const ExecutorFactory& factory_;
  const std::optional<FitErrors>& fit_errors_;
  std::unordered_map<std::string_view, const Strategy*> strategies_;  // per name
  collective::CostCache cache_;
  std::unique_ptr<run::Executor> executor_;                  // for the job without others
  std::optional<std::pair<Seconds, Sensitivity>> baseline_;  // once evaluated
  std::optional<Uncertainties> uncertainties_;
  std::vector<Seconds> others_alone_;  // in simulations, once evaluated
};

RowEvaluator::RowEvaluator(const input::Document& document, std::vector<Fitted> fitted,
                           ExecutorFactory factory, std::optional<FitErrors> fit_errors)
    : document_(without_sweep(document)),
      fitted_(std::move(fitted)),
      factory_(std::move(factory)),
      fit_errors_(fit_errors) {}

RowEvaluator::~RowEvaluator() = default;

Row RowEvaluator::cost(const RowKey& key, Traced* traced) {
  if (!study_ || study_->point() != key.point) {
    study_ = std::make_unique<PointStudy>(with_fitted(document_, fitted_, key.point), key.point,
                                          factory_, fit_errors_);
  }
  return study_->row(key.strategy, traced);
}

Report chosen_timelines(const input::Document& document, const TraceChoice& choice,
                        const ExecutorFactory& factory, const Report& report) {
  const Scenario scenario =
      at_point(with_fitted(without_sweep(document), report.fitted, choice.point), choice.point);
  const auto executor =
      factory({scenario.cluster, scenario.simulation, scenario.seed, choice.ranks});
  collective::CostCache cache(scenario.cluster);
  Report chosen;
  chosen.scenario = report.scenario;
  chosen.executor = report.executor;
  chosen.fitted = report.fitted;
  chosen.traced_workload = scenario.workload;
  for (const auto& name : choice.strategies) {
    Evaluated evaluated =
        evaluate_strategy(scenario, *find_strategy(scenario, name), *executor, cache);
    if (!choice.ranks.empty()) show_ranks(choice.ranks, evaluated.timeline);
    auto links = hottest_links(evaluated.plan, scenario.cluster, cache);
    chosen.traced.push_back(
        {name, std::move(evaluated.plan), std::move(evaluated.timeline), std::move(links)});
  }
  return chosen;
}

}  // namespace syncline::measure
