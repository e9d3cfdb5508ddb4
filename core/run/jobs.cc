#include "core/run/jobs.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "core/base/error.h"

namespace syncline::run {
namespace {

// A worker's answer to a piece: its kind, the length of the text, the text.
constexpr char kResult = 'R';
constexpr char kInputFailure = 'I';
constexpr char kMachineFailure = 'M';
struct AnswerHead {
  std::uint64_t kind = 0;  // no gap after it: it is sent as it is in memory
  std::uint64_t size = 0;
};

// Transfers all bytes by ::read or ::write; false if the other end is closed.
template <typename Call, typename Byte>
bool pass_all(Call call, int fd, Byte* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t passed = call(fd, bytes, size);
    if (passed < 0 && errno == EINTR) continue;
    if (passed <= 0) return false;
    bytes += passed;
    size -= static_cast<std::size_t>(passed);
  }
  return true;
}

bool write_all(int fd, const void* bytes, std::size_t size) {
  return pass_all(::write, fd, static_cast<const char*>(bytes), size);
}

bool read_all(int fd, void* bytes, std::size_t size) {
  return pass_all(::read, fd, static_cast<char*>(bytes), size);
}

struct Answer {
  char kind = kResult;
  std::string text;
};

Answer answer_of(const std::function<std::string(std::size_t)>& work, std::size_t piece) {
  try {
    return {kResult, work(piece)};
  } catch (const InputError& error) {
    return {kInputFailure, error.what()};
  } catch (const std::exception& error) {
    return {kMachineFailure, error.what()};
  }
}

[[noreturn]] void throw_failure(const Answer& answer) {
  if (answer.kind == kInputFailure) throw InputError(answer.text);
  throw MachineError(answer.text);
}

// Runs a worker: takes piece after piece until its orders end.
[[noreturn]] void serve(int orders, int answers, pid_t parent,
                        const std::function<std::string(std::size_t)>& work) {
  // Ctrl-C reaches the whole group; the parent handles it.
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  ::sigprocmask(SIG_BLOCK, &interrupt, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // the parent ended before the line above
  std::uint64_t piece = 0;
  while (read_all(orders, &piece, sizeof piece)) {
    const Answer answer = answer_of(work, static_cast<std::size_t>(piece));
    const AnswerHead head{static_cast<unsigned char>(answer.kind), answer.text.size()};
    if (!write_all(answers, &head, sizeof head)) break;
    if (!write_all(answers, answer.text.data(), answer.text.size())) break;
  }
  // No destructors: the parent owns the original objects.
  ::_exit(0);
}

// One worker process and the two pipes to it. The destructor ends the process.
class Worker {
 public:
  Worker(const std::string& owner, const std::function<std::string(std::size_t)>& work,
         const std::vector<std::unique_ptr<Worker>>& others) {
    int orders[2];
    int answers[2];
    const auto failed = [&](const char* call) {
      throw MachineError(owner + ": " + call + ": " + std::strerror(errno));
    };
    if (::pipe(orders) != 0) failed("pipe");
    if (::pipe(answers) != 0) {
      ::close(orders[0]);
      ::close(orders[1]);
      failed("pipe");
    }
    const pid_t parent = ::getpid();
    process_ = ::fork();
    if (process_ == 0) {
      // A reader sees the end of a pipe once no process holds the other end.
      for (const auto& other : others) other->close_pipes();
      ::close(orders[1]);
      ::close(answers[0]);
      serve(orders[0], answers[1], parent, work);
    }
    ::close(orders[0]);
    ::close(answers[1]);
    orders_ = orders[1];
    answers_ = answers[0];
    if (process_ < 0) {
      close_pipes();
      failed("fork");
    }
  }

  ~Worker() {
    close_pipes();
    if (ended_) return;
    ::kill(process_, SIGKILL);
    wait();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int answers() const { return answers_; }
  std::optional<std::size_t> piece() const { return piece_; }

  void order(std::size_t piece) {
    piece_ = piece;
    const std::uint64_t number = piece;
    // A lost worker is noticed when its answer is read.
    write_all(orders_, &number, sizeof number);
  }

  // Returns the answer to the current piece, or after `name` how the worker ended without one.
  Answer take(const std::string& name = "") {
    Answer answer;
    AnswerHead head;
    bool whole = read_all(answers_, &head, sizeof head);
    if (whole) {
      answer.kind = static_cast<char>(head.kind);
      answer.text.resize(head.size);
      whole = read_all(answers_, answer.text.data(), answer.text.size());
    }
    if (!whole) answer = {kMachineFailure, (name.empty() ? "" : name + ": ") + ending()};
    piece_.reset();
    return answer;
  }

 private:
  void close_pipes() {
    if (orders_ >= 0) ::close(orders_);
    if (answers_ >= 0) ::close(answers_);
    orders_ = answers_ = -1;
  }

  int wait() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    ended_ = true;
    return status;
  }

  std::string ending() {
    const int status = wait();
    if (WIFSIGNALED(status)) {
      return "its process was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
             ::strsignal(WTERMSIG(status)) + ")";
    }
    return "its process ended without an answer, exit code " + std::to_string(WEXITSTATUS(status));
  }

  pid_t process_ = -1;
  int orders_ = -1;
  int answers_ = -1;
  bool ended_ = false;
  std::optional<std::size_t> piece_;
};

// A write to a lost worker must be an error here, not the end of this process. Buffered output
// would be written twice, by the workers too.
class BeforeForks {
 public:
  BeforeForks() : before_(std::signal(SIGPIPE, SIG_IGN)) {
    std::fflush(nullptr);
    std::cout.flush();
  }
  ~BeforeForks() { std::signal(SIGPIPE, before_); }
  BeforeForks(const BeforeForks&) = delete;
  BeforeForks& operator=(const BeforeForks&) = delete;

 private:
  void (*before_)(int);
};

// Delivers a result at its turn.
void hand_over(std::string result, const JobHooks& hooks, std::vector<std::string>& results) {
  if (hooks.take) {
    hooks.take(std::move(result));
  } else {
    results.push_back(std::move(result));
  }
}

std::vector<std::string> run_here(std::size_t count,
                                  const std::function<std::string(std::size_t)>& work,
                                  const JobHooks& hooks) {
  std::vector<std::string> results;
  for (std::size_t piece = 0; piece < count && !hooks.interrupted(); ++piece) {
    Answer answer = answer_of(work, piece);
    if (answer.kind != kResult) throw_failure(answer);
    hand_over(std::move(answer.text), hooks, results);
    hooks.progress(piece + 1, count);
  }
  return results;
}

// The workers, and the state of every piece.
class WorkerPool {
 public:
  WorkerPool(std::size_t count, std::size_t size,
             const std::function<std::string(std::size_t)>& work, const JobHooks& hooks)
      : count_(count), hooks_(hooks) {
    for (std::size_t i = 0; i < size; ++i) {
      workers_.push_back(std::make_unique<Worker>("jobs", work, workers_));
    }
  }

  std::vector<std::string> run() {
    for (auto& worker : workers_) order_next(*worker);
    while (std::ranges::any_of(workers_,
                               [](const auto& worker) { return worker->piece().has_value(); })) {
      for (Worker* worker : ready()) {
        const std::size_t piece = *worker->piece();
        Answer answer = worker->take(hooks_.name(piece));
        // No piece is begun after a failure. Earlier ones are already under way; if one of them
        // fails too, it is reported.
        failed_ = failed_ || answer.kind != kResult;
        waiting_.emplace(piece, std::move(answer));
        hand_over_in_order();
        if (!failed_) hooks_.progress(++done_, count_);
        order_next(*worker);
      }
    }
    const auto failure = waiting_.find(next_out_);
    if (failure != waiting_.end()) throw_failure(failure->second);
    return std::move(results_);
  }

 private:
  void order_next(Worker& worker) {
    if (next_ >= count_ || failed_ || stopped_) return;
    stopped_ = hooks_.interrupted();
    if (!stopped_) worker.order(next_++);
  }

  // Returns the workers with an answer. Waits for at least one; a signal repeats the wait.
  std::vector<Worker*> ready() {
    std::vector<pollfd> waits;
    std::vector<Worker*> busy;
    for (auto& worker : workers_) {
      if (!worker->piece()) continue;
      waits.push_back({worker->answers(), POLLIN, 0});
      busy.push_back(worker.get());
    }
    while (::poll(waits.data(), waits.size(), -1) < 0) {
      if (errno != EINTR) throw MachineError(std::string("jobs: poll: ") + std::strerror(errno));
    }
    std::vector<Worker*> answered;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents != 0) answered.push_back(busy[i]);
    }
    return answered;
  }

  // Delivers results up to the first that is missing or a failure.
  void hand_over_in_order() {
    for (auto first = waiting_.begin();
         first != waiting_.end() && first->first == next_out_ && first->second.kind == kResult;
         first = waiting_.erase(first), ++next_out_) {
      hand_over(std::move(first->second.text), hooks_, results_);
    }
  }

  std::size_t count_;
  const JobHooks& hooks_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<std::size_t, Answer> waiting_;  // done, waiting for earlier results
  std::vector<std::string> results_;
  std::size_t done_ = 0;
  std::size_t next_out_ = 0;  // first piece that was not delivered
  std::size_t next_ = 0;      // first piece without a worker
  bool failed_ = false;
  bool stopped_ = false;
};

}  // namespace

std::vector<std::string> run_jobs(std::size_t count, int jobs,
                                  const std::function<std::string(std::size_t)>& work,
                                  const JobHooks& hooks) {
  assert(jobs >= 1 && "someone has to do the work");
  const std::size_t size = std::min(count, static_cast<std::size_t>(jobs));
  if (size <= 1) return run_here(count, work, hooks);
  const BeforeForks before;
  return WorkerPool(count, size, work, hooks).run();
}

std::string run_in_process(const std::string& name, const std::function<std::string()>& work) {
  const BeforeForks before;
  Worker worker(name, [&](std::size_t) { return work(); }, {});
  worker.order(0);
  Answer answer = worker.take();
  if (answer.kind != kResult) throw MachineError(name + ": " + answer.text);
  return std::move(answer.text);
}

int cores() {
  constexpr unsigned kMax = 4096;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kMax));
}

ParallelMap over_processes(int jobs) {
  if (jobs == 1) return {};
  return [=](std::size_t count, const std::function<std::string(std::size_t)>& work,
             const JobHooks& hooks) { return run_jobs(count, jobs, work, hooks); };
}

}  // namespace syncline::run
