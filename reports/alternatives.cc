#include "reports/tune_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/digits.h"
#include "core/input/scenario_json.h"
#include "core/tune/tuning.h"
#include "reports/format.h"
#include "reports/table.h"
#include "reports/verdict.h"

namespace syncline::reports {
namespace {

using measure::TrainingChange;
using tune::Alternative;

std::string value_text(const tune::TrainingResult& outcome, double value) {
  if (outcome.published) return copied_number(value);
  return outcome.quantity == "accuracy" ? share_text(100 * value) : plain_number(value);
}

// "97.8 % +- 0.4"; what is the same, or not known, says that.
std::string accuracy_text(const Alternative& row) {
  if (!row.outcome) return row.training == TrainingChange::kSame ? "same" : "unknown";
  const tune::TrainingResult& outcome = *row.outcome;
  std::string text = value_text(outcome, outcome.end);
  if (outcome.half_width) {
    const double scale = outcome.quantity == "accuracy" ? 100 : 1;
    text += " +- " + plain_number(significant(scale * *outcome.half_width, 2));
  }
  return text;
}

std::string quantity_of(const Alternative& row) {
  return row.outcome ? row.outcome->quantity : "accuracy";
}

// "accuracy 97.8 % +- 0.4 (baseline 98.2 %)", "accuracy not known here".
std::string accuracy_words(const Alternative& row) {
  if (!row.outcome) return "accuracy not known here";
  const std::string text = quantity_of(row) + " " + accuracy_text(row);
  std::string beside = row.outcome->published ? "published" : "";
  if (row.outcome->baseline) {
    beside += std::string(beside.empty() ? "" : ", ") + "baseline " +
              value_text(*row.outcome, *row.outcome->baseline);
  }
  return beside.empty() ? text : text + " (" + beside + ")";
}

// "'fp16', 84.90 ms per step, 1.26x (1.19 to 1.31x)"
std::string figures_of_row(const Alternative& row) {
  return quoted_name(row.strategy.name) + ", " + seconds_text(row.step_time, kSaidDigits) +
         " per step, " + short_speedup_text(row.speedup) + " (" +
         speedup_range(row.gain.low, row.gain.high) + ")" +
         (row.memory.fits() ? "" : ", which does not fit");
}

Json outcome_json(const tune::TrainingResult& outcome) {
  Json json{{"quantity", outcome.quantity}, {"end", exact(outcome.end)}};
  if (outcome.half_width) json["end_half_width"] = exact(*outcome.half_width);
  if (outcome.baseline) json["baseline_end"] = exact(*outcome.baseline);
  if (outcome.published) json["published"] = true;
  return json;
}

}  // namespace

measure::TrainingChange training_of_best(const tune::Tuning& tuning) {
  return measure::training_beside(tuning.tuned.winner().strategy, tuning.tuned.baseline.strategy);
}

std::vector<std::string> beyond_sentences(const tune::Tuning& tuning) {
  std::vector<std::string> sentences;
  const measure::TrainingChange named = training_of_best(tuning);
  const Alternative* found = tune::best_alternative(tuning, named);
  const Alternative* same = tune::best_alternative(tuning, TrainingChange::kSame);
  if (named != TrainingChange::kSame && found != nullptr && same != nullptr) {
    const bool none = same == &tuning.alternatives.front();
    sentences.push_back(
        std::string("That ") +
        (named == TrainingChange::kRounded ? "rounds gradients" : "changes the training") + ", " +
        accuracy_words(*found) + "; " +
        (none ? "nothing that trains the same beats the baseline"
              : "the best that trains the same: " + figures_of_row(*same)) +
        ".");
  }
  const auto tell = [&](TrainingChange training, const std::string& words) {
    const Alternative* best = tune::best_alternative(tuning, training, true);
    if (training == named || best == nullptr) return;
    sentences.push_back(words + " gain clearly more: " + figures_of_row(*best) + ", " +
                        accuracy_words(*best) + ".");
  };
  if (named != TrainingChange::kChanged) tell(TrainingChange::kRounded, "Rounded gradients");
  tell(TrainingChange::kChanged, "Changes of the training");
  return sentences;
}

std::string taken_sentence(const tune::Tuning& tuning) {
  const tune::Emitted& emitted = *tuning.emitted;
  return tuning.emitted_dialect + " sets " + quoted_name(tuning.taken->strategy.name) + ": " +
         seconds_text(emitted.step_time, kSaidDigits) + " per step when read back." +
         (emitted.setting.empty() ? "" : " Run it with " + emitted.setting + ".");
}

Table alternatives_of(const tune::Tuning& tuning) {
  using enum Kind;
  const auto& rows = tuning.alternatives;
  const bool all_fit = std::all_of(rows.begin(), rows.end(),
                                   [](const Alternative& row) { return row.memory.fits(); });
  Table table{columns(
      both("strategy", "strategy", kText, 0, Column::kNoJson), kept("strategy", Column::kJson),
      kept("training", Column::kJson), both("step\ntime", "step_time_s", kSeconds),
      both("80 %\ninterval", "step_time_*_s", kSeconds, 2), both("speedup", "speedup", kSpeedup),
      both("80 % interval\nof speedup", "speedup_*", kSpeedup, 1),
      both("training", "training", kText, 0, Column::kNoJson),
      kept("clearly_faster", Column::kJson), shown(rows.empty() ? "" : quantity_of(rows.front())),
      shown("memory\na GPU", kBytes, all_fit ? 3 : 0), kept("memory_bytes", Column::kCsv),
      kept("memory_bytes", Column::kJson), kept("set_with"), kept("outcome", Column::kCsv),
      kept("outcome_end", Column::kCsv), kept("outcome_baseline", Column::kCsv),
      kept("outcome", Column::kJson))};
  for (const Alternative& row : rows) {
    const bool today = &row == rows.data();
    const std::string name = (today ? "baseline: " : "") + row.strategy.name;
    const std::string training(measure::word_of(row.training));
    const auto outcome = [&](auto of) { return row.outcome ? Cell(of(*row.outcome)) : Cell(); };
    Table::Line& line = table.add(
        shown_as(row.strategy.name, name), input::strategy_json(row.strategy), training,
        row.step_time, row.step, row.speedup, today ? shown_as(row.gain, "") : Cell(row.gain),
        training, row.clearly_faster, accuracy_text(row), memory_cell(row.memory),
        row.memory.total(), memory_json(row.memory), row.set_with,
        outcome([](const tune::TrainingResult& one) { return one.quantity; }),
        outcome([](const tune::TrainingResult& one) { return one.end; }),
        outcome([](const tune::TrainingResult& one) { return one.baseline; }),
        outcome(outcome_json));
    line.rule_before = !today && (&row - 1)->training != row.training;
    const bool named = row.strategy.name == tuning.tuned.winner().strategy.name;
    line.tone = named ? Tone::kBest : row.speedup < kPays ? Tone::kFaint : Tone::kPlain;
  }
  return table;
}

Items alternatives_set(const tune::Tuning& tuning) {
  Items items{"How to set them:", {}};
  for (const Alternative& row : tuning.alternatives) {
    const bool today = &row == &tuning.alternatives.front();
    if (today || row.set_with.empty()) continue;
    items.items.push_back(one_line(row.strategy.name) + ": " + row.set_with);
  }
  return items;
}

Table with_alternatives(Table rows, const tune::Tuning& tuning) {
  const Table others = alternatives_of(tuning);
  const auto place_of = [](const Table& table, const std::string& key) {
    const auto found = std::find_if(
        table.columns.begin(), table.columns.end(),
        [&](const Column& column) { return column.in(Column::kCsv) && column.key == key; });
    return static_cast<std::size_t>(found - table.columns.begin());
  };
  for (const Column& column : others.columns) {
    if (!column.in(Column::kCsv) || place_of(rows, column.key) < rows.columns.size()) continue;
    rows.columns.push_back(column);
    for (auto& line : rows.lines) line.cells.emplace_back();
  }
  for (const auto& other : others.lines) {
    auto line = std::find_if(rows.lines.begin(), rows.lines.end(), [&](const Table::Line& one) {
      return one.cells.front().value == other.cells.front().value;
    });
    if (line == rows.lines.end()) {
      line = rows.lines.insert(line, {std::vector<Cell>(rows.columns.size())});
    }
    for (std::size_t i = 0; i < rows.columns.size(); ++i) {
      const std::size_t place = place_of(others, rows.columns[i].key);
      const bool fill = !line->cells[i].known() && place < others.columns.size();
      if (fill) line->cells[i] = other.cells[place];
    }
  }
  return rows;
}

}  // namespace syncline::reports
