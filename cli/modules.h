// Modules: parts of the program that it loads when a verb or an option needs them. So neither
// building nor starting the program depends on GPU kernels, libraries of ranks or readers of jobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/verbs.h"

namespace syncline::input {
struct Document;
}  // namespace syncline::input
namespace syncline::live {
struct Backend;
}  // namespace syncline::live

namespace syncline::cli {

struct TuneArguments;

// Rows that one module adds to the program's tables.
struct ModuleRows {
  struct Verb {
    std::string_view name;
    AddVerb add;
  };
  struct Format {
    std::string_view name;
    std::string_view summary;
  };
  std::vector<Verb> verbs;
  std::vector<Format> formats;  // jobs that the module reads
  std::vector<Format> models;   // that it knows by name, each with its model_type
  const live::Backend* backend = nullptr;
  // Searches on ranks: tune --live. Returns the exit code.
  int (*tune_live)(const TuneArguments& arguments, const input::Document& document,
                   const std::string& command) = nullptr;
};

// Fills in a module's rows. The library libsyncline_NAME.so exports it as the symbol
// syncline_module_NAME.
using ModuleEntry = void (*)(ModuleRows& rows);

// Registers a module that is linked into the program; no library is then searched for it.
void link_module(std::string_view name, ModuleEntry entry);

// Returns the rows of a module, loaded at the first call. Throws MachineError if its library is not
// with the program, is older than it, or cannot be loaded.
const ModuleRows& module_rows(std::string_view name);

// Returns a module's verb. Throws like module_rows().
AddVerb verb_of_module(std::string_view module, std::string_view verb);

}  // namespace syncline::cli

// The entries of all modules, each in cli/modules/NAME.cc.
extern "C" {
void syncline_module_gloo(syncline::cli::ModuleRows& rows);
void syncline_module_imports(syncline::cli::ModuleRows& rows);
void syncline_module_live(syncline::cli::ModuleRows& rows);
void syncline_module_nccl(syncline::cli::ModuleRows& rows);
}
