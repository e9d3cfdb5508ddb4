// The process behind every verb: how it begins, its exit codes, and Ctrl-C as every long verb takes
// it: the first one ends the work after the piece at hand, so that what has been done is printed;
// the second one ends the program, and so does the first where that piece takes too long.
#pragma once

namespace syncline::cli {

inline constexpr int kWrongInput = 2;
inline constexpr int kFailingMachine = 3;
// Of a verb whose work was cut short.
inline constexpr int kInterruptedExit = 130;

// Seconds for which somebody who pressed Ctrl-C waits for an answer.
inline constexpr unsigned kInterruptWait = 5;

// Counts interrupts from now on; they are no longer deadly. If nobody asks for them within
// `wait_limit` seconds of the first one, the program ends; 0: it waits, because ranks finish a
// step.
void catch_interrupts(unsigned wait_limit = 0);

// Lets the first interrupt wait without a limit from now on: there are results that ending would
// lose. The second interrupt still ends the program.
void keep_results();

// Returns whether there was one.
bool interrupted();

// Once, first of all. Writing to a reader who has gone is a failure of that call and not the end
// of the program; descriptors 0 to 2 that came closed are taken, so that no file or socket gets
// their numbers and writing to them fails; and an exception that nobody can catch, thrown where
// none may leave (out of memory in a destructor) or in a thread, ends the program with a sentence
// and exit code 3 instead of an abort.
void prepare_process();

}  // namespace syncline::cli
