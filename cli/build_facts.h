// What this program was made of.
#pragma once

#include <string>

namespace syncline::cli {

// What `syncline --version` prints: version, commit of the sources, compiler, what it can run on.
std::string build_facts();

}  // namespace syncline::cli
