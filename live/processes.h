// The ranks of a job as processes of this machine: started together, watched, and ended together.
// Used by the lab (each rank in a network of its own) and wherever ranks are run without a
// launcher.
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
  std::vector<std::string> words;                  // a program, sought in PATH, and its arguments
  std::map<std::string, std::string> environment;  // added to ours
  std::function<void()> before_exec;  // in the new process; what it throws is our error
  int out = STDOUT_FILENO;            // file descriptors; -1: nobody reads it
  int err = STDERR_FILENO;
  int given = -1;  // a file descriptor that is this process's alone, once it is started
};

// Something to be done while the ranks run, such as cutting a link.
struct TimedAct {
  double at = 0;  // seconds after the last rank was started
  std::function<void()> act;
};

struct ProcessRules {
  double wait_limit = 10;                                    // seconds
  double grace = 5;                                          // seconds
  double stopped = std::numeric_limits<double>::infinity();  // seconds
  std::vector<TimedAct> acts;
};

struct RankEnd {
  int code = 0;        // exit code, or 128 + signal, as shells have it
  int signal = 0;      // that ended it, or 0
  bool by_us = false;  // it was still running when we ended it
  double after = 0;    // seconds since it was started
};

struct JobEnd {
  std::vector<RankEnd> ranks;
  std::optional<std::size_t> first_failed;  // the first that failed by itself
  bool stopped = false;                     // all were, for longer than they may
  int interrupted = 0;                      // the signal that we were told to end by, or 0
};

// Starts all, waits for all. Throws InputError if a program cannot be started (then none is left
// running), MachineError if the machine gives no process, and what an act throws, once all are
// ended.
JobEnd run_ranks(const std::vector<RankCommand>& ranks, const ProcessRules& rules);

// What to exit with: 128 + signal if interrupted, else rank 0's own code if it failed by itself,
// else that of the first that did, else 0. A rank that a signal ended or stopped is a failing
// machine, 3.
int exit_code(const JobEnd& end);

// Who failed, how, and what became of the others, in one line; empty if all ended well.
std::string in_words(const JobEnd& end);

// While it lives, the signals that concern a job are waited for instead of delivered: the ends of
// children, and SIGINT, SIGTERM and SIGHUP where they are not ignored (under nohup, for one).
class WaitedSignals {
 public:
  WaitedSignals();
  ~WaitedSignals();
  WaitedSignals(const WaitedSignals&) = delete;
  WaitedSignals& operator=(const WaitedSignals&) = delete;

  // Returns the next signal within so many seconds, or 0.
  int next(double seconds) const;
  // In a new process, before it becomes another program: delivers the signals to that one again.
  void deliver() const;

 private:
  sigset_t waited_{};
  sigset_t old_mask_{};
  struct sigaction old_child_ {};
};

}  // namespace syncline::live
