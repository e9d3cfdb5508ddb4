// One word of a command line.
#pragma once

#include <string>

namespace syncline {

// Returns a text as a POSIX shell reads it back in one word: quoted if it has other signs than
// letters, digits and ./_-=,+:@%.
std::string shell_word(const std::string& text);

}  // namespace syncline
