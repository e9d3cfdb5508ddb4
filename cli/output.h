// How every verb prints its answer: --format and --color with the same words, one printer.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/files.h"
#include "cli/terminal.h"
#include "reports/answer.h"

namespace syncline::cli {

struct OutputFormat {
  reports::Format format = reports::Format::kTable;
  Colour colour = Colour::kAuto;
};

// Adds --format: table, markdown, csv or json, and --color: auto, always or never. "text" is
// accepted for table, as it used to be.
CLI::Option* add_format(CLI::App& verb, OutputFormat& format);

// Adds --html FILE: the answer as a page with figures (reports/html_page.h).
CLI::Option* add_html(CLI::App& verb, std::string& file);

// That page, to be written beside the answer, which must outlive it; none for an empty path.
SideFile html_file(const std::string& path, const reports::Answer& answer);

// To stdout, fitted to the terminal if it is one; the remarks that a CSV has no place for to
// stderr, one a line.
void print(const reports::Answer& answer, const OutputFormat& format);

// Throws MachineError where what was printed did not reach stdout: an answer that could not be
// written is no answer.
void expect_printed();

// Remarks where an answer has no place for them: on stderr, one a line.
void tell_remarks(const std::vector<std::string>& remarks);

}  // namespace syncline::cli
