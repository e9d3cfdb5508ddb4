#include "reports/decisions.h"

#include <nlohmann/json.hpp>

#include "reports/memory_text.h"
#include "reports/verdict.h"

namespace syncline::reports {

using measure::Advice;

std::string_view decided_word(const measure::Interval& gain) {
  if (gain.low > 1) return "faster";
  return gain.high < 1 ? "slower" : "open";
}

DecisionFields gain_fields(const Advice* today) {
  using enum Kind;
  using Row = const Advice&;
  // Returns a function that gives the cell of rows with a step time.
  const auto known = [](auto of) {
    return [of](Row row) { return row.metrics.step_time > 0 ? Cell(of(row)) : Cell(); };
  };
  return {
      {table_column("change", "change", kText, 0, Column::kNoCsv),
       [today](Row row) {
         return &row == today ? show_as(row.change, "baseline: " + row.change) : Cell(row.change);
       }},
      {table_column("step\ntime", "step_time_s", kSeconds, 1),
       known([](Row row) { return row.metrics.step_time; })},
      {table_column("80 %\ninterval", "step_time_*_s", kSeconds, 3),
       known([](Row row) { return row.step; })},
      {table_column("gain", "speedup", kSpeedup), known([](Row row) { return row.speedup; })},
      {table_column("80 % interval\nof gain", "speedup_*", kSpeedup),
       known([today](Row row) { return &row == today ? show_as(row.gain, "") : Cell(row.gain); })},
      {table_column("decided", "decided", kText),
       known([today](Row row) { return &row == today ? Cell() : Cell(decided_word(row.gain)); })}};
}

DecisionFields cost_fields() {
  using Row = const Advice&;
  const auto known = [](Row row) { return row.memory.total() > 0; };
  return {{page_column("memory\nper GPU", Kind::kBytes, 0, Column::kPage),
           [](Row row) { return memory_cell(row.memory); }},
          {data_column("memory_bytes", Column::kCsv),
           [known](Row row) { return known(row) ? Cell(row.memory.total()) : Cell(); }},
          {data_column("memory_bytes", Column::kJson),
           [known](Row row) { return known(row) ? Cell(memory_json(row.memory)) : Cell(); }},
          {table_column("training", "training"), [](Row row) { return word_of(row.training); }}};
}

DecisionFields setting_fields() {
  return {{table_column("how to set it", "set_with", Kind::kNote), &Advice::set_with}};
}

Tone tone_of(const Advice& row) {
  const bool faint = !row.memory.fits() || row.speedup < kPays;
  return faint ? Tone::kFaint : Tone::kPlain;
}

Table decisions_of(const std::vector<Advice>& rows, bool today_first) {
  const Advice* today = today_first ? rows.data() : nullptr;
  constexpr int kHowFast = 2;
  Table table = narrow_table(
      table_of(fields<Advice>(gain_fields(today), cost_fields(), setting_fields()), rows),
      kHowFast);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (&rows[i] != today) table.lines[i].tone = tone_of(rows[i]);
  }
  return table;
}

}  // namespace syncline::reports
