#include <filesystem>
#include <iostream>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "cli/built_in.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/json/reader.h"
#include "core/visible.h"
#include "live/local_ranks.h"
#include "reports/screen.h"

namespace syncline::cli {
namespace {

// `below`: lines of their own.
int say(const std::string& message, int code, const std::vector<std::string>& below = {}) {
  // What was echoed may be as long as the input; paths are.
  constexpr std::size_t kLongest = 900;
  std::cout.flush();
  live::note_failure_printed();
  std::cerr << "syncline: " << shortened_inside(visible(message), kLongest) << "\n";
  for (const auto& line : below) std::cerr << shortened_inside(visible(line), kLongest) << "\n";
  return code;
}

int run_verb(int argc, const char* const* given) {
  const std::vector<const char*> words = as_options(argc, given);
  const char* const* argv = words.data();
  CLI::App app{
      "Finds, predicts and validates how to synchronise gradients in data-parallel training."};
  app.name("syncline");
  app.set_version_flag("-V,--version", build_facts());
  app.require_subcommand(1);
  app.footer(
      "A scenario (JSON) names a workload, a cluster and strategies; docs/scenario.md shows how to "
      "write\n"
      "one. Exit codes: 0 done, 2 wrong input, 3 failing machine, 130 interrupted.");

  std::map<const CLI::App*, VerbAction> actions;
  for (auto* add : {add_record, add_import, add_init, add_run, add_plan, add_buckets, add_explain,
                    add_emit, add_check, add_tune, add_calibrate, add_validate, add_fidelity,
                    add_lab, add_list, add_schema, add_completion}) {
    const VerbAction action = add(app);
    actions[app.get_subcommands([](const CLI::App*) { return true; }).back()] = action;
  }
  const std::string mistake = mistyped(app, argc, argv);
  if (!mistake.empty()) return say(mistake, kWrongInput);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    std::ostringstream text;
    app.exit(success, text, text);
    std::cout << reports::wrapped_lines(text.str(), stdout_screen(Colour::kAuto).width)
              << std::flush;
    expect_printed();
    return 0;
  } catch (const CLI::ParseError& error) {
    return say(refusal(app, error, argc, argv), kWrongInput);
  }
  const int code = actions.at(app.get_subcommands().front())();
  expect_printed();
  return code;
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  try {
    return run_verb(argc, argv);
  } catch (const InputMistakes& error) {
    return say(error.what(), kWrongInput, error.below);
  } catch (const InputError& error) {
    return say(error.what(), kWrongInput);
  } catch (const MachineError& error) {
    return say(error.what(), kFailingMachine);
  } catch (const std::bad_alloc&) {
    return say("out of memory", kFailingMachine);
  } catch (const std::filesystem::filesystem_error& error) {
    return say(error.path1().string() + ": " + error.code().message(), kFailingMachine);
  } catch (const std::exception& error) {
    return say(std::string("a failure that was not foreseen: ") + error.what(), kFailingMachine);
  }
}

}  // namespace syncline::cli
