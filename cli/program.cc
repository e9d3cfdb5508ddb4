#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/build_facts.h"
#include "cli/exit.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/json/mistakes.h"
#include "core/json/reader.h"
#include "core/visible.h"
#include "live/failure_notice.h"
#include "reports/screen.h"

namespace syncline::cli {
namespace {

// `below`: lines of their own.
int say(const std::string& message, int code, const std::vector<std::string>& below = {}) {
  // What was echoed may be as long as the input.
  constexpr std::size_t kLongest = 4000;
  std::cout.flush();
  live::note_failure_printed();
  std::cerr << "syncline: " << shortened(visible(message), kLongest) << "\n";
  for (const auto& line : below) std::cerr << shortened(visible(line), kLongest) << "\n";
  return code;
}

// Arguments reach answers, files and messages; those behind -- are another program's.
std::string mistaken_argument(int argc, const char* const* argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    if (!not_utf8(argv[i])) continue;
    return "argument " + std::to_string(i) +
           (i > 1 ? ", behind '" + std::string(argv[i - 1]) + "'" : "") + ": not UTF-8 (Latin-1?)";
  }
  return "";
}

// The parser's words, with the arguments that they repeat cut.
std::string parser_words(const CLI::ParseError& error, int argc, const char* const* argv) {
  std::string words = error.what();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    for (const std::string& echoed : {word, word.substr(word.find('=') + 1)}) {
      const std::string cut = shortened(echoed);
      const std::size_t at = words.find(echoed);
      if (cut != echoed && at != std::string::npos) words.replace(at, echoed.size(), cut);
    }
  }
  return words;
}

// The verb that was written, if it is none. The parser would only say that one is required.
std::string unknown_verb(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  const std::string word = argv[1];
  std::vector<std::string> verbs;
  std::string known;
  for (const auto* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_name() == word) return "";
    verbs.push_back(verb->get_name());
    known += (known.empty() ? "" : ", ") + verb->get_name();
  }
  return "unknown command '" + shortened(word) + "'" + did_you_mean(word, verbs) +
         "; commands: " + known;
}

// The option that the verb does not have, with the nearest one that it has. Empty where none is
// unknown: the parser's own words say then what is wrong.
std::string unknown_option(const CLI::App& verb, int argc, const char* const* argv) {
  std::vector<std::string> names;
  for (const auto* option : verb.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string name = word.substr(0, word.find('='));
    if (name == "--") break;
    if (!name.starts_with("--")) continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return "unknown option '" + shortened(name) + "'" + did_you_mean(name, names);
  }
  return "";
}

}  // namespace

std::string version() { return SYNCLINE_VERSION; }

namespace {

int run_verb(int argc, const char* const* argv) {
  CLI::App app{
      "Finds, predicts and validates how to synchronise gradients in data-parallel training."};
  app.name("syncline");
  app.set_version_flag("--version", build_facts());
  app.require_subcommand(1);
  app.footer(
      "A scenario (JSON) names a workload, a cluster and strategies; docs/scenario.md shows how to "
      "write\n"
      "one. Exit codes: 0 done, 2 wrong input, 3 failing machine, 130 interrupted.");

  std::map<const CLI::App*, VerbAction> actions;
  for (auto* add : {add_record, add_import, add_init, add_run, add_plan, add_buckets, add_explain,
                    add_emit, add_check, add_tune, add_calibrate, add_validate, add_fidelity,
                    add_numerics, add_report, add_lab, add_list, add_schema, add_completion}) {
    const VerbAction action = add(app);
    actions[app.get_subcommands([](const CLI::App*) { return true; }).back()] = action;
  }
  const std::string mistaken = mistaken_argument(argc, argv);
  if (!mistaken.empty()) return say(mistaken, kWrongInput);
  const std::string unknown = unknown_verb(app, argc, argv);
  if (!unknown.empty()) return say(unknown, kWrongInput);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    std::ostringstream text;
    app.exit(success, text, text);
    std::cout << reports::wrapped_lines(text.str(), stdout_screen(Colour::kAuto).width)
              << std::flush;
    return std::cout ? 0 : say("standard output: cannot be written", kFailingMachine);
  } catch (const CLI::ParseError& error) {
    const auto verbs = app.get_subcommands();
    const std::string verb = verbs.empty() ? "" : verbs.front()->get_name() + " ";
    const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const std::string option =
        extra && !verbs.empty() ? unknown_option(*verbs.front(), argc, argv) : std::string();
    return say((option.empty() ? parser_words(error, argc, argv) : option) +
                   ("; see syncline " + verb) + "--help",
               kWrongInput);
  }
  const int code = actions.at(app.get_subcommands().front())();
  // An answer that could not be written is no answer.
  std::cout.flush();
  if (!std::cout) throw MachineError("standard output: cannot be written");
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
