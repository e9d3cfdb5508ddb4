#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>

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

// Rows as lines of CSV on stdout, each written as a whole once it is priced: what has been done is
// there, however the program ends.
class RowStream {
 public:
  void put(const measure::Row& row) {
    if (!lines_) {
      lines_.emplace(row);
      std::cout << lines_->head();
    }
    std::cout << lines_->line(row) << std::flush;
    if (!std::cout) throw MachineError("standard output: cannot be written");
    ++rows_;
  }
  std::size_t rows() const { return rows_; }

 private:
  std::optional<reports::CsvRows> lines_;
  std::size_t rows_ = 0;
};

// Whether each row can be printed as it comes. A table's columns are as wide as their longest cell,
// a document of JSON says at its end what came of it all, and the columns of a CSV with published
// figures depend on all of them.
bool is_streamed(const RunOptions& options, const Scenario& scenario) {
  return options.format.format == reports::Format::kCsv && scenario.published.empty() &&
         options.out.empty() && options.html.empty() && options.shards.empty();
}

measure::Answer answer_of(const RunOptions& options, bool streamed) {
  if (options.executor == "sim") return measure::Answer::kSimulate;
  return streamed ? measure::Answer::kRunStreamed : measure::Answer::kRun;
}

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

void expect_writable_files(const RunOptions& options, const std::optional<run::Shard>& shard) {
  if (!options.out.empty()) make_folder(options.out);
  if (!options.shards.empty()) make_folder(options.shards);
  if (shard && shard->rank != 0) return;
  expect_writable({options.trace, options.html});
  expect_writable(files_in(options.out));
}

// A run's study, with what is told while it lasts.
class Run {
 public:
  Run(const RunOptions& options, const input::Document& document)
      : options_(options),
        document_(document),
        shard_(shard_among_ranks(options.shards)),
        work_name_(fingerprint(document.root.dump() + options.executor +
                               Json(options.strategies).dump())) {}

  int go() {
    catch_interrupts();
    const Scenario scenario = input::parse_scenario(document_);
    chosen_strategies(scenario, options_.strategies, document_.file);
    const auto choice = trace_choice(options_.trace_of, document_, scenario, options_.strategies);
    streamed_ = is_streamed(options_, scenario);
    announce(scenario, answer_of(options_, streamed_));
    const measure::Report report = measure::run_study(document_, study());
    progress_.reset();
    // The answer is rank 0's to give.
    if (shard_ && shard_->rank != 0) return interrupted() ? kInterruptedExit : 0;
    const reports::Answer answer = reports::answer_of(report);
    std::optional<measure::Report> chosen;
    if (choice) chosen = chosen_timelines(document_, *choice, options_, report);
    answer_with(side_files(options_, chosen ? *chosen : report, answer), [&] {
      if (stream_.rows() > 0) {
        tell_remarks(answer.remarks);
      } else {
        print(answer, options_.format);
      }
    });
    if (!report.complete) return tell_interrupted(report);
    forget_shared_rows(options_.shards, shard_, work_name_);
    return 0;
  }

 private:
  measure::StudyOptions study() {
    measure::StudyOptions study;
    study.executor = options_.executor;
    study.make_executor = predictor_named(options_.executor).make;
    study.trace = !options_.trace.empty() || !options_.out.empty() || !options_.html.empty();
    study.only = options_.strategies;
    study.interrupted = interrupted;
    study.parallel_map = shared_rows(options_.jobs, options_.shards, shard_, work_name_);
    progress_.emplace("syncline run: checking sweep points");
    study.judging = [&](std::size_t done, std::size_t wanted) { progress_->update(done, wanted); };
    // What cannot be written is known before the work, not after it.
    study.judged = [&] {
      expect_writable_files(options_, shard_);
      progress_.emplace("syncline run");
    };
    // On a terminal the rows themselves say how far it is.
    const bool rows_show = streamed_ && ::isatty(STDOUT_FILENO) == 1;
    study.progress = [&, rows_show](std::size_t done, std::size_t wanted) {
      wanted_ = wanted;
      if (!rows_show) progress_->update(done, wanted);
    };
    if (streamed_) study.take_row = [&](const measure::Row& row) { stream_.put(row); };
    return study;
  }

  int tell_interrupted(const measure::Report& report) const {
    const std::size_t rows = streamed_ ? stream_.rows() : report.rows.size();
    std::cerr << "syncline: interrupted "
              << (rows == 0 ? "before the first row"
                            : "after " + std::to_string(rows) + " of " + std::to_string(wanted_) +
                                  " rows")
              << "\n";
    return kInterruptedExit;
  }

  const RunOptions& options_;
  const input::Document& document_;
  const std::optional<run::Shard> shard_;
  const std::string work_name_;
  std::optional<Progress> progress_;
  RowStream stream_;
  bool streamed_ = false;
  std::size_t wanted_ = 0;
};

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
  return Run(options, document).go();
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
