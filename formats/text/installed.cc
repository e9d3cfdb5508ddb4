#include "formats/text/installed.h"

namespace syncline {

namespace fs = std::filesystem;

fs::path program_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return program.parent_path();
}

fs::path data_folder(const fs::path& program) {
  std::error_code error;
  const fs::path built = program / "share" / "syncline";
  return fs::is_directory(built, error) ? built : program.parent_path() / "share" / "syncline";
}

std::string scenarios_folder() {
  // Published tables are what no other folder of that name has.
  std::error_code error;
  if (fs::is_directory("scenarios/published", error)) return "scenarios";
  return (data_folder() / "scenarios").generic_string();
}

fs::path own_library(const std::string& name, const fs::path& program) {
  std::error_code error;
  for (const fs::path& folder : {program, program.parent_path() / "lib" / "syncline" / "modules"}) {
    if (fs::exists(folder / name, error)) return folder / name;
  }
  return {};
}

}  // namespace syncline
