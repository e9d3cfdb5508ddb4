#include <unistd.h>

#include <iostream>
#include <optional>

#include "cli/executors.h"
#include "cli/exit.h"
#include "cli/part.h"
#include "cli/progress.h"
#include "cli/run_files.h"
#include "cli/trace_choice.h"
#include "core/input/read_scenario.h"
#include "core/measure/study.h"
#include "core/measure/tracing.h"
#include "reports/run_report.h"

namespace syncline::cli {
namespace {

// Whether each row can be printed as it comes. A table's columns are as wide as their longest cell,
// a document of JSON says at its end what came of it all, and the columns of a CSV with published
// figures depend on all of them.
bool is_streamed(const RunOptions& options, const Scenario& scenario) {
  return options.format.format == reports::Format::kCsv && scenario.published.empty() &&
         options.out.empty() && options.html.empty();
}

// Rows of a part are put beside those of others: they are all that may be printed, with columns
// that hang on no other row.
measure::Part asked_part(const RunOptions& options, const Scenario& scenario) {
  if (options.part.empty()) return {};
  if (!scenario.published.empty()) {
    throw InputError(
        "--part: published figures make columns that depend on all rows: leave 'published' out");
  }
  if (!options.trace.empty() || !is_streamed(options, scenario)) {
    throw InputError(
        "--part: a part is rows of CSV alone: add --format csv, leave out --out, --html, --trace");
  }
  return part_of(options.part);
}

// A run's study, with what is told while it lasts.
class StudyOfRows {
 public:
  StudyOfRows(const RunOptions& options, const input::Document& document)
      : options_(options), document_(document) {}

  int go() {
    catch_interrupts();
    const Scenario scenario = input::parse_scenario(document_);
    chosen_strategies(scenario, options_.strategies, document_.file);
    const auto choice = trace_choice(options_.trace_of, document_, scenario, options_.strategies);
    part_ = asked_part(options_, scenario);
    if (is_streamed(options_, scenario)) stream_.emplace(std::cout);
    const measure::Report report = measure::run_study(document_, study());
    progress_.reset();
    const reports::Answer answer = reports::answer_of(report);
    std::optional<measure::Report> chosen;
    if (choice) {
      chosen = measure::chosen_timelines(document_, *choice,
                                         predictor_named(options_.executor).make, report);
    }
    answer_with(side_files(options_, chosen ? *chosen : report, answer), [&] {
      if (stream_ && (stream_->rows() > 0 || part_.count > 1)) return tell_remarks(answer.remarks);
      print(answer, options_.format);
    });
    return report.complete ? 0 : tell_interrupted(report);
  }

 private:
  measure::StudyOptions study() {
    measure::StudyOptions study;
    study.executor = options_.executor;
    study.make_executor = predictor_named(options_.executor).make;
    study.trace = !options_.trace.empty() || !options_.out.empty() || !options_.html.empty();
    study.only = options_.strategies;
    study.interrupted = interrupted;
    study.part = part_;
    study.parallel_map = run::over_processes(options_.jobs);
    progress_.emplace("syncline run: checking sweep points");
    study.judging = [&](std::size_t done, std::size_t wanted) { progress_->update(done, wanted); };
    // What cannot be written is known before the work, not after it.
    study.judged = [&] {
      expect_writable_files(options_);
      progress_.emplace("syncline run");
    };
    // On a terminal the rows themselves say how far it is.
    const bool rows_show = stream_ && ::isatty(STDOUT_FILENO) == 1;
    study.progress = [&, rows_show](std::size_t done, std::size_t wanted) {
      wanted_ = wanted;
      if (!rows_show) progress_->update(done, wanted);
    };
    if (!stream_) return study;
    study.take_row = [&](const measure::Row& row) {
      stream_->put(row);
      expect_printed();
    };
    return study;
  }

  int tell_interrupted(const measure::Report& report) const {
    const std::size_t rows = stream_ ? stream_->rows() : report.rows.size();
    std::cerr << "syncline: interrupted "
              << (rows == 0 ? "before the first row"
                            : "after " + std::to_string(rows) + " of " + std::to_string(wanted_) +
                                  " rows")
              << "\n";
    return kInterruptedExit;
  }

  const RunOptions& options_;
  const input::Document& document_;
  measure::Part part_;
  std::optional<Progress> progress_;
  std::optional<reports::CsvStream> stream_;
  std::size_t wanted_ = 0;
};

}  // namespace

int run_steps(const RunOptions& options, const input::Document& document) {
  return StudyOfRows(options, document).go();
}

}  // namespace syncline::cli
