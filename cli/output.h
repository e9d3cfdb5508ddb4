// How every verb prints its answer: --format with the same words, one printer.
#pragma once

#include <CLI/CLI.hpp>

#include "reports/answer.h"

namespace syncline::cli {

// Adds --format: table, markdown, csv or json. "text" is accepted for table, as it used to be.
CLI::Option* add_format(CLI::App& verb, reports::Format& format);

// To stdout; the remarks that a CSV has no place for to stderr, one a line.
void print(const reports::Answer& answer, reports::Format format);

}  // namespace syncline::cli
