// How the program ends: its exit codes, and Ctrl-C as every long verb takes it: the first one ends
// the work after the piece at hand, so that what has been done is printed; the second one ends the
// program.
#pragma once

namespace syncline::cli {

inline constexpr int kWrongInput = 2;
inline constexpr int kFailingMachine = 3;
// Of a verb whose work was cut short.
inline constexpr int kInterruptedExit = 130;

// From now on interrupts are counted instead of deadly.
void catch_interrupts();

// Whether there was one.
bool interrupted();

}  // namespace syncline::cli
