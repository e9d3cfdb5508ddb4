// Writing answers to files: a file is there whole or not at all.
#pragma once

#include <string>

namespace syncline::cli {

// Writes beside `path`, then renames. Throws MachineError naming the path; an old file is kept
// then.
void write_file(const std::string& path, const std::string& content);

// Makes the folder and its parents. Throws MachineError.
void make_folder(const std::string& path);

}  // namespace syncline::cli
