// How every verb prints its answer: --format with the same words, one printer.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/files.h"
#include "reports/answer.h"

namespace syncline::cli {

// Adds --format: table, markdown, csv or json. "text" is accepted for table, as it used to be.
CLI::Option* add_format(CLI::App& verb, reports::Format& format);

// Adds --html FILE: the answer as a page with figures (reports/html_page.h).
CLI::Option* add_html(CLI::App& verb, std::string& file);

// That page, to be written beside the answer, which must outlive it; none for an empty path.
SideFile html_file(const std::string& path, const reports::Answer& answer);

// To stdout; the remarks that a CSV has no place for to stderr, one a line.
void print(const reports::Answer& answer, reports::Format format);

}  // namespace syncline::cli
