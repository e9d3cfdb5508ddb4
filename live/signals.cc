#include "live/signals.h"

#include <algorithm>

namespace syncline::live {

WaitedSignals::WaitedSignals() {
  ::sigemptyset(&waited_);
  ::sigaddset(&waited_, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&waited_, signal);
  }
  // Where children are ignored, their ends cannot be learned.
  struct sigaction ordinary {};
  ordinary.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &ordinary, &old_child_);
  ::sigprocmask(SIG_BLOCK, &waited_, &old_mask_);
}

WaitedSignals::~WaitedSignals() {
  ::sigaction(SIGCHLD, &old_child_, nullptr);
  ::sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

int WaitedSignals::next(double seconds) const {
  constexpr double kLongest = 3600;
  constexpr double kNanoseconds = 1e9;
  const double wait = std::clamp(seconds, 0.0, kLongest);
  timespec time{};
  time.tv_sec = static_cast<time_t>(wait);
  time.tv_nsec = static_cast<long>((wait - static_cast<double>(time.tv_sec)) * kNanoseconds);
  const int signal = ::sigtimedwait(&waited_, nullptr, &time);
  return signal > 0 ? signal : 0;
}

void WaitedSignals::deliver() const { ::sigprocmask(SIG_UNBLOCK, &waited_, nullptr); }

}  // namespace syncline::live
