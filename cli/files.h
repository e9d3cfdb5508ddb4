// Answers in files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/files.h"

namespace syncline::cli {

// A file that stands beside the answer; of an empty path none is written.
struct SideFile {
  std::string path;
  std::function<std::string()> content;
};

// Throws MachineError where one of them cannot be written: before the work. Empty ones are none.
void expect_writable(const std::vector<std::string>& paths);

// Writes the files, then prints the answer: a reader who sees it may count on them, and names them
// on stderr. One that cannot be written costs neither the others nor the answer: its failure is
// thrown at the end.
void answer_with(const std::vector<SideFile>& files, const std::function<void()>& print_answer);

// Names files that were written, on stderr. Empty ones are none.
void tell_written(const std::vector<std::string>& paths);

// Makes the folder and its parents. Throws MachineError.
void make_folder(const std::string& path);

}  // namespace syncline::cli
