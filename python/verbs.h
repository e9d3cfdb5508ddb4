// Answers of the program's verbs to a caller who has their options as JSON.
#pragma once

#include <string>

#include "formats/json/json.h"

namespace syncline::python {

// `verb`: run, tune, explain, plan, calibrate or import_job; `arguments`: the keywords of the
// function of that name (python/syncline/__init__.py). A file may be given by its path or
// as its content.
//   json   what the verb prints by --format json
//   text   its page for a terminal
//   html   its page for a browser
//   made   what the verb writes by -o or --python; null where there is nothing to write
// Throws InputError, also for arguments that do not fit, and MachineError.
Json answer(const std::string& verb, const Json& arguments);

// {verb: its arguments} (studies/questions/arguments.h) of those that the command line and Python
// read by one table.
Json arguments();

// The frameworks and predictors; the module calls it once.
void hand_in_all();

// Of the program that these sources make.
std::string version();

}  // namespace syncline::python
