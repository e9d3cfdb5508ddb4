#include "formats/text/installed.h"

#include <dlfcn.h>
#include <link.h>

namespace syncline {

namespace fs = std::filesystem;

namespace {

// Returns the library that contains this code; empty: a program contains it.
fs::path own_file() {
  static const char mark = 0;
  Dl_info symbol;
  link_map* library = nullptr;
  void** const found = reinterpret_cast<void**>(&library);
  return ::dladdr1(&mark, &symbol, found, RTLD_DL_LINKMAP) != 0 && library != nullptr
             ? library->l_name
             : "";
}

}  // namespace

fs::path program_folder() {
  std::error_code error;
  const fs::path library = own_file();
  const fs::path packed = library.parent_path() / "bin";
  if (!library.empty() && fs::exists(packed / "syncline", error)) return packed;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return program.parent_path();
}

fs::path data_folder(const fs::path& program) {
  std::error_code error;
  const fs::path built = program / "share" / "syncline";
  return fs::is_directory(built, error) ? built : program.parent_path() / "share" / "syncline";
}

std::string scenarios_folder() {
  // Only this folder of that name has published tables.
  std::error_code error;
  if (fs::is_directory("scenarios/published", error)) return "scenarios";
  return (data_folder() / "scenarios").generic_string();
}

std::string scenario_path(const std::string& named) {
  std::error_code error;
  const fs::path path = fs::path(named).lexically_normal();
  if (path.empty() || *path.begin() != "scenarios" || fs::exists("scenarios", error)) return named;
  const fs::path shipped = data_folder() / path;
  return fs::exists(shipped, error) ? shipped.generic_string() : named;
}

fs::path own_library(const std::string& name, const fs::path& program) {
  std::error_code error;
  for (const fs::path& folder : {program, program.parent_path() / "lib" / "syncline" / "modules"}) {
    if (fs::exists(folder / name, error)) return folder / name;
  }
  return {};
}

}  // namespace syncline
