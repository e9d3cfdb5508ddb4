// Programs that stand in for launchers while a user's script runs. They start nothing: they write
// down how they were called, and succeed, so that the script goes on. Python that trains nothing
// runs as it would.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/launch/launch.h"

namespace syncline::launch {

inline constexpr std::size_t kMostLaunches = 99;  // one more ends the script

// Writes them into an empty folder. Returns the variables that make a script find them.
std::map<std::string, std::string> write_stand_ins(const std::string& folder);

// Reads what they wrote, in the order of the calls. Values of secret flags are left out.
std::vector<CapturedLaunch> launches_in(const std::string& folder);

}  // namespace syncline::launch
