// The process of every verb: its start, its exit codes, and Ctrl-C in long verbs. The first Ctrl-C
// ends the work after the current piece, so that finished work is printed. The second one ends the
// program, and so does the first if that piece takes too long.
#pragma once

namespace syncline::cli {

inline constexpr int kWrongInput = 2;
inline constexpr int kFailingMachine = 3;
// Exit code of a verb that was interrupted.
inline constexpr int kInterruptedExit = 130;

// Seconds that a user waits for an answer after Ctrl-C.
inline constexpr unsigned kInterruptWait = 5;

// Counts interrupts from now on instead of dying. If interrupted() is not called within
// `wait_limit` seconds of the first one, the program ends; 0: it waits, because ranks finish a
// step.
void catch_interrupts(unsigned wait_limit = 0);

// Removes the limit after the first interrupt, because ending would now lose results. The second
// interrupt still ends the program.
void keep_results();

// Returns true after an interrupt.
bool is_interrupted();

// Prepares the process. Writing to a closed pipe becomes a failure of that call. Closed
// descriptors of 0 to 2 are occupied: no file gets their numbers, and writing to them fails.
// Exceptions that cannot be caught (out of memory in a destructor, or in a thread) end the program
// with a sentence and exit code 3. Must be called once, before any other work.
void prepare_process();

}  // namespace syncline::cli
