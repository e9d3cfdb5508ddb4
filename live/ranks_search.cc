#include "live/ranks_search.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/plan.h"
#include "formats/text/visible.h"
#include "live/figures.h"

namespace syncline::live {
namespace {

// Orders are texts: "3 50", a candidate's index and the steps; "-1 50", the baseline; "done".
constexpr long long kBaseline = -1;
constexpr const char* kDone = "done";

// Measures every candidate and the baseline on the machine.
tune::KnownTruth swept_truth(RanksObjective& machine, const tune::LiveObjective& watched,
                             const tune::LiveReport& report) {
  tune::KnownTruth truth;
  truth.measured = true;
  tune::Evaluation evaluation{0, report.settings.search.steps, report.settings.seed};
  const auto& candidates = report.problem.candidates;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    evaluation.number = static_cast<int>(i);
    const Seconds time = watched.measure(candidates[i], evaluation).step_time;
    if (i == 0 || time < truth.least) truth.least = time;
    if (i == report.tuning.state.best) truth.best = time;
  }
  truth.baseline = machine.measure_baseline(evaluation.steps).step_time;
  return truth;
}

}  // namespace

RanksObjective::RanksObjective(const Settings& settings, const Scenario& scenario,
                               const tune::SearchProblem& problem, ControlChannel& channel)
    : settings_(settings),
      scenario_(scenario),
      problem_(problem),
      channel_(channel),
      rank_(static_cast<std::size_t>(channel.rank())),
      executor_(settings.backend(scenario.workload, channel)),
      input_(static_cast<std::size_t>(channel.ranks())) {}

std::string RanksObjective::source() const {
  const int ranks = channel_.ranks();
  return "measured with " + settings_.backend_name + " on " + std::to_string(ranks) +
         (ranks == 1 ? " rank" : " ranks");
}

tune::Measurement RanksObjective::measure(const tune::Candidate& candidate,
                                          const tune::Evaluation& evaluation) {
  const auto index = &candidate - problem_.candidates.data();
  channel_.from_first(std::to_string(index) + " " + std::to_string(evaluation.steps),
                      ControlChannel::kPatient);
  return run(candidate.strategy, evaluation.steps);
}

tune::Measurement RanksObjective::measure_baseline(int steps) {
  channel_.from_first(std::to_string(kBaseline) + " " + std::to_string(steps),
                      ControlChannel::kPatient);
  return run(*find_strategy(scenario_, scenario_.baseline), steps);
}

void RanksObjective::dismiss() { channel_.from_first(kDone, ControlChannel::kPatient); }

void RanksObjective::follow() {
  for (;;) {
    const std::string order = channel_.from_first("", ControlChannel::kPatient);
    if (order == kDone) return;
    const auto [index, steps] = parse_order(order);
    run(index == kBaseline ? *find_strategy(scenario_, scenario_.baseline)
                           : problem_.candidates[static_cast<std::size_t>(index)].strategy,
        steps);
  }
}

RanksObjective::Order RanksObjective::parse_order(const std::string& text) const {
  Order order;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, order.index);
  const bool parted = index.ec == std::errc() && index.ptr != end && *index.ptr == ' ';
  const auto steps = std::from_chars(parted ? index.ptr + 1 : end, end, order.steps);
  const auto candidates = static_cast<long long>(problem_.candidates.size());
  const bool known = order.index >= kBaseline && order.index < candidates;
  if (!known || steps.ec != std::errc() || steps.ptr != end || order.steps < 1) {
    channel_.broken_by(
        0, "it ordered '" + visible(shorten_text(text)) + "', which is no candidate and its steps");
  }
  return order;
}

tune::Measurement RanksObjective::run(const Strategy& strategy, int steps) {
  const plan::Plan plan = plan::make_plan(scenario_.workload, scenario_.cluster, strategy);
  const run::SampleValues values = run::exact_values(plan);
  if (input_[rank_].empty() || values != values_) {
    values_ = values;
    input_[rank_] = run::sample_gradients(scenario_.workload, channel_.rank(), channel_.ranks(),
                                          kSampleSeed, values);
  }

  // Whole periods of the plan, at least two, after one that is not counted.
  constexpr int kWarmup = 1;
  const int periods = (steps + plan.steps - 1) / plan.steps;
  const run::Outcome outcome = executor_->run(plan, input_, kWarmup + std::max(2, periods));
  const auto& ends = outcome.timeline.period_ends;
  std::vector<Seconds> lengths;
  for (std::size_t p = kWarmup; p < ends.size(); ++p) {
    lengths.push_back((ends[p] - ends[p - 1]) / plan.steps);
  }

  if (settings_.check_values &&
      !values_match(channel_, scenario_.workload, plan, outcome.gradients[rank_], kSampleSeed,
                    values, static_cast<int>(ends.size()))) {
    throw MachineError("'" + strategy.name + "' did not end with the values of the host executor");
  }
  return tune::summary(lengths);
}

void search_on_ranks(const RanksSearch& search, const Scenario& scenario, ControlChannel& channel,
                     const RanksSearchHooks& hooks, tune::LiveReport& report) {
  RanksObjective machine(search.machine, scenario, report.problem, channel);
  if (channel.rank() != 0) return machine.follow();
  const tune::LiveObjective objective{machine.source(),
                                      [&](const auto& candidate, const auto& evaluation) {
                                        return machine.measure(candidate, evaluation);
                                      }};
  const tune::LiveObjective watched = tune::watch_objective(objective, hooks.evaluation);
  report.tuning = tune::tune_live(report.problem, report.settings, watched, hooks.journal(watched));
  if (search.sweep && report.tuning.complete) {
    hooks.sweeping();
    report.truth = swept_truth(machine, tune::watch_objective(objective, hooks.swept), report);
  }
  machine.dismiss();
}

}  // namespace syncline::live
