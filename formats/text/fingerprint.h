// A short name for a text, to tell whether two runs have the same subject.
#pragma once

#include <string>

namespace syncline {

// Returns 16 hexadecimal digits (FNV-1a, 64 bits). Different texts get different names, except by
// an attack: collisions can be constructed.
std::string fingerprint(const std::string& text);

}  // namespace syncline
