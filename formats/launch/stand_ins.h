// Programs that replace launchers while a user's script runs. They start no process: they record
// their arguments and succeed, so that the script goes on. Python that does not train runs as
// usual. Commands that remove older files, end processes, fetch or install do nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/launch/launch.h"

namespace syncline::launch {

inline constexpr std::size_t kMaxLaunches = 99;  // one more ends the script

// Writes them into an empty folder. Returns the variables by which a script finds them.
std::map<std::string, std::string> write_stand_ins(const std::string& folder);

// Returns the commands that this machine lacks, each once, in the order of their first calls. They
// were taken to succeed.
std::vector<std::string> read_missing(const std::string& folder);

// Returns the commands that were held back, each once: they remove older files, end
// processes, or fetch and install.
std::vector<std::string> read_held_back(const std::string& folder);

// Returns the script's last command that failed; empty: none did.
std::string read_failure(const std::string& folder);

// Reads their records, in the order of the calls. Omits values of secret flags.
std::vector<CapturedLaunch> read_launches(const std::string& folder);

}  // namespace syncline::launch
