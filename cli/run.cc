#include <unistd.h>
#include <cstdlib>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "cli/built_in.h"
#include "cli/heartbeat.h"
#include "cli/objective.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/predictors.h"
#include "cli/process.h"
#include "cli/verbs.h"
#include "core/base/error.h"
#include "formats/input/document.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/scenario/scenario.h"
#include "formats/text/parse_number.h"
#include "formats/text/visible.h"
#include "reports/format.h"
#include "reports/run_report.h"
#include "reports/run_rows.h"
#include "reports/trace.h"
#include "studies/questions/run.h"
#include "studies/rows/row_evaluator.h"
#include "studies/study/study.h"

namespace syncline::cli {
namespace {

// Returns the number in the text; 0 if it is none.
std::size_t number_of(const std::string& text) {
  return parse_number<std::size_t>(text).value_or(0);
}

measure::Part checked(measure::Part part, const std::string& from) {
  if (part.number >= 1 && part.number <= part.count) return part;
  throw InputError("--part: found '" + shorten_text(visible(from), 60) +
                   "', expected I/N with I from 1 to N, or auto");
}

// Returns the launcher's part. Open MPI counts ranks from 0, a Slurm array from any number.
measure::Part part_of_launcher() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  std::string place = variable("OMPI_COMM_WORLD_RANK");
  std::string count = variable("OMPI_COMM_WORLD_SIZE");
  std::string first = "0";
  if (place.empty()) {
    place = variable("SLURM_ARRAY_TASK_ID");
    count = variable("SLURM_ARRAY_TASK_COUNT");
    first = variable("SLURM_ARRAY_TASK_MIN");
  }
  if (place.empty()) {
    throw InputError(
        "--part auto: neither Open MPI (OMPI_COMM_WORLD_RANK) nor a Slurm array "
        "(SLURM_ARRAY_TASK_ID) started this process: use --part I/N");
  }
  const std::size_t number = number_of(place) + 1 - number_of(first);
  return checked({number, number_of(count)}, place + " of " + count + " from " + first);
}

// Reads "3/8", or "auto": the part from Open MPI (OMPI_COMM_WORLD_RANK, _SIZE) or a Slurm array
// (SLURM_ARRAY_TASK_ID, _MIN, _COUNT).
measure::Part part_of(const std::string& text) {
  if (text == "auto") return part_of_launcher();
  const auto slash = text.find('/');
  if (slash == std::string::npos) return checked({0, 0}, text);
  return checked({number_of(text.substr(0, slash)), number_of(text.substr(slash + 1))}, text);
}

constexpr const char* kStrategy = "strategy";
constexpr const char* kRank = "rank";

[[noreturn]] void refuse(const std::string& word, const std::string& expected) {
  throw InputError("--trace-of: found '" + shorten_text(word) + "', expected " + expected);
}

// Returns the index of a swept key, given in full or by its end ("nodes" of "cluster.nodes").
std::size_t swept_key(const Scenario& scenario, const std::string& key, const std::string& word) {
  std::vector<std::string> known{kStrategy, kRank};
  std::vector<std::size_t> meant;
  for (std::size_t i = 0; i < scenario.sweep.size(); ++i) {
    const std::string& path = scenario.sweep[i].first;
    if (path == key) return i;
    if (path.ends_with("." + key)) meant.push_back(i);
    known.push_back(path);
  }
  if (meant.size() == 1) return meant.front();
  refuse(word, "KEY=VALUE with a key of: " + reports::join(known) + did_you_mean(key, known));
}

void put_swept(const Scenario& scenario, const std::string& key, const std::string& value,
               const std::string& word, SweepPoint& point) {
  const std::size_t at = swept_key(scenario, key, word);
  std::vector<std::string> all;
  for (const Json& known : scenario.sweep[at].second) {
    if (plain_text(known) == value || try_parse_json(value) == known) {
      point[at].second = known;
      return;
    }
    all.push_back(plain_text(known));
  }
  refuse(word, scenario.sweep[at].first + " at a point of the sweep: " + reports::join(all));
}

void require_chosen_ranks(const std::vector<int>& ranks, const SweepPoint& point,
                          const input::Document& document) {
  if (ranks.empty()) return;
  if (ranks.size() > reports::kTracedRanks) {
    throw InputError("--trace-of: found " + std::to_string(ranks.size()) +
                     " ranks, a trace shows at most " + std::to_string(reports::kTracedRanks));
  }
  const int all = measure::at_point(measure::without_sweep(document), point).cluster.ranks();
  const int last = *std::max_element(ranks.begin(), ranks.end());
  if (last < all) return;
  refuse("rank=" + std::to_string(last),
         measure::name_of({point, "a rank of 0 to " + std::to_string(all - 1)}));
}

// Returns the choice by the words of --trace-of; empty without words. The default is the first
// value of each swept key, all of `strategies` and the executor's own ranks.
std::optional<measure::TraceChoice> trace_choice(const std::vector<std::string>& words,
                                                 const input::Document& document,
                                                 const Scenario& scenario,
                                                 const std::vector<std::string>& strategies) {
  if (words.empty()) return std::nullopt;
  measure::TraceChoice choice{Sweep(scenario).point(0), {}, {}};
  for (const auto& word : words) {
    const auto equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == std::string::npos || key.empty()) refuse(word, "KEY=VALUE");
    const std::string value = word.substr(equals + 1);
    if (key == kStrategy) {
      choice.strategies.push_back(chosen_strategy(scenario, value, document.file).name);
    } else if (key == kRank) {
      choice.ranks.push_back(parse_number<int>(value).value_or(-1));
      if (choice.ranks.back() < 0) refuse(word, "the number of a rank, from 0");
    } else {
      put_swept(scenario, key, value, word, choice.point);
    }
  }
  require_chosen_ranks(choice.ranks, choice.point, document);
  if (choice.strategies.empty()) {
    for (const auto& strategy : chosen_strategies(scenario, strategies, document.file)) {
      choice.strategies.push_back(strategy.name);
    }
  }
  return choice;
}

struct RunOptions : questions::Run {
  ScenarioOption scenario;
  Output output;
  std::string out;
  std::string trace;
  std::vector<std::string> trace_of;
  std::string svg;
  std::string part;
};

constexpr std::pair<const char*, reports::Format> kReports[] = {
    {"report.txt", reports::Format::kTable},
    {"report.md", reports::Format::kMarkdown},
    {"rows.csv", reports::Format::kCsv},
    {"report.json", reports::Format::kJson}};
constexpr const char* kTrace = "trace.json";

// Makes the folder, and throws MachineError, before the work, if a file cannot be written.
void expect_writable_files(const RunOptions& options) {
  std::vector<std::string> files{options.trace, options.output.html};
  if (!options.out.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.out, error);
    if (error) throw MachineError(options.out + ": " + error.message());
    for (const auto& [name, format] : kReports) files.push_back(options.out + "/" + name);
    files.push_back(options.out + "/" + kTrace);
  }
  expect_writable(files);
}

bool writes_files(const RunOptions& options) {
  return !options.trace.empty() || !options.output.html.empty() || !options.out.empty();
}

// Returns the files to write in addition to the answer. `traced` and `answer` must outlive them.
std::vector<SideFile> side_files(const RunOptions& options, const measure::Report& traced,
                                 const reports::Answer& answer) {
  const auto trace = [&traced] { return reports::chrome_trace(traced); };
  std::vector<SideFile> files{{options.trace, trace}, html_file(options.output, answer)};
  if (options.out.empty()) return files;
  for (const auto& [name, format] : kReports) {
    files.push_back({options.out + "/" + name, [&answer, form = format] {
                       return reports::format_answer(answer, form, version());
                     }});
  }
  files.push_back({options.out + "/" + kTrace, trace});
  return files;
}

// Returns true if each row can be printed at once. A table's columns depend on their longest cell,
// a JSON document ends with a summary. Columns of a CSV with published figures depend on all rows.
bool is_streamed(const RunOptions& options, const Scenario& scenario) {
  return options.output.format == reports::Format::kCsv && scenario.published.empty() &&
         options.out.empty() && options.output.html.empty();
}

// Returns the requested part. Rows of a part are joined with those of others, so only rows are
// printed, with columns that depend on no other row.
measure::Part asked_part(const RunOptions& options, const Scenario& scenario) {
  if (options.part.empty()) return {};
  if (!scenario.published.empty()) {
    throw InputError("--part: columns of published figures depend on all rows: remove 'published'");
  }
  if (!options.trace.empty() || !is_streamed(options, scenario)) {
    throw InputError(
        "--part prints rows of CSV only: add --format csv, remove --out, --html and --trace");
  }
  return part_of(options.part);
}

// Rows by the time of a step: their study, and messages during it.
class StudyOfRows {
 public:
  StudyOfRows(const RunOptions& options, const input::Document& document)
      : options_(options), document_(document) {}

  int go() {
    catch_interrupts(kInterruptWait);
    const Scenario scenario = input::parse_scenario(document_);
    chosen_strategies(scenario, options_.strategies, document_.file);
    const auto choice = trace_choice(options_.trace_of, document_, scenario, options_.strategies);
    part_ = asked_part(options_, scenario);
    if (is_streamed(options_, scenario)) stream_.emplace(std::cout);
    const measure::Report report = measure::run_study(document_, study());
    progress_.reset();
    const reports::Answer answer = reports::answer_of(report);
    const measure::Report traced =
        choice ? measure::chosen_timelines(document_, *choice,
                                           predictor_named(options_.executor).make, report)
               : reports::step_of_best(report);
    write_answer(side_files(options_, traced, answer), [&] {
      if (stream_ && (stream_->rows() > 0 || part_.count > 1))
        return tell_warnings(answer.warnings);
      print(answer, options_.output);
    });
    // A reader who closes the pipe after the first rows is done, but files are not.
    return report.complete || (unread_ && !writes_files(options_)) ? 0 : tell_interrupted(report);
  }

 private:
  measure::StudyOptions study() {
    measure::StudyOptions study = questions::study_of(options_);
    study.trace = writes_files(options_);
    study.interrupted = [this] { return unread_ || is_interrupted(); };
    study.part = part_;
    progress_.emplace("syncline run: checking sweep points");
    study.judging = [&](std::size_t done, std::size_t wanted) { progress_->update(done, wanted); };
    // Unwritable files are reported before the work, not after it.
    study.judged = [&] {
      expect_writable_files(options_);
      progress_.emplace("syncline run");
    };
    // On a terminal the rows themselves show the progress.
    const bool rows_show = stream_ && ::isatty(STDOUT_FILENO) == 1;
    study.progress = [&, rows_show](std::size_t done, std::size_t wanted) {
      wanted_ = wanted;
      if (!rows_show) progress_->update(done, wanted);
    };
    if (!stream_) return study;
    study.take_row = [&](const measure::Row& row) {
      break_silence();
      stream_->put(row);
      unread_ = !expect_printed();
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
  bool unread_ = false;  // rows have no reader any more
};

// Runs strategies and ranks them by the time of a training to its target.
int run_to_target(const RunOptions& options, const input::Document& document) {
  for (const auto& [name, value] :
       {std::pair("--out", options.out), {"--trace", options.trace}, {"--part", options.part}}) {
    if (!value.empty()) {
      throw InputError(std::string(name) + " is not available with --objective " +
                       options.objective.objective);
    }
  }
  expect_writable({options.output.html, options.svg});
  answer_to_target({document, options.objective, options.executor, options.svg, options.output});
  return 0;
}

int run(const RunOptions& options) {
  questions::expect_fitting(options);
  if (!options.objective.has_target() && !options.svg.empty()) {
    throw InputError("--svg needs --objective; --html has figures of steps");
  }
  if (!options.trace_of.empty() && options.trace.empty() && options.out.empty()) {
    throw InputError("--trace-of needs --trace FILE or --out FOLDER");
  }
  input::Document document = read(options.scenario);
  questions::set_grain(options, document);
  if (options.objective.has_target()) return run_to_target(options, document);
  return StudyOfRows(options, document).go();
}

void add_options(CLI::App& verb, RunOptions& options) {
  add_scenario(verb, options.scenario);
  const questions::Arguments arguments = arguments_of(options);
  add_arguments(verb, arguments, {"strategy", "executor"});
  add_format(verb, options.output);
  add_verbose(verb, options.output);
  add_arguments(verb, arguments, {"grain"});
  verb.add_option("--out", options.out, "write report.txt, .md, .json, rows.csv and trace.json")
      ->type_name("FOLDER");
  add_html(verb, options.output);
  add_file(verb, "--trace", options.trace, "write a Chrome trace of the first sweep point");
  verb.add_option("--trace-of", options.trace_of,
                  "limit the trace: strategy=NAME, rank=N, sweep KEY=VALUE")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  add_arguments(verb, arguments, {"jobs"});
  verb.add_option("--part", options.part,
                  "print every N-th sweep point from the I-th as CSV; auto: this process's")
      ->type_name("I/N")
      ->group("Rows");
  add_arguments(verb, arguments);
  add_file(verb, "--svg", options.svg, "plot loss or accuracy over training time, with --objective")
      ->group("Training to a target");
}

}  // namespace

VerbAction add_run(CLI::App& verb) {
  auto options = std::make_shared<RunOptions>();
  add_options(verb, *options);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
