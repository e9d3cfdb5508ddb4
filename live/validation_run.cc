#include "live/validation_run.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "core/codec.h"
#include "core/metrics.h"
#include "core/plan.h"
#include "core/plan/compute_fusion.h"
#include "core/run/interference.h"
#include "core/run/sample_gradients.h"
#include "live/figures.h"

namespace syncline::live {
namespace {

// Returns "8 x NAME", as Linux names the processors.
std::string processors() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return std::to_string(std::thread::hardware_concurrency()) + " x " + line.substr(colon + 2);
    }
  }
  return "processors without a name";
}

// The plan of a strategy and its predicted timeline and step time.
struct Forecast {
  plan::Plan plan;
  run::Timeline timeline;
  Seconds step = 0;
};

// Returns the forecast; without a predictor (on ranks other than 0) only the plan.
Forecast forecast(const Scenario& scenario, const Workload& workload, const Strategy& strategy,
                  run::Executor* predictor) {
  Forecast result;
  collective::CostCache cache(scenario.cluster);
  result.plan = run::with_interference(plan::make_plan(workload, scenario.cluster, strategy),
                                       scenario.cluster.device, cache);
  if (predictor == nullptr) return result;
  const int warmup = plan::crosses_steps(result.plan) ? 4 : 1;
  result.timeline = predictor->run(result.plan, {}, 2 * warmup + 1).timeline;
  result.step = measure::measure(result.plan, workload, result.timeline, warmup, cache).step_time;
  return result;
}

// Carries out one rank's part in a run.
class RankOfRun {
 public:
  RankOfRun(const ValidationRun& run, ControlChannel& channel, const ValidationHooks& hooks,
            measure::Validation& report)
      : run_(run),
        channel_(channel),
        hooks_(hooks),
        report_(report),
        scenario_(run.scenario),
        rank_(static_cast<std::size_t>(channel.rank())) {
    report_.scenario = scenario_.name;
    report_.workload = scenario_.workload.name;
    report_.cluster = scenario_.cluster.name;
    report_.baseline = scenario_.baseline;
    report_.ranks = channel.ranks();
    report_.operators = run.operators;
    report_.warmup = run.warmup;
    report_.repeats = run.repeats;
  }

  void carry_out() {
    // A killed run leaves a report of the rows so far, marked as incomplete.
    report_.complete = false;
    if (run_.calibration) calibrate(*run_.calibration);
    for (const auto& strategy : scenario_.strategies) {
      const std::string order = hooks_.interrupted() ? "stop" : "";
      if (channel_.from_first(order, ControlChannel::kPatient) == "stop") {
        return;
      }
      report_.rows.push_back(row(strategy));
      report_.complete = report_.rows.size() == scenario_.strategies.size();
      if (first()) hooks_.row(report_.rows.back());
    }
  }

 private:
  bool first() const { return rank_ == 0; }

  void calibrate(const LinkCalibrationSettings& settings) {
    if (first()) hooks_.calibrating();
    LinkCalibration found = calibrate_links(channel_, run_.backend, scenario_.cluster, settings);
    scenario_.cluster = found.cluster;
    report_.samples = found.samples;
    if (first()) hooks_.calibrated(found);
  }

  measure::ValidatedRow row(const Strategy& strategy) {
    // Compute fusion makes another workload, with times of its own.
    auto fused =
        plan::fused_workload(scenario_.workload, scenario_.cluster.device, strategy.compute_fusion);
    if (fused && run_.operators) {
      fused->operators =
          plan::fuse_operators(scenario_.workload, strategy.compute_fusion).operators;
    }
    const Workload& workload = fused ? *fused : scenario_.workload;
    const Forecast predicted = predict(strategy, workload);

    const plan::Plan& plan = predicted.plan;
    const run::SampleValues values =
        run_.real_values ? run::SampleValues::kReal : run::exact_values(plan);
    const run::Outcome outcome = run_plan(workload, plan, values);

    measure::ValidatedRow found;
    if (first()) {
      found = measure::compare(strategy.name, plan, predicted.step, predicted.timeline,
                               outcome.timeline, run_.warmup);
      measure::Uncertainties uncertainties(scenario_, uncertain_in_advance());
      found.interval = measure::interval_of(found.predicted, uncertainties.sensitivity(strategy));
      hooks_.measured({strategy, workload, plan, predicted.timeline, outcome.timeline},
                      found.median);
    }
    for (const auto& published : scenario_.published) {
      if (published.strategy == strategy.name) found.published_speedup = published.speedup;
    }
    if (!outcome.bytes_sent.empty()) found.bytes_sent = most_sent_a_step(outcome, plan);
    if (run_.check_values) {
      found.values_match = values_match(channel_, workload, plan, outcome.gradients[rank_],
                                        kSampleSeed, values, run_.warmup + run_.repeats);
    }
    return found;
  }

  // Returns the errors known before the run: timers take the scenario's time, within 0.5 %.
  measure::FitErrors uncertain_in_advance() const {
    constexpr double kTimers = 0.005;
    measure::FitErrors given;
    if (!run_.operators) given.computation = kTimers;
    given.framework = 0;
    return given;
  }

  Forecast predict(const Strategy& strategy, const Workload& workload) const {
    std::unique_ptr<run::Executor> predictor;
    if (first()) {
      predictor = run_.predictor({scenario_.cluster, scenario_.simulation, scenario_.seed});
    }
    Forecast predicted = forecast(scenario_, workload, strategy, predictor.get());
    if (first()) hooks_.predicted(strategy, predicted.step);
    return predicted;
  }

  run::Outcome run_plan(const Workload& workload, const plan::Plan& plan,
                        run::SampleValues values) {
    run::Gradients input(static_cast<std::size_t>(channel_.ranks()));
    input[rank_] =
        run::sample_gradients(workload, channel_.rank(), channel_.ranks(), kSampleSeed, values);
    const auto executor = run_.backend(workload, channel_);
    run::Outcome outcome = executor->run(plan, input, run_.warmup + run_.repeats);
    report_.hardware = executor->hardware() + ", " + processors();
    report_.clock_error = std::max(report_.clock_error, executor->clock_error());
    return outcome;
  }

  double most_sent_a_step(const run::Outcome& outcome, const plan::Plan& plan) {
    const auto all = channel_.gather(bytes_of(std::vector{outcome.bytes_sent[rank_]}));
    double most = 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      const auto sent = read_figures<Bytes>(all[r], channel_, static_cast<int>(r), 1).front();
      most = std::max(most, static_cast<double>(sent));
    }
    return most / (run_.warmup + run_.repeats) / plan.steps;
  }

  const ValidationRun& run_;
  ControlChannel& channel_;
  const ValidationHooks& hooks_;
  measure::Validation& report_;
  Scenario scenario_;  // with the measured links, if they are measured
  const std::size_t rank_;
};

}  // namespace

void run_validation(const ValidationRun& run, ControlChannel& channel, const ValidationHooks& hooks,
                    measure::Validation& report) {
  RankOfRun(run, channel, hooks, report).carry_out();
}

const compress::Codec* codec_of(const std::vector<Strategy>& strategies) {
  for (const auto& strategy : strategies) {
    const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
    if (codec != nullptr && !codec->low_rank) return codec;
  }
  return nullptr;
}

bool all_values_match(const measure::Validation& report) {
  return std::all_of(report.rows.begin(), report.rows.end(), [](const measure::ValidatedRow& row) {
    return row.values_match.value_or(true);
  });
}

}  // namespace syncline::live
