#include "cli/process.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>

namespace syncline::cli {
namespace {

void put(const char* text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

volatile std::sig_atomic_t interrupts = 0;
volatile std::sig_atomic_t wait_limit_s = 0;

void on_interrupt(int) {
  interrupts = interrupts + 1;
  if (interrupts < 2) {
    ::alarm(static_cast<unsigned>(wait_limit_s));
    return;
  }
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

void on_wait_end(int) {
  put("syncline: interrupted\n");
  ::_exit(kInterruptedExit);
}

// Prints the reason and ends without allocating, as there may be no memory.
[[noreturn]] void end_without_answer() {
  put("syncline: ");
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
    put("internal error");
  } catch (const std::bad_alloc&) {
    put("out of memory");
  } catch (const std::exception& error) {
    put(error.what());
  } catch (...) {
    put("unknown failure");
  }
  put("\n");
  ::_exit(kFailingMachine);
}

}  // namespace

void catch_interrupts(unsigned wait_limit) {
  wait_limit_s = wait_limit;
  std::signal(SIGALRM, on_wait_end);
  std::signal(SIGINT, on_interrupt);
}

void keep_results() {
  wait_limit_s = 0;
  if (interrupts > 0) ::alarm(0);
}

bool is_interrupted() {
  if (interrupts == 0) return false;
  ::alarm(0);  // the caller will end
  return true;
}

void prepare_process() {
  // Plans of long periods allocate and free megabytes in every evaluation. The process keeps them,
  // because the kernel would clear each page again (half the time of scenarios/far_apart.json).
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
  std::set_terminate(end_without_answer);
  std::signal(SIGPIPE, SIG_IGN);
  // open() returns the lowest free number: a closed one of 0 to 2. Read-only, so that printing
  // fails visibly.
  int taken = 0;
  do {
    taken = ::open("/dev/null", O_RDONLY);
  } while (taken >= 0 && taken <= STDERR_FILENO);
  if (taken >= 0) ::close(taken);
}

}  // namespace syncline::cli
