#include "cli/exit.h"

#include <csignal>

namespace syncline::cli {
namespace {

volatile std::sig_atomic_t interrupts = 0;

void on_interrupt(int) {
  interrupts = interrupts + 1;
  if (interrupts < 2) return;
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

}  // namespace

void catch_interrupts() { std::signal(SIGINT, on_interrupt); }

bool interrupted() { return interrupts > 0; }

}  // namespace syncline::cli
