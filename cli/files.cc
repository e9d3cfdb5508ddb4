#include "cli/files.h"

#include <exception>
#include <filesystem>
#include <iostream>

#include "core/error.h"
#include "reports/format.h"

namespace syncline::cli {

void expect_writable(const std::vector<std::string>& paths) {
  for (const auto& path : paths) {
    if (!path.empty()) syncline::expect_writable(path);
  }
}

void answer_with(const std::vector<SideFile>& files, const std::function<void()>& print_answer) {
  std::exception_ptr first;
  std::vector<std::string> written;
  for (const auto& file : files) {
    if (file.path.empty()) continue;
    try {
      write_file(file.path, file.content());
      written.push_back(file.path);
    } catch (const std::exception&) {
      if (!first) first = std::current_exception();
    }
  }
  print_answer();
  tell_written(written);
  if (first) std::rethrow_exception(first);
}

void tell_written(const std::vector<std::string>& paths) {
  std::vector<std::string> named = paths;
  std::erase(named, "");
  if (named.empty()) return;
  std::cerr << "syncline: wrote " << reports::one_line(reports::join_and(named)) << "\n";
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw MachineError(path + ": " + error.message());
}

}  // namespace syncline::cli
