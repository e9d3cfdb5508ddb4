// Captured launches of a training: the launcher's words, its folder and the settings that it would
// have found. As JSON they are a file that another machine can read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/json/json.h"

namespace syncline::launch {

struct CapturedLaunch {
  std::vector<std::string> words;        // "torchrun", "--nnodes", "2", "train.py", ...
  std::vector<std::string> around = {};  // words of srun or mpirun before them
  std::string folder = {};               // the folder that it was started in
  std::map<std::string, std::string> environment = {};  // variables that launchers use
  std::map<std::string, std::string> files = {};  // content of settings, by the words naming them
};

// Returns true if the JSON holds captured launches.
bool is_capture(const Json& json);

Json json_of(const std::vector<CapturedLaunch>& launches);

// Reads the output of json_of. Throws InputError naming the file and the key.
std::vector<CapturedLaunch> launches_of(const Json& json, const std::string& file);

// Returns a launch in at most `most` bytes: "torchrun train.py --a 1 ...".
std::string line_of(const CapturedLaunch& launch, std::size_t most);

}  // namespace syncline::launch
