#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>

namespace syncline::cli {

Progress::Progress(std::string what, Clock::time_point (*now)())
    : what_(std::move(what)),
      now_(now),
      began_(now()),
      shown_(began_),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (visible_) std::cerr << "\r\033[K" << std::flush;
}

void Progress::update(std::size_t done, std::size_t wanted) {
  using Seconds = std::chrono::duration<double>;
  const auto now = now_();
  const double lasted = Seconds(now - began_).count();
  constexpr double kQuiet = 2.0;
  constexpr double kBetween = 0.2;
  constexpr double kLong = 60;
  if (lasted < kQuiet || done == 0) return;
  if (visible_ && Seconds(now - shown_).count() < kBetween && done < wanted) return;
  const double left = lasted / static_cast<double>(done) * static_cast<double>(wanted - done);
  if (!terminal_ && (left < kLong || told_)) return;
  char line[160];
  std::snprintf(line, sizeof line, "%s: %zu of %zu, about %.0f s left", what_.c_str(), done, wanted,
                left);
  if (terminal_) {
    std::cerr << "\r\033[K" << line << std::flush;
  } else {
    std::cerr << line << std::endl;
  }
  visible_ = terminal_;
  told_ = true;
  shown_ = now;
}

}  // namespace syncline::cli
