#include "cli/command_line.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/help.h"
#include "formats/json/reader.h"
#include "formats/text/shell_word.h"
#include "formats/text/visible.h"
#include "reports/format.h"

namespace syncline::cli {
namespace {

// Names an argument that is not UTF-8. Those after -- are another program's.
std::string mistaken_argument(int argc, const char* const* argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    if (!not_utf8(argv[i])) continue;
    return "argument " + std::to_string(i) +
           (i > 1 ? ", after '" + std::string(argv[i - 1]) + "'" : "") + ": not UTF-8 (Latin-1?)";
  }
  return "";
}

constexpr char kMark = '\x1f';  // behind a word in brackets

std::string unmarked(std::string word) {
  if (word.ends_with(kMark)) word.pop_back();
  return word;
}

// Returns the parser's message, with long arguments in it shortened.
std::string parser_words(const CLI::ParseError& error, int argc, const char* const* argv) {
  std::string words = error.what();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    for (const std::string& echoed : {word, word.substr(word.find('=') + 1)}) {
      const std::string cut = shorten_text(echoed);
      const std::size_t at = words.find(echoed);
      if (cut != echoed && at != std::string::npos) words.replace(at, echoed.size(), cut);
    }
  }
  return words;
}

// Returns the parser's "file is required" as "FILE is missing", like the usage line.
std::string words_of_missing(std::string words) {
  constexpr std::string_view kEnd = " is required";
  if (!words.ends_with(kEnd)) return words;
  words.resize(words.size() - kEnd.size());
  if (!words.starts_with('-') && words.find(' ') == std::string::npos) {
    for (char& letter : words) letter = static_cast<char>(std::toupper(letter));
  }
  return words + " is missing";
}

// Returns the typed verb if it is unknown. The parser would only say that one is required.
std::string unknown_verb(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  const std::string word = argv[1];
  std::vector<std::string> verbs;
  for (const auto* verb : verbs_of(app)) verbs.push_back(verb->get_name());
  if (std::ranges::count(verbs, word) > 0) return "";
  std::error_code error;
  if (word.ends_with(".json") || std::filesystem::is_regular_file(word, error)) {
    return "'" + shorten_text(word) + "' is a file, not a command: did you mean 'syncline run " +
           shorten_text(word) + "'?";
  }
  return "unknown command '" + shorten_text(word) + "'" + did_you_mean(word, verbs) +
         "; commands: " + reports::join(verbs);
}

// Names the option that the verb, or the program, does not have, with the nearest one that it has.
// Empty if all are known: the parser's own message then names the mistake.
std::string unknown_option(const CLI::App& verb, int argc, const char* const* argv) {
  const int first = verb.get_parent() == nullptr ? 1 : 2;
  std::vector<std::string> names;
  for (const auto* option : verb.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  for (int i = first; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string name = word.substr(0, word.find('='));
    if (name == "--") break;
    // "-oFILE" is "-o", and "-5" a value.
    const bool is_long = name.starts_with("--");
    const std::string own = is_long ? name : name.substr(0, 2);
    const bool is_short = own.size() == 2 && own[0] == '-' && std::isalpha(own[1]) != 0;
    if (!is_long && !is_short) continue;
    if (std::find(names.begin(), names.end(), own) != names.end()) continue;
    return "unknown option '" + shorten_text(name) + "'" + did_you_mean(name, names);
  }
  return "";
}

// Returns the command line as it was given, without the program's name.
std::vector<std::string> words_of(const CLI::App& verb) {
  std::vector<std::string> words{verb.get_name()};
  std::vector<const CLI::Option*> done;
  for (const CLI::Option* option : verb.parse_order()) {
    if (std::find(done.begin(), done.end(), option) != done.end()) continue;
    done.push_back(option);
    for (const auto& value : option->results()) {
      if (!option->get_positional()) words.push_back("--" + option->get_single_name());
      if (option->get_type_size() > 0) words.push_back(unmarked(value));
    }
  }
  return words;
}

}  // namespace

std::vector<const char*> as_options(int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (argc < 2) return words;
  const std::string_view first = words[1];
  if (first == "version" && argc == 2) words[1] = "--version";
  if (first != "help") return words;
  if (argc > 2) std::swap(words[1], words[2]);
  words[argc > 2 ? 2 : 1] = "--help";
  return words;
}

std::vector<const char*> with_verb_of_calibrate(std::vector<const char*> words) {
  if (words.size() < 2 || std::string_view(words[1]) != "calibrate") return words;
  static const std::vector<std::string> known{"logs", "steps",  "live",      "kernels",
                                              "-h",   "--help", "--help-all"};
  if (words.size() > 2 && std::ranges::count(known, words[2]) > 0) return words;
  const bool no_logs = std::ranges::any_of(
      words, [](std::string_view word) { return word.starts_with("--cluster"); });
  std::vector<const char*> verb{"logs"};
  for (const char* name : {"live", "steps", "kernels"}) {
    if (name == std::string_view("kernels") && !no_logs) break;
    const std::string option = std::string("--") + name;
    const auto at = std::ranges::find_if(words, [&](std::string_view word) {
      return word == option || word.starts_with(option + "=");
    });
    if (at == words.end()) continue;
    const bool in_one = *at != option;
    if (!in_one && at + 1 == words.end()) continue;
    // The word after the option is an argument now.
    verb = {name, in_one ? *at + option.size() + 1 : at[1]};
    words.erase(at, at + (in_one ? 1 : 2));
    break;
  }
  verb.insert(verb.end(), {"--old-form", verb.front()});
  words.insert(words.begin() + 2, verb.begin(), verb.end());
  return words;
}

std::vector<std::string> words_to_parse(const std::vector<const char*>& words) {
  std::vector<std::string> marked(words.rbegin(), words.rend() - 1);
  for (std::string& word : marked) {
    if (word.starts_with('[') && word.ends_with(']')) word += kMark;
  }
  return marked;
}

void drop_marks(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_size() > 0) option->transform(unmarked);
  }
  for (CLI::App* verb : app.get_subcommands({})) drop_marks(*verb);
}

std::string find_mistyped_word(const CLI::App& app, int argc, const char* const* argv) {
  const std::string mistaken = mistaken_argument(argc, argv);
  return mistaken.empty() ? unknown_verb(app, argc, argv) : mistaken;
}

std::string refusal(const CLI::App& app, const CLI::ParseError& error, int argc,
                    const char* const* argv) {
  std::string name;
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) {
    verb = verb->get_subcommands().front();
    name += verb->get_name() + " ";
  }
  // A mistyped option may also leave a required one out.
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                     dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const std::string option = extra ? unknown_option(*verb, argc, argv) : std::string();
  return (option.empty() ? words_of_missing(parser_words(error, argc, argv)) : option) +
         ("; see syncline " + name) + "--help";
}

std::string command_line(const CLI::App& verb) {
  std::string line = "syncline";
  for (const auto& word : words_of(verb)) line += " " + shell_word(word);
  return line;
}

}  // namespace syncline::cli
