// How several processes of one run print the cause of their failure once.
#pragma once

#include <chrono>
#include <string>

namespace syncline::cli {

// Ranks share their launcher's stderr. Each prints only failures that it found itself and leaves a
// notice that it did; a launcher of ours that finds its ranks failed prints a line of its own only
// where none of them has left one.
//
// Held by a launcher. The programs that it starts while this lives find it through an inherited
// file descriptor, named in an environment variable.
class FailureNotice {
 public:
  FailureNotice();
  ~FailureNotice();
  FailureNotice(const FailureNotice&) = delete;
  FailureNotice& operator=(const FailureNotice&) = delete;
  // Says if one of those programs has printed a failure.
  bool given() const;

 private:
  int fd_ = -1;
};

// This process prints a failure now: leaves the notice for the launchers above it.
void note_failure_printed();
// Says if any process under our launcher printed a failure within this time before now. False if
// the launcher is not one of ours.
bool failure_printed_within(std::chrono::milliseconds time);

}  // namespace syncline::cli
