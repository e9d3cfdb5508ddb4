// While it lives, the signals that concern a job are waited for instead of delivered: the ends of
// children, and SIGINT, SIGTERM and SIGHUP where they are not ignored (under nohup, for one).
#pragma once

#include <signal.h>

namespace syncline::live {

class WaitedSignals {
 public:
  WaitedSignals();
  ~WaitedSignals();
  WaitedSignals(const WaitedSignals&) = delete;
  WaitedSignals& operator=(const WaitedSignals&) = delete;

  // The next signal within so many seconds, or 0.
  int next(double seconds) const;
  // In a new process, before it becomes another program: delivers the signals to that one again.
  void deliver() const;

 private:
  sigset_t waited_{};
  sigset_t old_mask_{};
  struct sigaction old_child_ {};
};

}  // namespace syncline::live
