// How every verb answers: --format, --color and --html with the same words, one printer, files
// beside the answer, and what is told on stderr meanwhile.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/text/files.h"
#include "reports/answer.h"
#include "reports/grid.h"

namespace syncline::cli {

enum class ColourMode { kAuto, kAlways, kNever };

struct Output {
  reports::Format format = reports::Format::kTable;
  ColourMode colour = ColourMode::kAuto;
  bool brief = false;  // the terminal's short page; --verbose asks for the whole one
  std::string html;    // file of the page; empty: none
};

// Adds --format: table, markdown, csv or json, and --color: auto, always or never. "text" is
// accepted for table, as it used to be.
void add_format(CLI::App& verb, Output& output);

// Adds --html FILE: the answer as a page with figures (reports/answer.h).
void add_html(CLI::App& verb, Output& output);

// Adds --verbose, without which a table is the short page of an answer that has one.
void add_verbose(CLI::App& verb, Output& output);

// To stdout, fitted to the terminal if it is one; the warnings that a CSV has no place for to
// stderr, one a line.
void print(const reports::Answer& answer, const Output& output);

// A file that stands beside the answer; of an empty path none is written.
struct SideFile {
  std::string path;
  std::function<std::string()> content;
};

// Returns the page of --html, to be written beside the answer, which must outlive it.
SideFile html_file(const Output& output, const reports::Answer& answer);

// Writes the files, then prints the answer: a reader who sees it may count on them, and names them
// on stderr. One that cannot be written costs neither the others nor the answer: its failure is
// thrown at the end.
void answer_with(const std::vector<SideFile>& files, const std::function<void()>& print_answer);
// The same of an answer with its page behind the other files.
void answer_with(std::vector<SideFile> files, const reports::Answer& answer, const Output& output);

// Throws MachineError where one of them cannot be written, InputError where it was read or two are
// one file: before the work. Empty ones are none.
void expect_writable(const std::vector<std::string>& paths);

// Throws MachineError if what was printed did not reach stdout: an answer that could not be written
// is no answer. Returns whether somebody reads: a pipe that was closed, as by `| head`, is no
// error.
bool expect_printed();

// A line on stderr.
void say(const std::string& text);

// Names files that were written, on stderr. Empty ones are none.
void tell_written(const std::vector<std::string>& paths);

// Warnings where an answer has no place for them: on stderr, one a line.
void tell_warnings(const std::vector<std::string>& warnings);

// Stdout as a screen. The width is COLUMNS, where that is set, else what the terminal says, and 80
// where it says nothing; what is no terminal has none. Colours by themselves only on a terminal
// that obeys codes (TERM is not "dumb") and where NO_COLOR is not set (https://no-color.org).
reports::Screen stdout_screen(ColourMode colour);

// A line on stderr that says how far long work has come and how long it will take, once the work
// has lasted two seconds: on a terminal it is kept up to date, elsewhere it stands once, and only
// where more than a minute is left.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Progress(std::string what, Clock::time_point (*now)() = Clock::now);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::size_t done, std::size_t wanted);

 private:
  std::string what_;
  Clock::time_point (*now_)();
  Clock::time_point began_;
  Clock::time_point shown_;
  // A report of finished work, the first and those at twice as much as the one before.
  struct Mark {
    std::size_t done;
    Clock::time_point when;
  };
  // Seconds that are left, by the later half of what is done: what came before, the start above
  // all, says little of what is to come. Nothing where that is too little.
  std::optional<double> left(std::size_t done, std::size_t wanted, Clock::time_point now) const;
  std::vector<Mark> marks_;
  bool terminal_;
  bool visible_ = false;
  bool told_ = false;
};

}  // namespace syncline::cli
