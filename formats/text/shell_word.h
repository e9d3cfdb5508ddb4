// One word of a command line.
#pragma once

#include <string>

namespace syncline {

// Returns a text as one word for a POSIX shell, quoted if it has characters other than letters,
// digits and ./_-=,+:@%.
std::string shell_word(const std::string& text);

}  // namespace syncline
