// An answer as one page that needs nothing else: opens from disk, loads nothing, can be read and
// printed without its script. Its figures first, then what the terminal shows, then the answer's
// JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "reports/answer.h"

namespace syncline::reports {

// So that a page stays under 2 MB: lines of a table, and bytes of JSON. What is left out is said.
inline constexpr std::size_t kPageLines = 400;
inline constexpr std::size_t kPageJson = 700'000;

// The same answer gives the same bytes. Everything that comes from a file is escaped.
std::string html_page(const Answer& answer, const std::string& version);

// Pages that html_page wrote under each other, with a list of them on top. Throws InputError, with
// its name, for a text that is none, and for one that holds elements or attributes of others.
struct NamedPage {
  std::string name;
  std::string text;
};
std::string joined_pages(const std::vector<NamedPage>& pages, const std::string& version);

}  // namespace syncline::reports
