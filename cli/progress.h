// A line on stderr that says how far long work has come and how long it will take, shown only on a
// terminal and only once the work has lasted two seconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace syncline::cli {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::size_t done, std::size_t wanted);

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  Clock::time_point began_;
  Clock::time_point shown_;
  bool terminal_;
  bool visible_ = false;
};

}  // namespace syncline::cli
