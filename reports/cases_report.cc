#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/statistics.h"
#include "reports/format.h"
#include "reports/page.h"
#include "reports/table.h"
#include "reports/validation_report.h"
#include "studies/fidelity/cases.h"

namespace syncline::reports {
namespace {

using measure::MemoryCase;
using measure::PairCase;
using Pairs = std::vector<PairCase>;
using MemoryCases = std::vector<MemoryCase>;

Table rows_of(const Pairs& pairs) {
  using enum Kind;
  using Pair = const PairCase&;
  const std::vector<Field<PairCase>> fields{
      {table_column("kind", "kind"), &PairCase::kind},
      {table_column("job", "job", kText, 5), &PairCase::job},
      {table_column("of", "a", kText, 2), &PairCase::a},
      {table_column("to", "b"), &PairCase::b},
      {table_column("predicted", "predicted", kSpeedup), &PairCase::said},
      {table_column("80 %\ninterval", "predicted_*", kSpeedup), &PairCase::interval},
      {table_column("measured", "measured", kSpeedup), &PairCase::measured},
      {table_column("decided", "decided"),
       [](Pair pair) { return std::string(word_of(pair.decision())); }},
      {table_column("fitted", "fitted", kFlag, 3), &PairCase::fitted},
      {table_column("source", "source", kText, 6), &PairCase::source}};
  Table rows = table_of(fields, pairs);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    rows.lines[i].rule_before = i > 0 && pairs[i - 1].kind != pairs[i].kind;
    if (pairs[i].fitted) rows.lines[i].tone = Tone::kFaint;
  }
  return rows;
}

std::string counts_text(const Pairs& pairs) {
  const measure::PairSummary summary = measure::pair_summary(pairs);
  std::string text = plural(pairs.size(), "pair") + ": " + std::to_string(summary.right) +
                     " decided right, " + std::to_string(summary.open) + " open, " +
                     std::to_string(summary.wrong) + " decided wrong";
  if (summary.intervals) {
    text += "; the 80 % intervals contain " + share_text(summary.intervals->held) +
            ", their median width is +" + share_text(summary.intervals->width);
  }
  return text;
}

Pairs chosen(const Pairs& pairs, bool fitted) {
  Pairs some;
  std::ranges::copy_if(pairs, std::back_inserter(some),
                       [&](const PairCase& pair) { return pair.fitted == fitted; });
  return some;
}

// Returns the kinds in their first order.
std::vector<std::string> kinds_of(const Pairs& pairs) {
  std::vector<std::string> kinds;
  for (const PairCase& pair : pairs) {
    if (std::ranges::count(kinds, pair.kind) == 0) kinds.push_back(pair.kind);
  }
  return kinds;
}

Page page_of(const Pairs& pairs) {
  Page page{"Which of two is faster", "", {}};
  page.add("Predicted, " + counts_text(chosen(pairs, false)) + ".");
  const Pairs fitted = chosen(pairs, true);
  if (!fitted.empty()) {
    page.add("Fitted, a constant or a row chosen in sight of them, " + counts_text(fitted) + ".");
  }
  Items by_kind{"By kind, predicted:", {}};
  for (const std::string& kind : kinds_of(pairs)) {
    Pairs own = chosen(pairs, false);
    std::erase_if(own, [&](const PairCase& pair) { return pair.kind != kind; });
    if (!own.empty()) by_kind.items.push_back(kind + ", " + counts_text(own));
  }
  page.add(std::move(by_kind));
  page.add(rows_of(pairs));
  return page;
}

Json counts_json(const Pairs& pairs) {
  const measure::PairSummary summary = measure::pair_summary(pairs);
  Json json{{"pairs", pairs.size()},
            {"right", summary.right},
            {"open", summary.open},
            {"wrong", summary.wrong}};
  if (summary.intervals) {
    json["inside_interval_percent"] = exact(summary.intervals->held);
    json["median_interval_percent"] = exact(summary.intervals->width);
  }
  return json;
}

Json json_of(const Pairs& pairs) {
  return {{"pairs", json_of(rows_of(pairs))},
          {"predicted", counts_json(chosen(pairs, false))},
          {"fitted", counts_json(chosen(pairs, true))}};
}

Table rows_of(const MemoryCases& cases) {
  using enum Kind;
  const std::vector<Field<MemoryCase>> fields{
      {table_column("job", "job"), &MemoryCase::job},
      {table_column("predicted", "predicted_bytes", kBytes),
       [](const MemoryCase& one) { return one.left_out.empty() ? Cell(one.said) : Cell(); }},
      {table_column("measured", "measured_bytes", kBytes), &MemoryCase::measured},
      {table_column("error", "error_percent", kPercent),
       [](const MemoryCase& one) {
         return one.left_out.empty() ? Cell(one.error_percent()) : Cell();
       }},
      {table_column("fitted", "fitted", kFlag, 1), &MemoryCase::fitted},
      {table_column("source", "source", kText, 2), &MemoryCase::source},
      {data_column("left_out", Column::kPrograms, Column::kAll),
       [](const MemoryCase& one) { return one.left_out.empty() ? Cell() : Cell(one.left_out); }}};
  return table_of(fields, cases);
}

std::optional<measure::ErrorSummary> errors_of(const MemoryCases& cases) {
  std::vector<double> errors;
  for (const MemoryCase& one : cases) {
    if (!one.fitted && one.left_out.empty()) errors.push_back(one.error_percent());
  }
  return measure::summary_of(errors);
}

Page page_of(const MemoryCases& cases) {
  Page page{"Memory of a GPU at its fullest", "", {}};
  if (const auto errors = errors_of(cases)) {
    page.add("Predicted, " + plural(errors->rows, "job") + ": median error " +
             share_text(errors->median) + ", 90th percentile " + share_text(errors->p90) +
             ", worst " + share_text(errors->worst) + ".");
  }
  page.add(rows_of(cases));
  Items left_out{"Left out:", {}};
  for (const MemoryCase& one : cases) {
    if (!one.left_out.empty()) left_out.items.push_back(one.job + ": " + one.left_out);
  }
  if (!left_out.items.empty()) page.add(std::move(left_out));
  return page;
}

Json json_of(const MemoryCases& cases) {
  const auto errors = errors_of(cases);
  return {{"memory", json_of(rows_of(cases))},
          {"median_error_percent", errors ? exact(errors->median) : Json()},
          {"worst_error_percent", errors ? exact(errors->worst) : Json()}};
}

}  // namespace

Answer answer_of(const std::vector<measure::PairCase>& pairs) {
  return make_answer("fidelity", "", pairs, page_of, rows_of, json_of);
}

Answer answer_of(const std::vector<measure::MemoryCase>& cases) {
  return make_answer("fidelity", "", cases, page_of, rows_of, json_of);
}

}  // namespace syncline::reports
