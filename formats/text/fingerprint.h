// A short name for a text, to tell whether two runs are about the same thing.
#pragma once

#include <string>

namespace syncline {

// Returns 16 hexadecimal digits (FNV-1a, 64 bits). Texts that differ by accident get different
// names; one made to collide could be found.
std::string fingerprint(const std::string& text);

}  // namespace syncline
