// Two grains (Simulation::grain): `step` moves every message of every round and lets each rank go
// on as soon as its own messages are done; `merged` simulates rounds that load the links alike
// as one flow an edge, after the latencies that they stand for. With `fold`, links that carry the
// same kinds of flows are simulated once (see fold.h).
#include "sim/sim_executor.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <type_traits>

#include "core/error.h"

namespace syncline::sim {
namespace {

// The child's answer: a status byte, then either the timeline or a message.
constexpr char kAnswered = 'A';
constexpr char kFailed = 'F';

template <typename Item>
void append(std::string& bytes, const std::vector<Item>& items) {
  static_assert(std::is_trivially_copyable_v<Item>);
  const std::uint64_t count = items.size();
  bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
  bytes.append(reinterpret_cast<const char*>(items.data()), count * sizeof(Item));
}

template <typename Item>
std::vector<Item> take(const std::string& bytes, std::size_t& at) {
  std::uint64_t count = 0;
  if (at + sizeof count > bytes.size()) throw MachineError("simulation: its answer is cut short");
  std::memcpy(&count, bytes.data() + at, sizeof count);
  at += sizeof count;
  if (count > (bytes.size() - at) / sizeof(Item)) {
    throw MachineError("simulation: its answer is cut short");
  }
  std::vector<Item> items(count);
  if (count > 0) std::memcpy(items.data(), bytes.data() + at, count * sizeof(Item));
  at += count * sizeof(Item);
  return items;
}

void write_all(int fd, const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;  // the parent is gone
    done += static_cast<std::size_t>(wrote);
  }
}

std::string read_all(int fd) {
  std::string bytes;
  char block[1 << 16];
  while (true) {
    const ssize_t got = ::read(fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(got));
  }
}

[[noreturn]] void answer(int fd, pid_t parent, const plan::Plan& plan,
                         const run::ExecutorSettings& settings, int periods) {
  // Ctrl-C is the parent's to handle (SimGrid would install a handler that ends the process, so the
  // signal is blocked, not ignored); and when the parent goes, so does the child.
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  ::sigprocmask(SIG_BLOCK, &interrupt, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // it went before the line above
  std::string bytes;
  try {
    const run::Outcome outcome = simulate(plan, settings, periods);
    bytes = kAnswered;
    append(bytes, outcome.timeline.spans);
    append(bytes, outcome.timeline.period_ends);
    for (const auto& ends : outcome.others) append(bytes, ends);
  } catch (const std::exception& error) {
    bytes = kFailed + std::string(error.what());
  }
  write_all(fd, bytes);
  // No destructors: they belong to the parent's copy of everything.
  ::_exit(0);
}

class SimExecutor final : public run::Executor {
 public:
  explicit SimExecutor(const run::ExecutorSettings& settings) : settings_(settings) {}

  std::string_view name() const override { return "sim"; }

  run::Outcome run(const plan::Plan& plan, const run::Gradients&, int periods) override {
    int ends[2];
    if (::pipe(ends) != 0) {
      throw MachineError(std::string("simulation: pipe: ") + std::strerror(errno));
    }
    // What is still buffered would be written twice, by the child too.
    std::fflush(nullptr);
    std::cout.flush();
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) {
      const int error = errno;
      ::close(ends[0]);
      ::close(ends[1]);
      throw MachineError(std::string("simulation: fork: ") + std::strerror(error));
    }
    if (child == 0) {
      ::close(ends[0]);
      answer(ends[1], parent, plan, settings_, periods);
    }
    ::close(ends[1]);
    const std::string bytes = read_all(ends[0]);
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return decoded(bytes, status);
  }

 private:
  static run::Outcome decoded(const std::string& bytes, int status) {
    if (WIFSIGNALED(status)) {
      throw MachineError("simulation: its process was ended by signal " +
                         std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) +
                         ")");
    }
    if (bytes.empty()) {
      throw MachineError("simulation: its process ended without an answer, exit code " +
                         std::to_string(WEXITSTATUS(status)));
    }
    if (bytes.front() != kAnswered) throw MachineError("simulation: " + bytes.substr(1));
    run::Outcome outcome;
    std::size_t at = 1;
    outcome.timeline.spans = take<run::Span>(bytes, at);
    outcome.timeline.period_ends = take<Seconds>(bytes, at);
    while (at < bytes.size()) outcome.others.push_back(take<Seconds>(bytes, at));
    return outcome;
  }

  run::ExecutorSettings settings_;
};

}  // namespace

std::unique_ptr<run::Executor> make_sim_executor(const run::ExecutorSettings& settings) {
  return std::make_unique<SimExecutor>(settings);
}

}  // namespace syncline::sim
