#include "cli/output.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <sstream>
#include <string_view>

#include "cli/built_in.h"
#include "cli/heartbeat.h"
#include "cli/options.h"
#include "cli/process.h"
#include "core/base/error.h"
#include "formats/text/visible.h"
#include "reports/answer.h"
#include "reports/format.h"

namespace syncline::cli {
namespace {

void add_color(CLI::App& verb, ColourMode& colour) {
  static const std::vector<std::string> words{"auto", "always", "never"};
  verb.add_option_function<std::string>(
          "--color",
          [&colour](const std::string& word) {
            const auto at = std::find(words.begin(), words.end(), word) - words.begin();
            colour = static_cast<ColourMode>(at);
          },
          "colour the winner and slower strategies")
      ->transform(one_of_words(words))
      ->default_str(words.front())
      ->group("Output");
}

// Destination of std::cout at the start: redirected inside the process, it is no terminal.
const std::streambuf* const kOwnStdout = std::cout.rdbuf();
const std::streambuf* const kOwnStderr = std::cerr.rdbuf();

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::size_t terminal_width(int descriptor) {
  constexpr std::size_t kUsual = 80;
  const std::string_view columns_text = variable("COLUMNS");
  std::size_t columns = 0;
  const auto read =
      std::from_chars(columns_text.data(), columns_text.data() + columns_text.size(), columns);
  if (read.ec == std::errc() && columns > 0) return columns;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kUsual;
}

}  // namespace

void add_format(CLI::App& verb, Output& output) {
  add_color(verb, output.colour);
  const CLI::Validator known_as_table(
      [](std::string& word) {
        if (word == "text") word = reports::format_words().front();
        return std::string();
      },
      "");
  verb.add_option_function<std::string>(
          "--format",
          [&output](const std::string& word) { output.format = reports::format_of(word); },
          "output")
      ->transform(one_of_words(reports::format_words()))
      ->transform(known_as_table)  // the later one comes first
      ->default_str(reports::format_words().front());
}

void add_html(CLI::App& verb, Output& output) {
  add_file(verb, "--html", output.html, "write a page with figures, for a browser");
}

void add_verbose(CLI::App& verb, Output& output) {
  output.brief = true;
  verb.add_flag_callback(
      "--verbose", [&output] { output.brief = false; },
      "print the whole answer: every column, verdict, note and source");
}

void print(const reports::Answer& answer, const Output& output) {
  break_silence();
  reports::Screen screen = stdout_screen(output.colour);
  screen.brief = output.brief;
  std::cout << reports::format_answer(answer, output.format, version(), screen) << std::flush;
  if (output.format == reports::Format::kCsv) tell_warnings(answer.warnings);
}

SideFile html_file(const Output& output, const reports::Answer& answer) {
  return {output.html, [&answer] { return reports::html_page(answer, version()); }};
}

void write_answer(const std::vector<SideFile>& files, const std::function<void()>& print_answer) {
  std::exception_ptr first;
  std::vector<std::string> written;
  for (const auto& file : files) {
    if (file.path.empty()) continue;
    try {
      write_file(file.path, file.content());
      written.push_back(file.path);
    } catch (const std::exception&) {
      if (!first) first = std::current_exception();
    }
  }
  print_answer();
  tell_written(written);
  if (first) std::rethrow_exception(first);
}

void write_answer(std::vector<SideFile> files, const reports::Answer& answer,
                  const Output& output) {
  files.push_back(html_file(output, answer));
  write_answer(files, [&] { print(answer, output); });
}

void expect_writable(const std::vector<std::string>& paths) {
  for (const auto& path : paths) {
    if (!path.empty()) syncline::expect_writable(path);
  }
  expect_different(paths);
}

void note_files_of(const std::vector<std::string>& commands) {
  for (const std::string& command : commands) {
    std::istringstream words(command);
    for (std::string word; words >> word;) note_read(word);
    note_read(command);  // one word with blanks
  }
}

bool expect_printed() {
  std::cout.flush();
  if (std::cout) return true;
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  const bool reader_has_gone = ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
  if (!reader_has_gone) throw MachineError("standard output: cannot be written");
  return false;
}

// Flushes whole lines: a failure of the machine prints its own line.
void say(const std::string& text) {
  break_silence();
  std::cerr << visible(text) << std::endl;
}

void tell_written(const std::vector<std::string>& paths) {
  std::vector<std::string> named = paths;
  std::erase(named, "");
  if (named.empty()) return;
  break_silence();
  std::cerr << "syncline: wrote " << reports::one_line(reports::join_and(named)) << "\n";
}

void tell_warnings(const std::vector<std::string>& warnings) {
  const bool terminal = std::cerr.rdbuf() == kOwnStderr && ::isatty(STDERR_FILENO) == 1;
  const std::size_t width = terminal ? terminal_width(STDERR_FILENO) : 0;
  break_silence();
  for (const auto& warning : warnings) {
    for (const auto& line : reports::wrap("syncline: " + reports::one_line(warning), width, 2)) {
      std::cerr << line << "\n";
    }
  }
}

reports::Screen stdout_screen(ColourMode colour) {
  const bool terminal = std::cout.rdbuf() == kOwnStdout && ::isatty(STDOUT_FILENO) == 1;
  reports::Screen screen;
  if (terminal) screen.width = terminal_width(STDOUT_FILENO);
  screen.colour = colour == ColourMode::kAuto
                      ? terminal && variable("NO_COLOR").empty() && variable("TERM") != "dumb"
                      : colour == ColourMode::kAlways;
  return screen;
}

Progress::Progress(std::string what, Clock::time_point (*now)())
    : what_(std::move(what)),
      now_(now),
      began_(now()),
      shown_(began_),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (visible_) std::cerr << "\r\033[K" << std::flush;
}

std::optional<double> Progress::seconds_left(std::size_t done, std::size_t wanted,
                                             Clock::time_point now) const {
  // The time of a piece is known after a second of pieces; of many small ones, after a few.
  constexpr double kKnown = 1.0;
  constexpr std::size_t kFew = 5, kMany = 64;
  using Seconds = std::chrono::duration<double>;
  if (Seconds(now - marks_.front().when).count() < kKnown) return std::nullopt;
  const std::size_t needed = wanted < kMany ? 1 : kFew;
  const auto mark = std::find_if(marks_.rbegin(), marks_.rend(),
                                 [&](const Mark& each) { return 2 * each.done <= done; });
  if (mark == marks_.rend() || done - mark->done < needed) return std::nullopt;
  const double each = Seconds(now - mark->when).count() / static_cast<double>(done - mark->done);
  return each * static_cast<double>(wanted - done);
}

void Progress::update(std::size_t done, std::size_t wanted) {
  using Seconds = std::chrono::duration<double>;
  const auto now = now_();
  constexpr double kQuiet = 2.0;
  constexpr double kBetween = 0.2;
  constexpr double kLong = 60;
  if (done == 0) return;
  keep_results();
  if (marks_.empty() || done >= 2 * marks_.back().done) marks_.push_back({done, now});
  if (Seconds(now - began_).count() < kQuiet) return;
  if (visible_ && Seconds(now - shown_).count() < kBetween && done < wanted) return;
  const std::optional<double> seconds = seconds_left(done, wanted, now);
  if (!terminal_ && (seconds.value_or(0) < kLong || told_)) return;
  char line[160];
  const int written =
      std::snprintf(line, sizeof line, "%s: %zu of %zu", what_.c_str(), done, wanted);
  const auto at = std::min(sizeof line - 1, static_cast<std::size_t>(std::max(0, written)));
  if (seconds) std::snprintf(line + at, sizeof line - at, ", about %.0f s left", *seconds);
  break_silence();
  if (terminal_) {
    std::cerr << "\r\033[K" << line << std::flush;
  } else {
    std::cerr << line << std::endl;
  }
  visible_ = terminal_;
  told_ = true;
  shown_ = now;
}

}  // namespace syncline::cli
