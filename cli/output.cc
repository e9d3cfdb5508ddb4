#include "cli/output.h"

#include <iostream>

#include "cli/verbs.h"

namespace syncline {

CLI::Option* add_format(CLI::App& verb, Format& format) {
  const CLI::Validator known_as_table(
      [](std::string& word) {
        if (word == "text") word = format_words().front();
        return std::string();
      },
      "");
  return verb
      .add_option_function<std::string>(
          "--format", [&format](const std::string& word) { format = format_of(word); },
          "what is printed")
      ->transform(known_as_table)
      ->check(CLI::IsMember(format_words()))
      ->default_str(format_words().front());
}

void print(const Answer& answer, Format format) {
  std::cout << printed(answer, format, version()) << std::flush;
}

}  // namespace syncline
