// A line on stderr that says how far long work has come and how long it will take, once the work
// has lasted two seconds: on a terminal it is kept up to date, elsewhere it stands once, and only
// where more than a minute is left.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace syncline::cli {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Progress(std::string what, Clock::time_point (*now)() = Clock::now);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::size_t done, std::size_t wanted);

 private:
  std::string what_;
  Clock::time_point (*now_)();
  Clock::time_point began_;
  Clock::time_point shown_;
  bool terminal_;
  bool visible_ = false;
  bool told_ = false;
};

}  // namespace syncline::cli
