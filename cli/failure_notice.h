// Makes several processes of one run print the cause of their failure once.
#pragma once

#include <chrono>
#include <string>

namespace syncline::cli {

// Ranks share their launcher's stderr. Each prints only failures that it found itself, and then
// leaves a notice. A launcher of ours with failed ranks prints its own line only if no rank left a
// notice.
//
// A launcher owns it. Programs that it starts meanwhile find the notice through an inherited file
// descriptor, named in an environment variable.
class FailureNotice {
 public:
  FailureNotice();
  ~FailureNotice();
  FailureNotice(const FailureNotice&) = delete;
  FailureNotice& operator=(const FailureNotice&) = delete;
  // Returns true if one of those programs has printed a failure.
  bool has_failure() const;

 private:
  int fd_ = -1;
};

// Leaves the notice for the launchers above, as this process prints a failure now.
void note_failure_printed();
// Returns true if a process of our launcher printed a failure within `time` before now. False if
// the launcher is not one of ours.
bool failure_printed_within(std::chrono::milliseconds time);

}  // namespace syncline::cli
