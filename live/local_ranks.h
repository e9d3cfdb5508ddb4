// The ranks of a run that no launcher starts: processes of this machine that run one command, each
// with an environment that says which rank it is (live/rank_environment.h). And how the cause of
// their failure is printed once.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "live/processes.h"

namespace syncline::live {

// One command a rank, for run_ranks(). `meet`: the file in which rank 0 publishes its address;
// empty: rank 0 is given a socket that listens already, and all know its port. The run's token goes
// with the environment. Rank 0's output goes to ours, that of the others nowhere.
std::vector<RankCommand> local_ranks(const std::vector<std::string>& command, int ranks,
                                     const std::string& meet = "");

// This process's own command line. Throws MachineError.
std::vector<std::string> own_command();

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
  // Whether one of those programs has printed a failure.
  bool given() const;

 private:
  int fd_ = -1;
};

// This process prints a failure now: leaves the notice for the launchers above it.
void note_failure_printed();
// Whether any process under our launcher printed a failure within this time before now. False where
// the launcher is not one of ours.
bool failure_printed_within(std::chrono::milliseconds time);

}  // namespace syncline::live
