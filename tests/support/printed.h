// What a verb prints of an answer, in each form.
#pragma once

#include <string>

#include "reports/answer.h"

namespace syncline::test {

template <typename Said>
std::string table_of(const Said& said) {
  return printed(answer_of(said), Format::kTable, "");
}

template <typename Said>
std::string markdown_of(const Said& said) {
  return printed(answer_of(said), Format::kMarkdown, "");
}

template <typename Said>
std::string csv_of(const Said& said) {
  return printed(answer_of(said), Format::kCsv, "");
}

template <typename Said>
std::string json_of(const Said& said) {
  return printed(answer_of(said), Format::kJson, "");
}

}  // namespace syncline::test
