#include "cli/output.h"

#include <algorithm>
#include <iostream>

#include "cli/verbs.h"
#include "cli/word_option.h"
#include "core/error.h"
#include "reports/format.h"
#include "reports/html_page.h"

namespace syncline::cli {

namespace {

void add_color(CLI::App& verb, Colour& colour) {
  static const std::vector<std::string> words{"auto", "always", "never"};
  verb.add_option_function<std::string>(
          "--color",
          [&colour](const std::string& word) {
            const auto at = std::find(words.begin(), words.end(), word) - words.begin();
            colour = static_cast<Colour>(at);
          },
          "whether the winner and what does not pay stand out in the table")
      ->transform(one_of_words(words))
      ->default_str(words.front());
}

}  // namespace

CLI::Option* add_format(CLI::App& verb, OutputFormat& format) {
  add_color(verb, format.colour);
  const CLI::Validator known_as_table(
      [](std::string& word) {
        if (word == "text") word = reports::format_words().front();
        return std::string();
      },
      "");
  return verb
      .add_option_function<std::string>(
          "--format",
          [&format](const std::string& word) { format.format = reports::format_of(word); },
          "what is printed")
      ->transform(one_of_words(reports::format_words()))
      ->transform(known_as_table)  // the later one comes first
      ->default_str(reports::format_words().front());
}

CLI::Option* add_html(CLI::App& verb, std::string& file) {
  return verb.add_option("--html", file, "file for a page with figures, to be opened in a browser");
}

SideFile html_file(const std::string& path, const reports::Answer& answer) {
  return {path, [&answer] { return reports::html_page(answer, version()); }};
}

void print(const reports::Answer& answer, const OutputFormat& format) {
  std::cout << reports::printed(answer, format.format, version(), stdout_screen(format.colour))
            << std::flush;
  if (format.format == reports::Format::kCsv) tell_remarks(answer.remarks);
}

void expect_printed() {
  std::cout.flush();
  if (!std::cout) throw MachineError("standard output: cannot be written");
}

void tell_remarks(const std::vector<std::string>& remarks) {
  const std::size_t width = stderr_width();
  for (const auto& remark : remarks) {
    for (const auto& line : reports::wrapped("syncline: " + reports::one_line(remark), width, 2)) {
      std::cerr << line << "\n";
    }
  }
}

}  // namespace syncline::cli
