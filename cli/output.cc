#include "cli/output.h"

#include <iostream>

#include "cli/verbs.h"
#include "reports/format.h"

namespace syncline::cli {

CLI::Option* add_format(CLI::App& verb, reports::Format& format) {
  const CLI::Validator known_as_table(
      [](std::string& word) {
        if (word == "text") word = reports::format_words().front();
        return std::string();
      },
      "");
  return verb
      .add_option_function<std::string>(
          "--format", [&format](const std::string& word) { format = reports::format_of(word); },
          "what is printed")
      ->transform(known_as_table)
      ->check(CLI::IsMember(reports::format_words()))
      ->default_str(reports::format_words().front());
}

void print(const reports::Answer& answer, reports::Format format) {
  std::cout << reports::printed(answer, format, version()) << std::flush;
  if (format != reports::Format::kCsv) return;
  for (const auto& remark : answer.remarks) {
    std::cerr << "syncline: " << reports::one_line(remark) << "\n";
  }
}

}  // namespace syncline::cli
