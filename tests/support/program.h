// Programs as tests run them: in a process group of their own, stdout and stderr in files, ended
// when the test is, waited for with a limit.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/json/json.h"
#include "tests/support/patience.h"
#include "tests/support/scratch.h"

namespace syncline::test {

struct Ran {
  int code = -1;   // exit code, or -1 when a signal ended it
  int signal = 0;  // that signal
  std::string out;
  std::string err;
};

using Variables = std::map<std::string, std::string>;

inline const std::string kSource = SYNCLINE_SOURCE_DIR "/";
inline const std::string kScenarios = kSource + "scenarios/";
inline const std::string kFirst = kScenarios + "first.json";

// A program under way.
class Program {
 public:
  // `words`: the program, sought in PATH, and its arguments. `environment` is added to ours;
  // `prepare` runs in the new process.
  explicit Program(const std::vector<std::string>& words, const Variables& environment = {},
                   const std::function<void()>& prepare = {}) {
    std::vector<std::string> own = words;
    std::vector<char*> argv;
    for (auto& word : own) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string out = said_.path("out");
    const std::string err = said_.path("err");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setpgid(0, 0);
      ::signal(SIGINT, SIG_DFL);  // a shell's background jobs ignore it
      constexpr int kFlags = O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC;
      ::dup2(::open(out.c_str(), kFlags, 0644), STDOUT_FILENO);
      ::dup2(::open(err.c_str(), kFlags, 0644), STDERR_FILENO);
      for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
      if (prepare) prepare();
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    ::setpgid(pid_, pid_);  // whoever is first
  }
  ~Program() { end(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  std::string out() const { return text_of(said_.path("out")); }
  std::string err() const { return text_of(said_.path("err")); }
  bool says(const std::string& part) const {
    return comes_true([&] { return (out() + err()).find(part) != std::string::npos; });
  }

  // What it said and how it ended. One that is still there after `limit` is killed: signal 9.
  Ran wait(std::chrono::seconds limit = std::chrono::seconds(120)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    end();
    return ran();
  }

  // The same without a limit, and whoever it left behind lives on until the test ends.
  Ran wait_for_program() {
    take_status();
    return ran();
  }

 private:
  Ran ran() const {
    Ran ran;
    if (WIFEXITED(status_)) ran.code = WEXITSTATUS(status_);
    if (WIFSIGNALED(status_)) ran.signal = WTERMSIG(status_);
    ran.out = out();
    ran.err = err();
    return ran;
  }
  void take_status() {
    if (!waited_) ::waitpid(pid_, &status_, 0);
    waited_ = true;
  }
  void end() {
    if (ended_) return;
    ::kill(-pid_, SIGKILL);  // and whoever it left behind
    take_status();
    ended_ = true;
  }

  Scratch said_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool waited_ = false;
  bool ended_ = false;
};

// A line of shell, run to its end.
inline Ran shell(const std::string& command) { return Program({"sh", "-c", command}).wait(); }

// `syncline` with these arguments.
inline std::vector<std::string> syncline_words(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{SYNCLINE_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}
inline Ran syncline_run(const std::vector<std::string>& arguments,
                        const Variables& environment = {}) {
  return Program(syncline_words(arguments), environment).wait();
}

// Words, and more of them.
inline std::vector<std::string> joined(std::vector<std::string> words,
                                       const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// What it prints, where it is to end well.
inline std::string syncline_out(const std::vector<std::string>& arguments) {
  const Ran ran = syncline_run(arguments);
  EXPECT_EQ(ran.code, 0) << testing::PrintToString(arguments) << ran.err;
  return ran.out;
}

// What it answers to a program.
inline Json syncline_json(const std::vector<std::string>& arguments) {
  return Json::parse(syncline_out(joined(arguments, {"--format", "json"})), nullptr, false);
}

// Process ids in a process group that are alive; zombies, which only wait to be collected, are not.
inline std::set<pid_t> living(pid_t group) {
  std::set<pid_t> members;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / "stat");
    std::string line;
    if (!std::getline(in, line)) continue;  // gone meanwhile
    // "pid (name) state parent group ...": the name may hold anything.
    std::istringstream rest(line.substr(line.rfind(')') + 1));
    char state = ' ';
    pid_t parent = 0;
    pid_t of_group = 0;
    rest >> state >> parent >> of_group;
    if (of_group == group && state != 'Z' && state != 'X') members.insert(std::stoi(name));
  }
  return members;
}

// Processes whose command line has this word, and whose environment has this "NAME=VALUE".
inline std::vector<pid_t> processes_with(const std::string& word,
                                         const std::string& variable = "") {
  const auto has = [](const std::filesystem::path& file, const std::string& whole, bool part) {
    std::ifstream in(file, std::ios::binary);
    std::string entry;
    while (std::getline(in, entry, '\0')) {
      if (part ? entry.find(whole) != std::string::npos : entry == whole) return true;
    }
    return false;
  };
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || !has(entry.path() / "cmdline", word, true)) continue;
    if (variable.empty() || has(entry.path() / "environ", variable, false)) found.push_back(pid);
  }
  return found;
}

}  // namespace syncline::test
