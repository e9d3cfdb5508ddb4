// An answer as one page that needs nothing else: opens from disk, loads nothing, can be read and
// printed without its script. Its figures first, then what the terminal shows, then the answer's
// JSON for programs.
#pragma once

#include <string>
#include <string_view>

#include "reports/answer.h"

namespace syncline::reports {

// So that a page stays under 2 MB: lines of a table, and bytes of JSON. What is left out is said.
inline constexpr std::size_t kPageLines = 400;
inline constexpr std::size_t kPageJson = 700'000;

// The same answer gives the same bytes. Everything that comes from a file is escaped.
std::string html_page(const Answer& answer, const std::string& version);

// What gives the figures of a page hover and zoom: reports/page.js, as the build put it into the
// program.
std::string_view page_script();

}  // namespace syncline::reports
