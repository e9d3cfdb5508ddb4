// Folders of the program's own files, found only from the program's own location: an installed one
// can be moved with its folders, and does not need the sources.
//   installed   PREFIX/bin/syncline   PREFIX/share/syncline    PREFIX/lib/syncline/modules
//   built       BUILD/syncline        BUILD/share/syncline     BUILD
#pragma once

#include <filesystem>
#include <string>

namespace syncline {

// Returns the folder of the running program, links followed. For Python's module it is the folder
// of the program in the same package; a wheel's package is a PREFIX.
std::filesystem::path program_folder();

// Returns the folder with scenarios/, for a program in `program`. If there is none, returns its
// place for an installed program.
std::filesystem::path data_folder(const std::filesystem::path& program = program_folder());

// Returns the scenarios folder for messages: that of the working directory if it is Syncline's,
// else the one that came with the program.
std::string scenarios_folder();

// Returns the path of a scenario that a user names. If the working directory lacks scenarios/,
// "scenarios/NAME" means the file of the program's own folder, if it exists.
std::string scenario_path(const std::string& named);

// Returns a library that the program loads on demand ("libsyncline_mpi.so"); empty: it is missing.
std::filesystem::path own_library(const std::string& name,
                                  const std::filesystem::path& program = program_folder());

}  // namespace syncline
