#include "cli/files.h"

#include <exception>
#include <filesystem>

#include "core/error.h"

namespace syncline::cli {

void expect_writable(const std::vector<std::string>& paths) {
  for (const auto& path : paths) {
    if (!path.empty()) syncline::expect_writable(path);
  }
}

void answer_with(const std::vector<SideFile>& files, const std::function<void()>& print_answer) {
  std::exception_ptr first;
  for (const auto& file : files) {
    try {
      if (!file.path.empty()) write_file(file.path, file.content());
    } catch (const std::exception&) {
      if (!first) first = std::current_exception();
    }
  }
  print_answer();
  if (first) std::rethrow_exception(first);
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw MachineError(path + ": " + error.message());
}

}  // namespace syncline::cli
