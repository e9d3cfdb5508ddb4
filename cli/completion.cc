#include <iostream>
#include <memory>
#include <sstream>

#include "cli/options.h"
#include "cli/verbs.h"
#include "reports/shell_completion.h"

namespace syncline::cli {
namespace {

// "TEXT:{model,sim}" names the words that are allowed.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t from = type.find('{');
  const std::size_t to = type.find('}', from);
  std::vector<std::string> choices;
  if (to == std::string::npos) return choices;
  std::istringstream list(type.substr(from + 1, to - from - 1));
  for (std::string word; std::getline(list, word, ',');) choices.push_back(word);
  return choices;
}

reports::CompletedWord word_of(const CLI::Option& option) {
  reports::CompletedWord word;
  for (const auto& name : option.get_snames()) word.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) word.names.push_back("--" + name);
  word.about = option.get_description();
  word.takes_value = option.get_items_expected_max() > 0;
  word.repeats = option.get_items_expected_max() > 1;
  word.choices = choices_of(option);
  return word;
}

std::vector<reports::CompletedVerb> verbs_of(const CLI::App& app) {
  std::vector<reports::CompletedVerb> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back({verb->get_name(), verb->get_description(), {}});
    for (const CLI::Option* option : verb->get_options()) {
      if (!option->get_group().empty()) verbs.back().words.push_back(word_of(*option));
    }
  }
  return verbs;
}

}  // namespace

VerbAction add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  auto* verb = app.add_subcommand("completion",
                                  "Print what makes a shell complete this program's "
                                  "command lines");
  verb->add_option("shell", *shell, "which shell")
      ->required()
      ->transform(one_of_words(reports::shells()));
  verb->footer(
      "For the shell at hand: source <(syncline completion bash). Where Syncline is installed, "
      "shells "
      "find it.");
  return [&app, shell] {
    std::cout << reports::shell_completion(verbs_of(app), *shell);
    return 0;
  };
}

}  // namespace syncline::cli
