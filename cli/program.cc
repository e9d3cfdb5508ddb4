#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/built_in.h"
#include "cli/command_line.h"
#include "cli/failure_notice.h"
#include "cli/heartbeat.h"
#include "cli/help.h"
#include "cli/modules.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/verbs.h"
#include "core/base/error.h"
#include "core/base/internal_error.h"
#include "formats/json/reader.h"
#include "formats/text/files.h"
#include "formats/text/visible.h"
#include "reports/grid.h"

namespace syncline::cli {
namespace {

// Returns the columns of the help: 80, or a narrower terminal's.
std::size_t help_width() {
  constexpr std::size_t kUsual = 80;
  const std::size_t terminal = stdout_screen(ColourMode::kNever).width;
  return terminal == 0 ? kUsual : std::min(terminal, kUsual);
}

// Prints a failure and returns `code`. `below`: further lines.
int say(const std::string& message, int code, const std::vector<std::string>& below = {}) {
  // An echoed word may be as long as the input. Many long lines share the length that a person
  // reads.
  constexpr std::size_t kLongest = 900, kAll = 2000;
  std::size_t all = std::min(message.size(), kLongest);
  for (const auto& line : below) all += std::min(line.size(), kLongest);
  const std::size_t longest = all <= kAll ? kLongest : kAll / (1 + below.size());
  std::cout.flush();
  note_failure_printed();
  std::cerr << "syncline: " << shorten_middle(visible(message), longest) << "\n";
  for (const auto& line : below) std::cerr << shorten_middle(visible(line), longest) << "\n";
  return code;
}

struct VerbRow {
  const char* name;
  const char* about;
  AddVerb add = nullptr;
  const char* module = nullptr;  // which declares the options, if `add` is null
};

// Verbs of one purpose, in the order of --help.
struct VerbGroup {
  const char* title;
  std::vector<VerbRow> verbs;
};

const std::vector<VerbGroup>& verb_groups() {
  static const std::vector<VerbGroup> groups{
      {"Ask (predict, compare, search)",
       {{"init", "Write a first scenario: a model on nodes of a known kind", nullptr, "imports"},
        {"run", "Predict the step time of every strategy and print the table", add_run},
        {"tune", "Find the fastest strategy, and write it for a framework", add_tune},
        {"explain", "Explain each strategy's bottleneck and the best changes", add_explain},
        {"plan", "Print the operations of a strategy, without running them", add_plan},
        {"buckets", "Print the buckets and their gradients", add_buckets}}},
      {"Measure (a job, a network, the predictions)",
       {{"record", "Print the Python file that records a PyTorch job as a scenario", add_record},
        {"capture", "Run a script that launches a training, without training, for init", nullptr,
         "live"},
        {"import", "Make a scenario from a profiler's trace or a model file", nullptr, "imports"},
        {"calibrate", "Fit a cluster to nccl-tests logs, step times or live links", nullptr,
         "live"},
        {"validate", "Run a scenario on real ranks, and compare with the prediction", nullptr,
         "live"},
        {"compare", "Run two commands alternately and test which is faster", nullptr, "live"},
        {"fidelity", "Reproduce published measurements and print the prediction errors",
         add_fidelity},
        {"lab", "Run a command on ranks with emulated links (needs root)", nullptr, "live"}}},
      {"Apply (in a framework)",
       {{"emit", "Write a strategy as a framework's configuration", add_emit}}},
      {"Look up",
       {{"check", "Validate a scenario at every sweep point", add_check},
        {"list", "List the names that scenarios and options accept", add_list},
        {"schema", "Print the JSON schema, for completion and checks in an editor", add_schema},
        {"completion", "Print a shell's completion script", add_completion}}}};
  return groups;
}

bool given_word(const std::vector<const char*>& words, std::string_view word) {
  return std::ranges::count(words, word) > 0;
}

// Adds every verb; those in a module get their options only if `words` ask for them.
std::map<const CLI::App*, VerbAction> add_verbs(CLI::App& app,
                                                const std::vector<const char*>& words) {
  const auto given = [&](std::string_view word) { return given_word(words, word); };
  const bool all = given("--help-all") || given("completion");
  std::map<const CLI::App*, VerbAction> actions;
  for (const auto& [title, verbs] : verb_groups()) {
    for (const VerbRow& row : verbs) {
      CLI::App* verb = app.add_subcommand(row.name, row.about)->group(title);
      if (row.add != nullptr)
        actions[verb] = row.add(*verb);
      else if (all || given(row.name))
        actions[verb] = verb_of_module(row.module, row.name)(*verb);
    }
  }
  return actions;
}

// Returns true for verbs whose commands print on this terminal themselves.
bool others_print(std::string_view verb) {
  return verb == "lab" || verb == "capture" || verb == "compare";
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
  const auto actions = add_verbs(app, words);
  // Verbs would inherit it.
  app.footer(
      "A scenario (JSON) names a workload, a cluster and strategies: docs/scenario.md.\n"
      "Options of a verb: syncline VERB --help.\n"
      "Exit codes: 0 done, 2 wrong input, 3 failing machine, 130 interrupted.");
  if (argc < 2) {
    std::cerr << app.help();
    return kWrongInput;
  }
  const std::string mistake = find_mistyped_word(app, argc, words.data());
  if (!mistake.empty()) return say(mistake, kWrongInput);
  words = with_verb_of_calibrate(words);
  argc = static_cast<int>(words.size());
  const char* const* argv = words.data();
  drop_marks(app);
  try {
    app.parse(words_to_parse(words));
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
  const CLI::App* verb = app.get_subcommands().front();
  std::optional<Heartbeat> heartbeat;
  if (!others_print(verb->get_name()) && !given_word(words, "-")) {
    heartbeat.emplace(verb->get_name());
  }
  const int code = actions.at(verb)();
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
  } catch (const std::system_error& error) {  // usually a thread: memory or processes ran out
    return say(std::string("the machine gives no more: ") + error.what(), kFailingMachine);
  } catch (const std::exception& error) {
    return say(std::string("unexpected failure: ") + error.what(), kFailingMachine);
  }
}

}  // namespace syncline::cli
