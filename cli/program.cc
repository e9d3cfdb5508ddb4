#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "cli/built_in.h"
#include "cli/command_line.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/verbs.h"
#include "core/base/error.h"
#include "core/base/internal_error.h"
#include "formats/json/reader.h"
#include "formats/text/files.h"
#include "formats/text/visible.h"
#include "live/local_ranks.h"
#include "reports/grid.h"

namespace syncline::cli {
namespace {

// Columns of the help: 80, or a narrower terminal's.
std::size_t help_width() {
  constexpr std::size_t kUsual = 80;
  const std::size_t terminal = stdout_screen(ColourMode::kNever).width;
  return terminal == 0 ? kUsual : std::min(terminal, kUsual);
}

// `below`: lines of their own.
int say(const std::string& message, int code, const std::vector<std::string>& below = {}) {
  // An echoed word may be as long as the input. Many long lines share the length that a person
  // reads.
  constexpr std::size_t kLongest = 900, kAll = 2000;
  std::size_t all = std::min(message.size(), kLongest);
  for (const auto& line : below) all += std::min(line.size(), kLongest);
  const std::size_t longest = all <= kAll ? kLongest : kAll / (1 + below.size());
  std::cout.flush();
  live::note_failure_printed();
  std::cerr << "syncline: " << shortened_inside(visible(message), longest) << "\n";
  for (const auto& line : below) std::cerr << shortened_inside(visible(line), longest) << "\n";
  return code;
}

// Verbs by what a user wants, in the order of --help.
struct VerbGroup {
  const char* title;
  std::vector<VerbAction (*)(CLI::App&)> verbs;
};

const std::vector<VerbGroup>& verb_groups() {
  static const std::vector<VerbGroup> groups{
      {"Ask (predict, compare, search)",
       {add_init, add_run, add_tune, add_explain, add_plan, add_buckets}},
      {"Measure (a job, a network, the predictions)",
       {add_record, add_import, add_calibrate, add_validate, add_compare, add_fidelity, add_lab}},
      {"Apply (in a framework)", {add_emit}},
      {"Look up", {add_check, add_list, add_schema, add_completion}}};
  return groups;
}

std::map<const CLI::App*, VerbAction> add_verbs(CLI::App& app) {
  std::map<const CLI::App*, VerbAction> actions;
  for (const auto& [title, verbs] : verb_groups()) {
    for (const auto add : verbs) {
      const VerbAction action = add(app);
      CLI::App* verb = app.get_subcommands([](const CLI::App*) { return true; }).back();
      verb->group(title);
      actions[verb] = action;
    }
  }
  return actions;
}

int run_verb(int argc, const char* const* given) {
  forget_what_was_read();
  std::vector<const char*> words = as_options(argc, given);
  CLI::App app{"Predict, tune and validate gradient synchronisation of data parallelism."};
  app.name("syncline");
  app.formatter(help_within(help_width()));
  app.set_help_flag("-h,--help", "print this help");
  app.set_help_all_flag("--help-all", "print the help of every option");
  app.set_version_flag("-V,--version", build_facts(), "print the version and the build");
  app.require_subcommand(1);
  const auto actions = add_verbs(app);
  // Verbs would inherit it.
  app.footer(
      "A scenario (JSON) names a workload, a cluster and strategies: docs/scenario.md.\n"
      "Options of a verb: syncline VERB --help.\n"
      "Exit codes: 0 done, 2 wrong input, 3 failing machine, 130 interrupted.");
  if (argc < 2) {
    std::cerr << app.help();
    return kWrongInput;
  }
  const std::string mistake = mistyped(app, argc, words.data());
  if (!mistake.empty()) return say(mistake, kWrongInput);
  words = with_verb_of_calibrate(words);
  argc = static_cast<int>(words.size());
  const char* const* argv = words.data();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    std::ostringstream text;
    app.exit(success, text, text);
    std::cout << reports::wrapped_lines(text.str(), stdout_screen(ColourMode::kAuto).width)
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
  } catch (const InternalError& error) {
    return say(error.what(), kFailingMachine);
  } catch (const std::system_error& error) {  // a thread, as a rule: memory or processes ran out
    return say(std::string("the machine gives no more: ") + error.what(), kFailingMachine);
  } catch (const std::exception& error) {
    return say(std::string("unexpected failure: ") + error.what(), kFailingMachine);
  }
}

}  // namespace syncline::cli
