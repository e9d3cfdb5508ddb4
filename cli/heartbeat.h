// A line on a terminal that says how long a verb has been at work without a word. Elsewhere there
// is none.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace syncline::cli {

// Shows the line on stderr from the second second of silence on, each second, while it lives. Words
// that follow overwrite the line.
class Heartbeat {
 public:
  explicit Heartbeat(std::string verb);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void beat();

  std::string verb_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

// Removes the line, if it is there: call it ahead of other words on the terminal. Takes no lock and
// is for children, too.
void break_silence();

}  // namespace syncline::cli
