// Where the program's own files lie. They are found from where the program is, and nowhere else: an
// installed one can be moved with its folders, and needs nothing of the sources.
//
//   installed   PREFIX/bin/syncline   PREFIX/share/syncline    PREFIX/lib/syncline/modules
//   built       BUILD/syncline        BUILD/share/syncline     BUILD
#pragma once

#include <filesystem>
#include <string>

namespace syncline {

// The folder of the program that runs, links followed; for Python's module, of the program that
// lies in the same package, which is a PREFIX in a wheel.
std::filesystem::path program_folder();

// The folder with scenarios/, for a program in `program`. Where there is none, the one in which an
// installed program would have it.
std::filesystem::path data_folder(const std::filesystem::path& program = program_folder());

// The scenarios folder, as messages name it: that of the working directory where it is Syncline's,
// or else the one that came with the program.
std::string scenarios_folder();

// A scenario as a user names it. One of scenarios/, where the working directory has no such folder,
// is that which came with the program, if there is one.
std::string scenario_path(const std::string& named);

// A library that the program loads when it is needed ("libsyncline_mpi.so"); empty: it is not
// there.
std::filesystem::path own_library(const std::string& name,
                                  const std::filesystem::path& program = program_folder());

}  // namespace syncline
