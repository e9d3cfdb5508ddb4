// Launches of a training as they were captured: the words that a launcher was given, where, and
// what it would have found there. As JSON they are a file of their own, which another machine
// reads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/json/json.h"

namespace syncline::launch {

struct CapturedLaunch {
  std::vector<std::string> words;        // "torchrun", "--nnodes", "2", "train.py", ...
  std::vector<std::string> around = {};  // of srun or mpirun ahead of them
  std::string folder = {};               // in which it was started
  std::map<std::string, std::string> environment = {};  // variables that a launcher heeds
  std::map<std::string, std::string> files = {};  // content of settings, by the words naming them
};

// Says if a file is of captured launches.
bool is_capture(const Json& json);

Json json_of(const std::vector<CapturedLaunch>& launches);

// Reads what json_of wrote. Throws InputError naming the file and the key.
std::vector<CapturedLaunch> launches_of(const Json& json, const std::string& file);

// Returns the launch in a line of at most so many bytes: "torchrun train.py --a 1 ...".
std::string line_of(const CapturedLaunch& launch, std::size_t most);

}  // namespace syncline::launch
