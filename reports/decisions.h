// Decisions that a person may make (measure::Advice), each as one row in every form of an answer:
// the change, its gain with an interval, its memory, what it costs in training, how to set it.
#pragma once

#include <string_view>
#include <vector>

#include "reports/table.h"
#include "studies/explain/advice.h"

namespace syncline::reports {

// Returns "faster" or "slower" if the interval of a gain decides between them, else "open".
std::string_view decided_word(const measure::Interval& gain);

// Returns the fields of decisions. `today`: the row that the others are compared with, first among
// them; nullptr: it is no row. A row without a step time has neither figures nor memory.
using DecisionFields = std::vector<Field<measure::Advice>>;
DecisionFields gain_fields(const measure::Advice* today);
DecisionFields cost_fields();
DecisionFields setting_fields();

// Returns the rows with the given job first; those that do not fit, or are slower, are faint.
Table decisions_of(const std::vector<measure::Advice>& rows, bool today_first);

// Returns the tone of a decision that is not the best.
Tone tone_of(const measure::Advice& row);

// Returns fields of decisions as fields of rows that are decisions too.
template <typename Row>
std::vector<Field<Row>> fields_as(const DecisionFields& fields) {
  std::vector<Field<Row>> list;
  for (const auto& field : fields) list.push_back({field.column, field.cell});
  return list;
}

}  // namespace syncline::reports
