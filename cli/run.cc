#include <memory>

#include "cli/cost.h"
#include "cli/executors.h"
#include "cli/exit.h"
#include "cli/files.h"
#include "cli/objective.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/row_sharing.h"
#include "cli/scenario_option.h"
#include "cli/trace_choice.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/fingerprint.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/measure/study.h"
#include "reports/chart/svg.h"
#include "reports/run_report.h"
#include "reports/trace.h"
#include "reports/worth_report.h"

namespace syncline::cli {
namespace {

struct RunOptions {
  ScenarioOption scenario;
  std::vector<std::string> strategies;
  std::string executor = "model";
  OutputFormat format;
  std::string grain;
  std::string out;
  std::string trace;
  std::vector<std::string> trace_of;
  std::string html;
  std::string svg;
  int jobs = 1;
  std::string shards;
  ObjectiveOptions objective;
};

constexpr std::pair<const char*, reports::Format> kReports[] = {
    {"report.txt", reports::Format::kTable},
    {"report.md", reports::Format::kMarkdown},
    {"rows.csv", reports::Format::kCsv},
    {"report.json", reports::Format::kJson}};
constexpr const char* kTrace = "trace.json";

// The files of --out, each in the folder.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  if (folder.empty()) return files;
  for (const auto& [name, format] : kReports) files.push_back(folder + "/" + name);
  files.push_back(folder + "/" + kTrace);
  return files;
}

std::vector<SideFile> side_files(const RunOptions& options, const measure::Report& traced,
                                 const reports::Answer& answer) {
  const auto trace = [&traced] { return reports::chrome_trace(traced); };
  std::vector<SideFile> files{{options.trace, trace}, html_file(options.html, answer)};
  if (options.out.empty()) return files;
  for (const auto& [name, format] : kReports) {
    files.push_back({options.out + "/" + name, [&answer, form = format] {
                       return reports::printed(answer, form, version());
                     }});
  }
  files.push_back({options.out + "/" + kTrace, trace});
  return files;
}

// What --trace-of chooses of the scenario that the report is of.
measure::Report chosen_timelines(const input::Document& document,
                                 const measure::TraceChoice& choice, const RunOptions& options,
                                 const measure::Report& report) {
  measure::Report chosen;
  chosen.scenario = report.scenario;
  chosen.executor = report.executor;
  chosen.fitted = report.fitted;
  measure::trace(document, choice, predictor_named(options.executor).make, chosen);
  return chosen;
}

int run_to_target(const RunOptions& options, const input::Document& document,
                  worth::Objective objective) {
  for (const auto& [name, value] : {std::pair("--out", options.out),
                                    {"--trace", options.trace},
                                    {"--shards", options.shards}}) {
    if (!value.empty()) {
      throw InputError(std::string(name) + " is for steps: --objective " +
                       options.objective.objective + " has none of it");
    }
  }
  expect_writable({options.html, options.svg});
  announce(input::parse_scenario(document), measure::Answer::kRun);
  const worth::Worth worth = worth::worth_of(document, std::move(objective), options.executor,
                                             predictor_named(options.executor).make, std::nullopt);
  const reports::Answer answer = reports::answer_of(worth, "run");
  const SideFile svg{options.svg,
                     [&] { return reports::chart::svg_file(reports::worth_figure(worth)); }};
  answer_with({svg, html_file(options.html, answer)}, [&] { print(answer, options.format); });
  return 0;
}

int run(const RunOptions& options) {
  auto objective = objective_of(options.objective);
  if (!objective && !options.svg.empty()) {
    throw InputError("--svg draws the way to a target: it needs --objective; --html has figures");
  }
  if (!options.trace_of.empty() && options.trace.empty() && options.out.empty()) {
    throw InputError("--trace-of says what a trace shows: it needs --trace FILE or --out");
  }
  if (!options.grain.empty() && options.executor != "sim") {
    throw InputError("--grain: the " + options.executor +
                     " executor has no grain, only a simulation has: add --executor sim");
  }
  input::Document document = read(options.scenario);
  if (!options.grain.empty()) {
    input::set_key(document, "simulation", document.root.value("simulation", Json::object()));
    input::set_key(document, "simulation.grain", options.grain);
  }
  if (objective) return run_to_target(options, document, std::move(*objective));
  const auto shard = shard_among_ranks(options.shards);
  Progress progress("syncline run");
  measure::StudyOptions study;
  study.executor = options.executor;
  study.make_executor = predictor_named(options.executor).make;
  study.trace = !options.trace.empty() || !options.out.empty() || !options.html.empty();
  study.progress = [&](std::size_t done, std::size_t wanted) { progress.update(done, wanted); };
  study.interrupted = interrupted;
  study.only = options.strategies;
  const std::string work_name =
      fingerprint(document.root.dump() + options.executor + Json(options.strategies).dump());
  study.parallel_map = shared_rows(options.jobs, options.shards, shard, work_name);
  // What cannot be written is known before the work, not after it.
  study.judged = [&] {
    if (!options.out.empty()) make_folder(options.out);
    if (!options.shards.empty()) make_folder(options.shards);
    if (shard && shard->rank != 0) return;
    expect_writable({options.trace, options.html});
    expect_writable(files_in(options.out));
  };
  catch_interrupts();
  const Scenario scenario = input::parse_scenario(document);
  chosen_strategies(scenario, options.strategies, document.file);
  const auto choice = trace_choice(options.trace_of, document, scenario, options.strategies);
  announce(scenario,
           options.executor == "sim" ? measure::Answer::kSimulate : measure::Answer::kRun);
  measure::Report report = measure::run_study(document, study);
  // The answer is rank 0's to give.
  if (shard && shard->rank != 0) return interrupted() ? kInterruptedExit : 0;

  const reports::Answer answer = reports::answer_of(report);
  std::optional<measure::Report> chosen;
  if (choice) chosen = chosen_timelines(document, *choice, options, report);
  answer_with(side_files(options, chosen ? *chosen : report, answer),
              [&] { print(answer, options.format); });
  if (!report.complete) return kInterruptedExit;
  forget_shared_rows(options.shards, shard, work_name);
  return 0;
}

}  // namespace

VerbAction add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  auto* verb = app.add_subcommand("run", "Price every strategy of a scenario and print the table");
  add_scenario(*verb, options->scenario);
  add_strategies(*verb, options->strategies,
                 "strategies to price, instead of all: beside the baseline and those whose rows "
                 "the scenario is calibrated on");
  verb->add_option("--executor", options->executor,
                   "model: closed form, microseconds a row; sim: SimGrid, every link and rank")
      ->check(CLI::IsMember(predictor_names()))
      ->capture_default_str();
  add_format(*verb, options->format);
  verb->add_option("--grain", options->grain,
                   "granularity of the simulation: merged (default), or step for every message")
      ->check(CLI::IsMember({"merged", "step"}));
  verb->add_option("--out", options->out,
                   "folder for report.txt, report.md, rows.csv, report.json and trace.json");
  add_html(*verb, options->html);
  verb->add_option("--trace", options->trace,
                   "file for a Chrome trace of the first sweep point (open in ui.perfetto.dev)");
  add_trace_of(*verb, options->trace_of);
  verb->add_option("--jobs", options->jobs, "processes that share the rows; the answer is the same")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  verb->add_option(
      "--shards", options->shards,
      "folder that all ranks of an mpirun or a Slurm array share: they share the rows, "
      "rank 0 prints");
  add_objective(*verb, options->objective);
  verb->add_option("--svg", options->svg,
                   "with --objective: file for loss or accuracy over the time of the training");
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
