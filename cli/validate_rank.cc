#include "cli/validate_rank.h"

#include <ctime>
#include <iostream>

#include "cli/executors.h"
#include "cli/exit.h"
#include "cli/files.h"
#include "cli/live_words.h"
#include "cli/output.h"
#include "cli/scenario_option.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/measure/report.h"
#include "live/validation_run.h"
#include "reports/figures.h"
#include "reports/format.h"
#include "reports/gantt.h"
#include "reports/trace.h"
#include "reports/validation_report.h"

namespace syncline::cli {
namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

live::ValidationRun run_of(const ValidateOptions& options, const Scenario& scenario) {
  live::ValidationRun run;
  run.scenario = scenario;
  run.backend = backend_named(options.backend).make;
  run.predictor = predictor_named(options.executor).make;
  if (options.calibrate) run.calibration.emplace().codec = live::codec_of(scenario.strategies);
  run.warmup = options.warmup;
  run.repeats = options.repeats;
  run.check_values = !options.no_check;
  run.real_values = options.values == "real";
  return run;
}

// To the file, or, where that cannot be, to stdout: it was measured.
void keep(const ValidateOptions& options, const measure::Validation& report) {
  if (options.out.empty()) return;
  try {
    write_file(options.out,
               reports::printed(reports::answer_of(report), reports::Format::kJson, version()));
  } catch (const MachineError&) {
    print(reports::answer_of(report), options.format);
    throw;
  }
}

// Rank 0's talk, files and traces while the run goes on.
live::ValidationHooks hooks_of(const ValidateOptions& options, const input::Document& document,
                               measure::Validation& report, measure::Report& traced) {
  live::ValidationHooks hooks;
  hooks.calibrating = [] { say("calibrating the links"); };
  hooks.calibrated = [&](const live::LinkCalibration& found) {
    report.links = reports::links_in_words(found.cluster);
    say("links: " + report.links);
    if (options.cluster_out.empty()) return;
    Json json = document.root.at("cluster");
    live::set_measured_links(found, json);
    write_file(options.cluster_out, json.dump(2) + "\n");
  };
  hooks.predicted = [](const Strategy& strategy, Seconds step) {
    say(reports::one_line(strategy.name) + ": predicted " + reports::seconds_text(step));
  };
  hooks.measured = [&](const live::PlanPair& pair, Seconds median) {
    const std::string& name = pair.strategy.name;
    say(reports::one_line(name) + ": measured " + reports::seconds_text(median));
    if (options.trace.empty() && options.html.empty()) return;
    traced.traced_workload = pair.workload;
    traced.traced.push_back({name + ", predicted", pair.plan, pair.predicted});
    traced.traced.push_back({name + ", measured", pair.plan, pair.measured});
  };
  // Nothing that was measured is lost, whatever comes next.
  hooks.row = [&](const measure::ValidatedRow&) { keep(options, report); };
  hooks.interrupted = interrupted;
  return hooks;
}

}  // namespace

int validate_rank(const ValidateOptions& options, const input::Document& document,
                  const Scenario& scenario, live::ControlChannel& channel) {
  const bool first = channel.rank() == 0;
  if (first) {
    expect_writable({options.out, options.cluster_out, options.trace, options.html});
  }
  if (first) say("met: " + reports::plural(static_cast<std::size_t>(channel.ranks()), "rank"));
  measure::Validation report;
  report.backend = options.backend;
  report.executor = options.executor;
  report.version = version();
  report.date = today();
  report.links = reports::links_in_words(scenario.cluster);
  measure::Report traced;
  traced.executor = options.backend;
  live::run_validation(run_of(options, scenario), channel,
                       hooks_of(options, document, report, traced), report);
  if (first) {
    keep(options, report);
    reports::Answer answer = reports::answer_of(report);
    answer.remarks = remarks_here(document, scenario.strategies);
    answer.figures = [&report, &traced] {
      auto pictures = reports::figures_of(report);
      for (auto& step : reports::gantt_pairs(traced)) pictures.push_back(std::move(step));
      return pictures;
    };
    answer_with({{options.trace, [&] { return reports::chrome_trace(traced); }},
                 html_file(options.html, answer)},
                [&] { print(answer, options.format); });
    tell_written({options.out, options.cluster_out});
  }
  channel.barrier(live::ControlChannel::kPatient);
  if (!live::all_values_match(report)) {
    throw MachineError("a rank did not end with the values of the host executor");
  }
  return report.complete ? 0 : kInterruptedExit;
}

}  // namespace syncline::cli
