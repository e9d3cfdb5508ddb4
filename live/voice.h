// Whether anyone in a job has said why it ended. Ranks share their launcher's stderr, each says
// first-hand knowledge only, and a launcher of ours that finds its ranks failed adds its own line
// only where none of them has spoken.
#pragma once

#include <chrono>
#include <string>

namespace syncline {

// What a launcher holds. Programs that it starts meanwhile find it by an inherited file descriptor,
// named in their environment.
class Voice {
 public:
  Voice();
  ~Voice();
  Voice(const Voice&) = delete;
  Voice& operator=(const Voice&) = delete;
  // A program below has said a line.
  bool used() const;

 private:
  int fd_ = -1;
};

// This process says a line now; for those above to know.
void note_line();
// Somebody under our launcher said one within so long before now. False where it is none of ours.
bool line_within(std::chrono::milliseconds time);

}  // namespace syncline
