// The answers of all verbs: --format, --color and --html in equal terms, one printer, files in
// addition to the answer, and messages on stderr during the work.
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
  bool brief = false;  // the terminal's short page; --verbose prints all
  std::string html;    // file of the page; empty: none
};

// Adds --format: table, markdown, csv or json, and --color: auto, always or never. "text" is the
// old word for table.
void add_format(CLI::App& verb, Output& output);

// Adds --html FILE: the answer as a page with figures (reports/answer.h).
void add_html(CLI::App& verb, Output& output);

// Adds --verbose; without it a table is the answer's short page, if it has one.
void add_verbose(CLI::App& verb, Output& output);

// Prints to stdout, fitted to the terminal if it is one. Warnings that a CSV has no place for go to
// stderr, one per line.
void print(const reports::Answer& answer, const Output& output);

// A file written in addition to the answer; none if `path` is empty.
struct SideFile {
  std::string path;
  std::function<std::string()> content;
};

// Returns the page of --html as a side file. Requires that `answer` outlives it.
SideFile html_file(const Output& output, const reports::Answer& answer);

// Writes the files, then prints the answer, so that its reader can rely on them; names them on
// stderr. A file that cannot be written stops neither the others nor the answer: its failure is
// thrown at the end.
void write_answer(const std::vector<SideFile>& files, const std::function<void()>& print_answer);
// Does the same for an answer, with its page after the other files.
void write_answer(std::vector<SideFile> files, const reports::Answer& answer, const Output& output);

// Checks files before the work. Throws MachineError if one cannot be written, InputError if one was
// read or two are the same file. Skips empty paths.
void expect_writable(const std::vector<std::string>& paths);

// Remembers the files that shell commands name as their inputs. No output of this program replaces
// one.
void note_files_of(const std::vector<std::string>& commands);

// Returns true if the reader is still there: a closed pipe, as by `| head`, is no error. Throws
// MachineError if the printed answer did not reach stdout.
bool expect_printed();

// Prints a line on stderr.
void say(const std::string& text);

// Names the written files on stderr. Skips empty paths.
void tell_written(const std::vector<std::string>& paths);

// Prints warnings on stderr, one per line, for answers without a place for them.
void tell_warnings(const std::vector<std::string>& warnings);

// Returns stdout as a screen. The width is COLUMNS if set, else the terminal's, else 80; without a
// terminal there is no width. kAuto gives colours only on a terminal with codes (TERM is not
// "dumb") without NO_COLOR (https://no-color.org).
reports::Screen stdout_screen(ColourMode colour);

// A line on stderr with the progress of long work and the time left, after two seconds of work. On
// a terminal it is updated; elsewhere it is printed once, and only if more than a minute is left.
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
  // A report of finished work: the first, and then each at twice the work of the last.
  struct Mark {
    std::size_t done;
    Clock::time_point when;
  };
  // Returns the seconds left, by the rate of the later half of the finished work, as the start is
  // not typical. Empty if that half is too short.
  std::optional<double> seconds_left(std::size_t done, std::size_t wanted,
                                     Clock::time_point now) const;
  std::vector<Mark> marks_;
  bool terminal_;
  bool visible_ = false;
  bool told_ = false;
};

}  // namespace syncline::cli
