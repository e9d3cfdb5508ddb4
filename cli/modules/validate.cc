#include <ctime>
#include <iostream>
#include <memory>

#include "cli/backends.h"
#include "cli/built_in.h"
#include "cli/help.h"
#include "cli/modules/live.h"
#include "cli/modules/ranks.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/predictors.h"
#include "cli/process.h"
#include "core/base/error.h"
#include "formats/input/document.h"
#include "formats/text/fingerprint.h"
#include "live/validation_run.h"
#include "reports/format.h"
#include "reports/gantt.h"
#include "reports/trace.h"
#include "reports/validation_report.h"
#include "studies/questions/validate.h"
#include "studies/rows/report.h"

namespace syncline::cli {
namespace {

struct ValidateVerb {
  ScenarioOption scenario;
  questions::Validate question;
  RanksOptions ranks;
  Output output;
  std::string out;
  std::string cluster_out;
  std::string trace;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

live::ValidationRun run_of(const questions::Validate& question, const Scenario& scenario) {
  const live::Backend& backend = backend_named(question.backend);
  live::ValidationRun run;
  run.scenario = scenario;
  run.operators = question.compute == "kernels";
  run.backend = run.operators ? backend.with_operators(scenario.cluster.device, 0) : backend.make;
  run.predictor = predictor_named(question.executor).make;
  if (question.calibrate) run.calibration.emplace().codec = live::codec_of(scenario.strategies);
  run.warmup = question.warmup;
  run.repeats = question.repeats;
  run.check_values = !question.no_check;
  run.real_values = question.values == "real";
  return run;
}

// Writes the report to the file or, if that fails, to stdout, so that no measurement is lost.
void keep(const ValidateVerb& options, const measure::Validation& report) {
  if (options.out.empty()) return;
  try {
    write_file(options.out, reports::format_answer(reports::answer_of(report),
                                                   reports::Format::kJson, version()));
  } catch (const MachineError&) {
    print(reports::answer_of(report), options.output);
    throw;
  }
}

// Returns rank 0's messages, files and traces during the run.
live::ValidationHooks hooks_of(const ValidateVerb& options, const input::Document& document,
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
    if (options.trace.empty() && options.output.html.empty()) return;
    traced.traced_workload = pair.workload;
    traced.traced.push_back({name + ", predicted", pair.plan, pair.predicted});
    traced.traced.push_back({name + ", measured", pair.plan, pair.measured});
  };
  // Every measurement is saved, even if the run fails later.
  hooks.row = [&](const measure::ValidatedRow&) { keep(options, report); };
  hooks.interrupted = is_interrupted;
  return hooks;
}

// Runs on one rank; rank 0 prints and writes the results.
int validate_rank(const ValidateVerb& options, const input::Document& document,
                  const Scenario& scenario, live::ControlChannel& channel) {
  const bool first = channel.rank() == 0;
  if (first) {
    expect_writable({options.out, options.cluster_out, options.trace, options.output.html});
  }
  if (first) say("joined: " + reports::plural(channel.ranks(), "rank"));
  measure::Validation report;
  report.backend = options.question.backend;
  report.executor = options.question.executor;
  report.version = version();
  report.date = today();
  report.links = reports::links_in_words(scenario.cluster);
  measure::Report traced;
  traced.executor = options.question.backend;
  live::run_validation(run_of(options.question, scenario), channel,
                       hooks_of(options, document, report, traced), report);
  if (first) {
    keep(options, report);
    reports::Answer answer = reports::answer_of(report);
    answer.warnings = warnings_here(document, scenario.strategies);
    answer.figures = [&report, &traced] {
      auto pictures = reports::figures_of(report);
      for (auto& step : reports::gantt_pairs(traced)) pictures.push_back(std::move(step));
      return pictures;
    };
    write_answer({{options.trace, [&] { return reports::chrome_trace(traced); }}}, answer,
                 options.output);
    tell_written({options.out, options.cluster_out});
  }
  channel.barrier(live::ControlChannel::kPatient);
  if (!live::all_values_match(report)) {
    throw MachineError("a rank's values differ from the host executor's");
  }
  return report.complete ? 0 : kInterruptedExit;
}

int run(const ValidateVerb& options) {
  const questions::Validate& question = options.question;
  const input::Document document = read_on_ranks(options.scenario);
  Scenario scenario = input::parse_lone_scenario(document);
  const bool timers = question.compute == "timers";
  if (!timers && backend_named(question.backend).with_operators == nullptr) {
    throw InputError("--compute kernels needs --backend nccl: ranks of " + question.backend +
                     " compute by timers");
  }
  if (timers) scenario.cluster.device.overlap = {};  // they replace work that exchanges would slow,
  if (scenario.cluster.jitter.guessed) scenario.cluster.jitter = {};  // and are exact
  scenario.strategies = chosen_strategies(scenario, question.strategies, document.file);
  if (!options.cluster_out.empty() && !question.calibrate) {
    throw InputError("--cluster-out needs --calibrate, which measures the links");
  }
  catch_interrupts();
  const std::string key = document.root.dump() + key_of(question);
  return with_ranks(options.ranks, fingerprint(key), [&](live::ControlChannel& channel) {
    require_ranks(channel, document, scenario.cluster);
    return validate_rank(options, document, scenario, channel);
  });
}

}  // namespace

VerbAction add_validate(CLI::App& verb) {
  auto options = std::make_shared<ValidateVerb>();
  add_scenario(verb, options->scenario, "its sweep is ignored");
  const questions::Arguments arguments = arguments_of(options->question);
  add_arguments(verb, arguments, {"backend"});
  verb.get_option("--backend")->transform(one_of_words(backend_names()));
  add_ranks_options(verb, options->ranks);
  add_arguments(verb, arguments, {"compute", "calibrate"});
  add_file(verb, "--cluster-out", options->cluster_out,
           "write the cluster with its measured links (JSON)");
  add_arguments(verb, arguments);
  verb.add_option("--only", options->question.strategies)->group("");
  add_format(verb, options->output);
  add_html(verb, options->output);
  add_file(verb, "--trace", options->trace, "write a Chrome trace of predicted and measured steps");
  add_file(verb, "-o,--out", options->out, "write the report (JSON), updated with each strategy");
  put_in_group(verb, "Measurement", {"--timeout", "--meet"});
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
