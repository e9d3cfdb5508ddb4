#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "cli/modules/live.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/base/error.h"
#include "formats/launch/stand_ins.h"
#include "formats/text/visible.h"
#include "live/processes.h"

namespace syncline::cli {
namespace {

namespace fs = std::filesystem;

struct CaptureVerb {
  std::vector<std::string> command;
  std::string out;
};

// A folder that is deleted with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (fs::temp_directory_path() / "syncline-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) {
      throw MachineError(path_ + ": " + std::strerror(errno));
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Returns the command; a script given without a shell runs in bash.
std::vector<std::string> as_command(const std::vector<std::string>& given) {
  std::error_code error;
  const std::string& first = given.front();
  std::string head;
  if (fs::is_regular_file(first, error)) std::getline(std::ifstream(first), head);
  const bool shell = fs::path(first).extension() == ".sh" || head.find("#!/bin/bash") == 0 ||
                     head.find("#!/usr/bin/env bash") == 0 || head.find("#!/bin/sh") == 0;
  if (!shell || !fs::is_regular_file(first, error)) return given;
  std::vector<std::string> words{"bash"};
  words.insert(words.end(), given.begin(), given.end());
  return words;
}

// Continues in a child as the command's process. This process waits for the command and, for a few
// seconds, for the processes it left: launches in the background still record themselves.
void watch_from_above() {
  constexpr std::time_t kSeconds = 3;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t above = ::getpid();
  const pid_t command = ::fork();
  if (command < 0) throw MachineError(std::string("fork: ") + std::strerror(errno));
  if (command == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != above) ::_exit(1);
    return;
  }
  // Only the command keeps the pipe that reports a program which cannot be run.
  ::close_range(3, ~0U, 0);
  int code = 0;
  std::time_t end = 0;
  for (;;) {
    int status = 0;
    const pid_t gone = ::waitpid(-1, &status, end == 0 ? 0 : WNOHANG);
    if (gone == command) {
      code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      end = std::time(nullptr) + kSeconds;
    } else if (gone < 0 || (gone == 0 && std::time(nullptr) >= end)) {
      ::_exit(code);
    } else if (gone == 0) {
      ::usleep(10'000);
    }
  }
}

void tell(const std::string& text) {
  constexpr std::size_t kWidth = 80;
  for (const auto& line : reports::wrap(text, kWidth, 4)) std::cerr << line << "\n";
}

// Lists the launches with their numbers, and the commands that read them.
void tell_launches(const std::vector<launch::CapturedLaunch>& launches, const std::string& out) {
  constexpr std::size_t kMaxLines = 20, kWidth = 74;
  for (std::size_t i = 0; i < std::min(launches.size(), kMaxLines); ++i) {
    std::cerr << "  " << i + 1 << "  " << launch::line_of(launches[i], kWidth) << "\n";
  }
  if (launches.size() > kMaxLines) {
    std::cerr << "  and " << launches.size() - kMaxLines << " more\n";
  }
  const std::string file = out.empty() ? "-" : out;
  tell("Next: syncline init " + file + " --node KIND --nodes N" +
       (launches.size() > 1 ? " --launch NUMBER (else the one that trains)" : ""));
}

std::string as_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return shorten_text(visible(line), 80);
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMax = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMax, names.size()); ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  if (names.size() > kMax) text += " and " + std::to_string(names.size() - kMax) + " more";
  return text;
}

// Names the commands that did not run in a script; empty if all did.
std::string missing_text(const std::string& folder) {
  const std::vector<std::string> missing = launch::read_missing(folder);
  const std::vector<std::string> held = launch::read_held_back(folder);
  std::string text;
  if (!missing.empty()) text = "this machine lacks " + listed(missing);
  if (!held.empty()) text += (text.empty() ? "" : "; ") + ("held back: " + listed(held));
  return text.empty() ? text : text + "; taken to succeed without an output";
}

int run(const CaptureVerb& verb) {
  note_files_of(verb.command);
  expect_writable({verb.out});
  const std::vector<std::string> words = as_command(verb.command);
  const std::string line = as_line(words);
  const TemporaryFolder folder;
  live::RankCommand script;
  script.words = words;
  script.environment = launch::write_stand_ins(folder.path());
  script.before_exec = watch_from_above;
  script.out = STDERR_FILENO;  // stdout is for the captured launches
  tell("Runs '" + line +
       "' with stand-ins for torchrun, python, srun and the like: no training starts, and nothing "
       "older is removed, installed or fetched; its other commands really run.");
  const live::JobEnd end = live::run_ranks({script}, {});
  const int code = end.ranks.front().code;
  const std::vector<launch::CapturedLaunch> launches = launch::read_launches(folder.path());
  const std::string missing = missing_text(folder.path());
  if (launches.empty()) {
    if (end.interrupted != 0) return 128 + end.interrupted;
    const std::string failed = code == 0 ? "" : launch::read_failure(folder.path());
    throw InputError("capture: '" + line + "' ended with exit code " + std::to_string(code) +
                     " and launched no training" +
                     (failed.empty() ? "" : ": '" + failed + "' failed on this machine") +
                     "; launchers that another program calls by their path are not captured" +
                     (missing.empty() ? "" : "; " + missing));
  }
  const std::string text = launch::json_of(launches).dump(2) + "\n";
  if (verb.out.empty()) {
    std::cout << text << std::flush;
  } else {
    write_file(verb.out, text);
  }
  if (!missing.empty()) tell("Not everything ran: " + missing + ".");
  if (end.interrupted != 0) {
    tell("Interrupted: later launches are missing.");
  } else if (launches.size() >= launch::kMaxLaunches) {
    tell("Ended after " + std::to_string(launches.size()) + " launches: no more are taken.");
  } else if (code != 0) {
    tell("The script ended with exit code " + std::to_string(code) +
         ", as it may where a training was to leave something: later launches are missing.");
  }
  if (!verb.out.empty()) tell("Written: " + verb.out);
  tell_launches(launches, verb.out);
  return end.interrupted != 0 ? 128 + end.interrupted : 0;
}

}  // namespace

VerbAction add_capture(CLI::App& verb) {
  auto options = std::make_shared<CaptureVerb>();
  add_file(verb, "-o,--out", options->out, "write the launches to this file (default: stdout)");
  verb.add_option("command", options->command, "after --: the script, such as bash train.sh")
      ->required();
  verb.footer(
      "The command runs, but torchrun, deepspeed, accelerate, horovodrun, mpirun, srun\n"
      "and python on a script that trains only write down what they are given:\n"
      "  syncline capture -o launch.json -- bash train.sh\n"
      "  syncline init launch.json --node dgx-h100 --nodes 8 -o job.json");
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
