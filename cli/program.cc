#include <cstdio>
#include <iostream>
#include <map>
#include <new>

#include "cli/verbs.h"
#include "core/error.h"

namespace syncline {
namespace {

constexpr int kWrongInput = 2;
constexpr int kFailingMachine = 3;

int say(const std::string& message, int code) {
  std::cout.flush();
  std::cerr << "syncline: " << message << "\n";
  return code;
}

}  // namespace

std::string version() { return SYNCLINE_VERSION; }

int run_program(int argc, const char* const* argv) {
  CLI::App app{
      "Finds, predicts and validates how to synchronise gradients in data-parallel training."};
  app.name("syncline");
  app.set_version_flag("--version", "syncline " + version());
  app.require_subcommand(1);
  app.footer(
      "A scenario (JSON) names a workload, a cluster and strategies; README.md shows how to write\n"
      "one. Exit codes: 0 done, 2 wrong input, 3 failing machine.");

  std::map<const CLI::App*, VerbAction> actions;
  for (auto* add : {add_run, add_plan, add_buckets, add_explain, add_emit, add_check, add_tune,
                    add_calibrate, add_fidelity, add_list}) {
    const VerbAction action = add(app);
    actions[app.get_subcommands([](const CLI::App*) { return true; }).back()] = action;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success);
    std::cout.flush();
    return std::cout ? 0 : say("standard output: cannot be written", kFailingMachine);
  } catch (const CLI::ParseError& error) {
    app.exit(error, std::cerr, std::cerr);
    return kWrongInput;
  }
  try {
    const int code = actions.at(app.get_subcommands().front())();
    // An answer that could not be written is no answer.
    std::cout.flush();
    if (!std::cout) throw MachineError("standard output: cannot be written");
    return code;
  } catch (const InputError& error) {
    return say(error.what(), kWrongInput);
  } catch (const MachineError& error) {
    return say(error.what(), kFailingMachine);
  } catch (const std::bad_alloc&) {
    return say("out of memory", kFailingMachine);
  }
}

}  // namespace syncline
