// What a process brings along into every verb.
#pragma once

namespace syncline::cli {

// Once, first of all. Writing to a reader who has gone is a failure of that call and not the end
// of the program; descriptors 0 to 2 that came closed are taken, so that no file or socket gets
// their numbers and writing to them fails; and an exception that nobody can catch, thrown where
// none may leave (out of memory in a destructor) or in a thread, ends the program with a sentence
// and exit code 3 instead of an abort.
void prepare_process();

}  // namespace syncline::cli
