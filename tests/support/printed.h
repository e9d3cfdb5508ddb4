// What a verb prints of an answer, in each form.
#pragma once

#include <string>

#include "reports/answer.h"

namespace syncline::test {

template <typename Said>
std::string table_of(const Said& said) {
  return reports::format_answer(reports::answer_of(said), reports::Format::kTable, "");
}

template <typename Said>
std::string markdown_of(const Said& said) {
  return reports::format_answer(reports::answer_of(said), reports::Format::kMarkdown, "");
}

template <typename Said>
std::string csv_of(const Said& said) {
  return reports::format_answer(reports::answer_of(said), reports::Format::kCsv, "");
}

template <typename Said>
std::string json_of(const Said& said) {
  return reports::format_answer(reports::answer_of(said), reports::Format::kJson, "");
}

}  // namespace syncline::test
