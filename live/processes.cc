// Guarantees:
// - Every rank leads a process group of its own and has no input. When its leader ends, the rest
//   of the group is killed, so that a rank leaves no children.
// - No rank outlives us: the kernel kills each when the thread that started it ends, however it
//   ends (PR_SET_PDEATHSIG).
// - SIGINT, SIGTERM and SIGHUP that we receive meanwhile (and do not ignore) go to every rank;
//   after `grace` seconds, or at a second signal, SIGKILL follows.
// - After a rank fails, by an exit code other than 0 or by a signal, the others have `wait_limit`
//   seconds to report it. Then they get SIGTERM, and `grace` seconds later SIGKILL.
// - Ranks that are all stopped (SIGSTOP) are killed after `stopped` seconds: they report nothing.
//   So is one that is stopped before it has become the program.
#include "live/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>

#include "core/base/error.h"

namespace syncline::live {
namespace {

constexpr int kSignalled = 128;     // added to a signal's number, as shells do
constexpr int kFailingMachine = 3;  // the program's own code

// Prepares the new process and executes the program. Errors are written to `failure`, which is
// closed on exec, so the program does not see it.
[[noreturn]] void become(const RankCommand& rank, pid_t parent, const WaitedSignals& signals,
                         int failure) {
  std::string wrong;
  try {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kSignalled + SIGKILL);
    ::setpgid(0, 0);
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
    const int out = rank.out < 0 ? nothing : ::fcntl(rank.out, F_DUPFD_CLOEXEC, 3);
    const int err = rank.err < 0 ? nothing : ::fcntl(rank.err, F_DUPFD_CLOEXEC, 3);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    if (rank.given >= 0) ::fcntl(rank.given, F_SETFD, 0);
    if (rank.before_exec) rank.before_exec();
    for (const auto& [name, value] : rank.environment) ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<std::string> words = rank.words;
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    signals.deliver();
    ::signal(SIGPIPE, SIG_DFL);  // ignored here, and exec hands that on
    ::execvp(argv[0], argv.data());
    wrong = "i'" + rank.words.front() + "' cannot be run: " + std::strerror(errno);
  } catch (const InputError& error) {
    wrong = std::string("i") + error.what();
  } catch (const std::exception& error) {
    wrong = std::string("m") + error.what();
  }
  [[maybe_unused]] const auto written = ::write(failure, wrong.data(), wrong.size());
  ::_exit(127);
}

class Job {
 public:
  Job(const std::vector<RankCommand>& ranks, const ProcessRules& rules) : rules_(rules) {
    end_.ranks.resize(ranks.size());
    std::ranges::stable_sort(rules_.acts, {}, &TimedAct::at);
    for (const auto& rank : ranks) start(rank);
  }

  JobEnd wait() {
    const double started = steady_now();
    std::size_t acted = 0;
    reap();
    while (alive_ > 0) {
      const double act_at = acted < rules_.acts.size() ? started + rules_.acts[acted].at : kNever;
      const int signal =
          signals_.next(std::min({terminate_at_, kill_at_, act_at, stopped_until_}) - steady_now());
      reap();
      look_for_stopped();
      if (signal != 0 && signal != SIGCHLD) interrupted(signal);
      if (alive_ > 0 && steady_now() >= act_at) act(rules_.acts[acted++]);
      if (steady_now() >= stopped_until_) {
        end_.stopped = true;
        end_all(SIGKILL);
      }
      if (steady_now() >= terminate_at_) end_all(SIGTERM);
      if (steady_now() >= kill_at_) end_all(SIGKILL);
    }
    if (act_failure_) std::rethrow_exception(act_failure_);
    return end_;
  }

 private:
  struct Member {
    pid_t pid = 0;
    StopWatch watch;
    double started = 0;
    bool ended = false;
  };
  static constexpr double kNever = 1e300;
  static constexpr int kLookMs = 100;  // between two looks at a rank that starts

  // Starts a rank. The new process reports through a pipe if it cannot become the program; the pipe
  // closes if it can.
  void start(const RankCommand& rank) {
    int failure[2];
    if (::pipe2(failure, O_CLOEXEC) != 0) {
      fail<MachineError>(std::string("pipe2: ") + std::strerror(errno));
    }
    std::fflush(nullptr);  // or the new process might write it again
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) become(rank, parent, signals_, failure[1]);
    const int reason = errno;
    ::close(failure[1]);
    if (rank.given >= 0) ::close(rank.given);
    if (pid < 0) {
      ::close(failure[0]);
      fail<MachineError>("rank " + std::to_string(members_.size()) +
                         ": fork: " + std::strerror(reason));
    }
    ::setpgid(pid, pid);  // parent and child race
    members_.push_back({pid, StopWatch(pid), steady_now()});
    ++alive_;
    const std::string wrong = failure_of_start(failure[0]);
    ::close(failure[0]);
    if (wrong.empty()) return;
    if (wrong[0] == 'i') fail<InputError>(wrong.substr(1));
    fail<MachineError>(wrong.substr(1));
  }

  // Returns the text that the newest rank writes if it cannot become its program; empty if it can.
  std::string failure_of_start(int pipe) {
    std::string wrong;
    std::array<char, 512> piece{};
    for (pollfd end{pipe, POLLIN, 0};;) {
      if (::poll(&end, 1, kLookMs) > 0) {
        const ssize_t got = ::read(pipe, piece.data(), piece.size());
        if (got == 0) return wrong;
        if (got > 0) wrong.append(piece.data(), static_cast<std::size_t>(got));
        if (got > 0 || errno == EINTR) continue;
      }
      const auto since = members_.back().watch.since();
      const int signal = signals_.next(0);
      if (since && ((signal != 0 && signal != SIGCHLD) || steady_now() > *since + rules_.stopped)) {
        return "mrank " + std::to_string(members_.size() - 1) +
               " was stopped (SIGSTOP) before its program began, and did not go on";
      }
      if (signal != 0 && signal != SIGCHLD) ::kill(::getpid(), signal);  // for wait()
    }
  }

  // Kills all ranks and throws.
  template <typename Error>
  [[noreturn]] void fail(const std::string& message) {
    end_all(SIGKILL);
    while (alive_ > 0) {
      signals_.next(1);
      reap();
    }
    throw Error(message);
  }

  void signal_all(int signal) const {
    for (const auto& member : members_) {
      if (!member.ended) ::kill(-member.pid, signal);
    }
  }

  void end_all(int signal) {
    for (std::size_t r = 0; r < members_.size(); ++r) {
      if (!members_[r].ended) end_.ranks[r].by_us = true;
    }
    signal_all(signal);
    if (signal == SIGTERM) signal_all(SIGCONT);  // stopped processes need it
    terminate_at_ = kNever;
    kill_at_ = signal == SIGKILL ? kNever : steady_now() + rules_.grace;
  }

  void interrupted(int signal) {
    const bool again = end_.interrupted != 0;
    if (!again) end_.interrupted = signal;
    end_all(again ? SIGKILL : signal);
  }

  void act(const TimedAct& timed) {
    try {
      timed.act();
    } catch (...) {
      act_failure_ = std::current_exception();
      end_all(SIGTERM);
    }
  }

  // Sets or clears the deadline of ranks that are all stopped.
  void look_for_stopped() {
    bool all = alive_ > 0 && !end_.stopped;
    for (Member& member : members_) all = all && (member.ended || member.watch.since());
    if (!all) {
      stopped_until_ = kNever;
    } else if (stopped_until_ == kNever) {
      stopped_until_ = steady_now() + rules_.stopped;
    }
  }

  // Takes the ranks that have ended, with what is left of their process groups.
  void reap() {
    for (std::size_t r = 0; r < members_.size(); ++r) {
      Member& member = members_[r];
      if (member.ended) continue;
      siginfo_t info{};
      if (::waitid(P_PID, static_cast<id_t>(member.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid == 0) {
        continue;
      }
      ::kill(-member.pid, SIGKILL);  // while the number of the group is still its own
      ::waitpid(member.pid, nullptr, 0);
      member.ended = true;
      --alive_;
      RankEnd& rank = end_.ranks[r];
      rank.signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
      rank.code = info.si_code == CLD_EXITED ? info.si_status : kSignalled + info.si_status;
      rank.after = steady_now() - member.started;
      if (rank.code == 0 || rank.by_us || end_.first_failed) continue;
      end_.first_failed = r;
      terminate_at_ = steady_now() + rules_.wait_limit;
    }
  }

  ProcessRules rules_;
  WaitedSignals signals_;
  std::vector<Member> members_;
  std::size_t alive_ = 0;
  double terminate_at_ = kNever;
  double kill_at_ = kNever;
  double stopped_until_ = kNever;
  std::exception_ptr act_failure_;
  JobEnd end_;
};

std::string how(const RankEnd& rank) {
  if (rank.signal != 0) {
    return "was killed by signal " + std::to_string(rank.signal) + " (" + ::strsignal(rank.signal) +
           ")";
  }
  return "ended with exit code " + std::to_string(rank.code);
}

}  // namespace

double steady_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<double> StopWatch::since() {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(child_), &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
         info.si_pid != 0) {
    since_ = info.si_code == CLD_STOPPED ? std::optional(steady_now()) : std::nullopt;
    info = {};
  }
  return since_;
}

WaitedSignals::WaitedSignals() {
  ::sigemptyset(&waited_);
  ::sigaddset(&waited_, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&waited_, signal);
  }
  // If SIGCHLD is ignored, the ends of children cannot be learned.
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

JobEnd run_ranks(const std::vector<RankCommand>& ranks, const ProcessRules& rules) {
  return Job(ranks, rules).wait();
}

int exit_code(const JobEnd& end) {
  if (end.interrupted != 0) return kSignalled + end.interrupted;
  if (end.stopped) return kFailingMachine;
  if (!end.first_failed) return 0;
  const RankEnd& zero = end.ranks.front();
  const RankEnd& counts = !zero.by_us && zero.code != 0 ? zero : end.ranks[*end.first_failed];
  return counts.signal != 0 ? kFailingMachine : counts.code;
}

std::string in_words(const JobEnd& end) {
  if (end.stopped) return "all ranks were stopped (SIGSTOP) and did not go on; ended by us";
  if (!end.first_failed) return "";
  const std::size_t first = *end.first_failed;
  std::array<char, 32> after{};
  std::snprintf(after.data(), after.size(), "%.1f s", end.ranks[first].after);
  std::string text =
      "rank " + std::to_string(first) + " " + how(end.ranks[first]) + " after " + after.data();
  std::string also;
  std::string ended;
  for (std::size_t r = 0; r < end.ranks.size(); ++r) {
    const RankEnd& rank = end.ranks[r];
    if (r == first) continue;
    if (rank.by_us)
      ended += (ended.empty() ? "" : ", ") + std::to_string(r);
    else if (rank.code != 0)
      also += "; then rank " + std::to_string(r) + " " + how(rank);
  }
  return text + also + (ended.empty() ? "" : "; still running and ended by us: " + ended);
}

}  // namespace syncline::live
