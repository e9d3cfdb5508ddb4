#include "cli/heartbeat.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

namespace syncline::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> visible_line = false;
std::atomic<Clock::rep> last_word = 0;

void put(std::string_view text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

Clock::duration silence() {
  return Clock::now().time_since_epoch() - Clock::duration(last_word.load());
}

}  // namespace

Heartbeat::Heartbeat(std::string verb) : verb_(std::move(verb)) {
  last_word = Clock::now().time_since_epoch().count();
  if (::isatty(STDERR_FILENO) != 1) return;
  // Signals are the main thread's: its waits end with them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { beat(); });
  } catch (const std::system_error&) {  // no more threads: the verb works without the line
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
  break_silence();
}

void Heartbeat::beat() {
  constexpr std::chrono::seconds kQuiet{2}, kBetween{1};
  const auto began = Clock::now();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetween, [&] { return over_; })) {
    if (silence() < kQuiet) continue;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - began).count();
    visible_line = true;
    // The cursor goes back: a word of a child begins where the line does.
    put("\r\033[Ksyncline " + verb_ + ": " + std::to_string(seconds) + " s so far\r");
  }
}

void break_silence() {
  last_word = Clock::now().time_since_epoch().count();
  if (visible_line.exchange(false)) put("\r\033[K");
}

}  // namespace syncline::cli
