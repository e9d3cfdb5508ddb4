// The ranks of a job as processes of this machine: started, watched, and ended together. The lab
// uses it (each rank in a network of its own), and so do runs without a launcher.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace syncline::live {

struct RankCommand {
  std::vector<std::string> words;                  // a program, found by PATH, and its arguments
  std::map<std::string, std::string> environment;  // added to ours
  std::function<void()> before_exec;  // runs in the new process; its exception is our error
  int out = STDOUT_FILENO;            // file descriptors; -1: dropped
  int err = STDERR_FILENO;
  int given = -1;  // a file descriptor that only this process has after its start
};

// An act while the ranks run, such as cutting a link.
struct TimedAct {
  double at = 0;  // seconds after the last rank was started
  std::function<void()> act;
};

struct ProcessRules {
  double wait_limit = 10;  // seconds from a rank's failure to SIGTERM for the others
  double grace = 5;        // seconds from SIGTERM, or a signal of ours, to SIGKILL
  // Seconds for which all ranks, or one that starts, may be stopped (SIGSTOP) before they are
  // killed.
  double stopped = std::numeric_limits<double>::infinity();
  std::vector<TimedAct> acts;
};

struct RankEnd {
  int code = 0;        // exit code, or 128 + signal, as in shells
  int signal = 0;      // the signal that ended it, or 0
  bool by_us = false;  // it was still running when we ended it
  double after = 0;    // seconds since it was started
};

struct JobEnd {
  std::vector<RankEnd> ranks;
  std::optional<std::size_t> first_failed;  // the first that failed by itself
  bool stopped = false;                     // all were stopped for too long
  int interrupted = 0;                      // the first signal that asked us to end, or 0
};

// Starts all ranks and waits for them. Throws InputError if a program cannot be started (all others
// are ended first), MachineError if the machine gives no process or one stays stopped before it is
// the program. An exception of an act is thrown
// after all have ended.
JobEnd run_ranks(const std::vector<RankCommand>& ranks, const ProcessRules& rules);

// Returns the job's exit code: 128 + signal if interrupted, else rank 0's own code if it failed by
// itself, else that of the first that did, else 0. A rank that a signal ended or stopped counts as
// a failing machine, 3.
int exit_code(const JobEnd& end);

// Returns one line: the rank that failed, how, and the ends of the others; empty if all ended well.
std::string in_words(const JobEnd& end);

// Follows whether a child process is stopped (SIGSTOP).
class StopWatch {
 public:
  explicit StopWatch(pid_t child) : child_(child) {}

  // Returns the time (seconds of the steady clock) at which the child was stopped; none if it runs.
  std::optional<double> since();

 private:
  pid_t child_;
  std::optional<double> since_;
};

// Returns seconds of the steady clock.
double steady_now();

// Blocks the signals of a job while it lives, so that next() can wait for them: the ends of
// children, and SIGINT, SIGTERM and SIGHUP unless they are ignored (as under nohup).
class WaitedSignals {
 public:
  WaitedSignals();
  ~WaitedSignals();
  WaitedSignals(const WaitedSignals&) = delete;
  WaitedSignals& operator=(const WaitedSignals&) = delete;

  // Returns the next signal within `seconds`, or 0.
  int next(double seconds) const;
  // Lets the signals through again, for a new process before it becomes another program.
  void deliver() const;

 private:
  sigset_t waited_{};
  sigset_t old_mask_{};
  struct sigaction old_child_ {};
};

}  // namespace syncline::live
