#include "cli/run.h"

#include <memory>
#include <optional>
#include <utility>

#include "cli/executors.h"
#include "cli/files.h"
#include "cli/trace_choice.h"
#include "cli/verbs.h"
#include "cli/word_option.h"
#include "core/error.h"
#include "reports/chart/svg.h"
#include "reports/worth_report.h"

namespace syncline::cli {
namespace {

input::Document document_of(const RunOptions& options) {
  if (!options.grain.empty() && options.executor != "sim") {
    throw InputError("--grain: the " + options.executor +
                     " executor has no grain, only a simulation has: add --executor sim");
  }
  input::Document document = read(options.scenario);
  if (!options.grain.empty()) {
    input::set_key(document, "simulation", document.root.value("simulation", Json::object()));
    input::set_key(document, "simulation.grain", options.grain);
  }
  return document;
}

int run(const RunOptions& options) {
  auto objective = objective_of(options.objective);
  if (!objective && !options.svg.empty()) {
    throw InputError("--svg draws the way to a target: it needs --objective; --html has figures");
  }
  if (!options.trace_of.empty() && options.trace.empty() && options.out.empty()) {
    throw InputError("--trace-of says what a trace shows: it needs --trace FILE or --out");
  }
  const input::Document document = document_of(options);
  if (objective) return run_to_target(options, document, std::move(*objective));
  return run_steps(options, document);
}

void add_options(CLI::App& verb, RunOptions& options) {
  add_scenario(verb, options.scenario);
  add_strategies(verb, options.strategies,
                 "strategies to price, instead of all: beside the baseline and those whose rows "
                 "the scenario is calibrated on");
  verb.add_option("--executor", options.executor,
                  "model: closed form, microseconds a row; sim: SimGrid, every link and rank")
      ->transform(one_of_words(predictor_names()))
      ->capture_default_str();
  add_format(verb, options.format);
  verb.add_option("--grain", options.grain,
                  "granularity of the simulation: merged (default), or step for every message")
      ->transform(one_of_words({"merged", "step"}));
  verb.add_option("--out", options.out,
                  "folder for report.txt, report.md, rows.csv, report.json and trace.json");
  add_html(verb, options.html);
  verb.add_option("--trace", options.trace,
                  "file for a Chrome trace of the first sweep point (open in ui.perfetto.dev)");
  add_trace_of(verb, options.trace_of);
  verb.add_option("--jobs", options.jobs, "processes that share the rows; the answer is the same")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  verb.add_option(
      "--part", options.part,
      "I/N: price every N-th sweep point, from the I-th on, as CSV; auto: as Open MPI or "
      "a Slurm array numbers this process");
  add_objective(verb, options.objective);
  verb.add_option("--svg", options.svg,
                  "with --objective: file for loss or accuracy over the time of the training");
}

}  // namespace

int run_to_target(const RunOptions& options, const input::Document& document,
                  worth::Objective objective) {
  for (const auto& [name, value] :
       {std::pair("--out", options.out), {"--trace", options.trace}, {"--part", options.part}}) {
    if (!value.empty()) {
      throw InputError(std::string(name) + " is for steps: --objective " +
                       options.objective.objective + " has none of it");
    }
  }
  expect_writable({options.html, options.svg});
  const worth::Worth worth = worth::worth_of(document, std::move(objective), options.executor,
                                             predictor_named(options.executor).make, std::nullopt);
  const reports::Answer answer = reports::answer_of(worth, "run");
  const SideFile svg{options.svg,
                     [&] { return reports::chart::svg_file(reports::worth_figure(worth)); }};
  answer_with({svg, html_file(options.html, answer)}, [&] { print(answer, options.format); });
  return 0;
}

VerbAction add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  auto* verb = app.add_subcommand("run", "Price every strategy of a scenario and print the table");
  add_options(*verb, *options);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
