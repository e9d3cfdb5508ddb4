// Text in a cell of a CSV file (RFC 4180).
#pragma once

#include <string>

namespace syncline {

// In quotes; those inside double.
std::string csv_quoted(const std::string& text);

// In quotes only where a comma, a quote or a line break asks for them.
std::string csv_cell(const std::string& text);

}  // namespace syncline
