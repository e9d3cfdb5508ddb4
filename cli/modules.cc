#include "cli/modules.h"

#include <dlfcn.h>

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <map>
#include <string>

#include "core/base/error.h"
#include "formats/text/installed.h"

namespace syncline::cli {
namespace {

std::map<std::string, ModuleEntry, std::less<>>& linked_modules() {
  static std::map<std::string, ModuleEntry, std::less<>> entries;
  return entries;
}

// Returns true if a build has made the program again, but not yet this module with its old types.
bool older_than_program(const std::filesystem::path& library) {
  std::error_code error;
  return library.parent_path() == program_folder() &&
         std::filesystem::last_write_time(library, error) <
             std::filesystem::last_write_time("/proc/self/exe", error);
}

ModuleEntry loaded_entry(const std::string& name) {
  const std::string file = "libsyncline_" + name + ".so";
  const std::string library = own_library(file).string();
  const std::string what = "the module '" + name + "' ";
  if (library.empty()) {
    throw MachineError(what + "is not with this program (" + file + "): make modules builds it");
  }
  if (older_than_program(library)) {
    throw MachineError(what + "is older than this program (" + library +
                       "): make modules builds it");
  }
  // A backend calls functions of the module of ranks, which is loaded by then.
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) throw MachineError(what + "cannot be loaded: " + dlerror());
  void* symbol = dlsym(handle, ("syncline_module_" + name).c_str());
  if (symbol == nullptr) throw MachineError(what + "cannot be loaded: " + dlerror());
  return reinterpret_cast<ModuleEntry>(symbol);
}

}  // namespace

void link_module(std::string_view name, ModuleEntry entry) {
  linked_modules().emplace(name, entry);
}

const ModuleRows& module_rows(std::string_view name) {
  static std::map<std::string, ModuleRows, std::less<>> loaded;
  const auto known = loaded.find(name);
  if (known != loaded.end()) return known->second;
  const auto linked = linked_modules().find(name);
  const ModuleEntry entry =
      linked != linked_modules().end() ? linked->second : loaded_entry(std::string(name));
  entry(loaded[std::string(name)]);
  return loaded.find(name)->second;
}

AddVerb verb_of_module(std::string_view module, std::string_view verb) {
  const auto& verbs = module_rows(module).verbs;
  const auto row = std::ranges::find(verbs, verb, &ModuleRows::Verb::name);
  assert(row != verbs.end() && "the table of verbs names those that the module has");
  return row->add;
}

}  // namespace syncline::cli
