#include "cli/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace syncline::cli {

void write_file(const std::string& path, const std::string& content) {
  const std::string partial = path + ".partial-" + std::to_string(::getpid());
  errno = 0;
  std::ofstream out(partial, std::ios::binary);
  out << content;
  out.close();
  if (!out) {
    const std::string reason = errno != 0 ? std::strerror(errno) : "cannot be written";
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw MachineError(path + ": " + reason);
  }
  std::error_code error;
  std::filesystem::rename(partial, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw MachineError(path + ": " + error.message());
  }
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw MachineError(path + ": " + error.message());
}

}  // namespace syncline::cli
