#include <iostream>
#include <memory>

#include "cli/help.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "reports/shell_completion.h"

namespace syncline::cli {
namespace {

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
  auto* verb = app.add_subcommand("completion", "Print a shell's completion script");
  verb->add_option("shell", *shell, "shell to complete command lines in")
      ->required()
      ->transform(one_of_words(reports::shells()));
  verb->footer(
      "In a running shell: source <(syncline completion bash).\n"
      "An installed Syncline needs no such line.");
  return [&app, shell] {
    std::cout << reports::shell_completion(verbs_of(app), *shell);
    return 0;
  };
}

}  // namespace syncline::cli
