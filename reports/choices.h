// What can be named in a scenario or behind an option: `syncline list`.
#pragma once

#include <string>
#include <vector>

#include "reports/answer.h"

namespace syncline::reports {

// What can be written in one place of a scenario or behind one option.
struct Choice {
  std::string name;
  std::string collectives;  // of an algorithm; otherwise empty
  std::string summary;
};

struct Choices {
  std::string kind;     // "algorithm"
  std::string heading;  // of what the summaries say
  std::vector<Choice> rows;
};

// The rows of a table by their names and summaries.
template <typename Rows>
Choices choices_of(const char* kind, const char* heading, const Rows& rows) {
  Choices choices{kind, heading, {}};
  for (const auto& row : rows) {
    choices.rows.push_back({std::string(row.name), "", std::string(row.summary)});
  }
  return choices;
}

// Everything that there is; of executors and backends core knows none by name.
Answer list_of_choices(const Choices& executors, const Choices& backends);

}  // namespace syncline::reports
