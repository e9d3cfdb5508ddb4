#include "reports/tune_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/digits.h"
#include "core/input/strategy_json.h"
#include "core/tune/alternatives.h"
#include "reports/fields.h"
#include "reports/format.h"
#include "reports/verdict.h"

namespace syncline::reports {
namespace {

using measure::Training;
using tune::Alternative;

std::string value_text(const tune::Outcome& outcome, double value) {
  if (outcome.published) return copied_number(value);
  return outcome.quantity == "accuracy" ? share_text(100 * value) : plain_number(value);
}

// "97.8 % +- 0.4"; what is the same, or not known, says that.
std::string accuracy_text(const Alternative& row) {
  if (!row.outcome) return row.training == Training::kSame ? "same" : "unknown";
  const tune::Outcome& outcome = *row.outcome;
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
  return quoted_name(row.strategy.name) + ", " + seconds_text(row.step_time) + " per step, " +
         short_speedup_text(row.speedup) + " (" + speedup_range(row.gain.low, row.gain.high) + ")" +
         (row.memory.fits() ? "" : ", which does not fit");
}

std::map<std::string, std::string> csv_cells(const Alternative& row) {
  const auto figure = [](double value) { return exact(value).dump(); };
  std::map<std::string, std::string> cells{
      {"strategy", row.strategy.name},
      {"step_time_s", figure(row.step_time)},
      {"speedup", figure(row.speedup)},
      {"step_time_low_s", figure(row.step.low)},
      {"step_time_high_s", figure(row.step.high)},
      {"speedup_low", figure(row.gain.low)},
      {"speedup_high", figure(row.gain.high)},
      {"memory_bytes", figure(row.memory.total())},
      {"training", std::string(measure::word_of(row.training))},
      {"set_with", row.set_with}};
  if (!row.outcome) return cells;
  cells["outcome"] = row.outcome->quantity;
  cells["outcome_end"] = figure(row.outcome->end);
  if (row.outcome->baseline) cells["outcome_baseline"] = figure(*row.outcome->baseline);
  return cells;
}

Json outcome_json(const tune::Outcome& outcome) {
  Json json{{"quantity", outcome.quantity}, {"end", exact(outcome.end)}};
  if (outcome.half_width) json["end_half_width"] = exact(*outcome.half_width);
  if (outcome.baseline) json["baseline_end"] = exact(*outcome.baseline);
  if (outcome.published) json["published"] = true;
  return json;
}

}  // namespace

Training training_of_best(const tune::Tuning& tuning) {
  return measure::training_beside(tuning.tuned.winner().strategy, tuning.tuned.baseline.strategy);
}

std::vector<std::string> beyond_sentences(const tune::Tuning& tuning) {
  std::vector<std::string> sentences;
  const Training named = training_of_best(tuning);
  const Alternative* found = tune::best_alternative(tuning, named);
  const Alternative* same = tune::best_alternative(tuning, Training::kSame);
  if (named != Training::kSame && found != nullptr && same != nullptr) {
    const bool none = same == &tuning.alternatives.front();
    sentences.push_back(
        std::string("That ") +
        (named == Training::kRounded ? "rounds gradients" : "changes the training") + ", " +
        accuracy_words(*found) + "; " +
        (none ? "nothing that trains the same beats the baseline"
              : "the best that trains the same: " + figures_of_row(*same)) +
        ".");
  }
  const auto tell = [&](Training training, const std::string& words) {
    const Alternative* best = tune::best_alternative(tuning, training, true);
    if (training == named || best == nullptr) return;
    sentences.push_back(words + " gain clearly more: " + figures_of_row(*best) + ", " +
                        accuracy_words(*best) + ".");
  };
  if (named != Training::kChanged) tell(Training::kRounded, "Rounded gradients");
  tell(Training::kChanged, "Changes of the training");
  return sentences;
}

std::string taken_sentence(const tune::Tuning& tuning) {
  const tune::Emitted& emitted = *tuning.emitted;
  return tuning.emitted_dialect + " sets " + quoted_name(tuning.taken->strategy.name) + ": " +
         seconds_text(emitted.step_time) + " per step when read back." +
         (emitted.setting.empty() ? "" : " Run it with " + emitted.setting + ".");
}

Grid alternatives_grid(const tune::Tuning& tuning) {
  const auto& rows = tuning.alternatives;
  const bool all_fit = std::all_of(rows.begin(), rows.end(),
                                   [](const Alternative& row) { return row.memory.fits(); });
  Grid grid{{{"strategy", false},
             {"step\ntime"},
             {"80 %\ninterval", true, 2},
             {"speedup"},
             {"80 % interval\nof speedup", true, 1},
             {"training", false},
             {quantity_of(rows.front()), false},
             {"memory\na GPU", true, all_fit ? 3 : 0}},
            {}};
  double best = 1;
  for (const Alternative& row : rows) best = std::max(best, row.speedup);
  const Alternative* before = nullptr;
  for (const Alternative& row : rows) {
    const bool today = before == nullptr;
    Grid::Line& line = grid.lines.emplace_back();
    line.cells = {one_line((today ? "baseline: " : "") + row.strategy.name),
                  seconds_text(row.step_time),
                  seconds_range(row.step.low, row.step.high),
                  speedup_text(row.speedup),
                  today ? "" : speedup_range(row.gain.low, row.gain.high),
                  std::string(measure::word_of(row.training)),
                  accuracy_text(row),
                  memory_cell(row.memory)};
    line.rule_before = !today && before->training != row.training;
    line.tone = today ? Tone::kPlain : tone_of(row.speedup, best);
    before = &row;
  }
  return grid;
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

Json alternatives_json(const tune::Tuning& tuning) {
  Json list = Json::array();
  for (const Alternative& row : tuning.alternatives) {
    list.push_back({{"strategy", input::strategy_json(row.strategy)},
                    {"training", measure::word_of(row.training)},
                    {"step_time_s", exact(row.step_time)},
                    {"step_time_low_s", exact(row.step.low)},
                    {"step_time_high_s", exact(row.step.high)},
                    {"speedup", exact(row.speedup)},
                    {"speedup_low", exact(row.gain.low)},
                    {"speedup_high", exact(row.gain.high)},
                    {"clearly_faster", row.clearly_faster},
                    {"memory_bytes", memory_json(row.memory)},
                    {"set_with", row.set_with}});
    if (row.outcome) list.back()["outcome"] = outcome_json(*row.outcome);
  }
  return list;
}

void add_alternatives(CsvTable& table, const tune::Tuning& tuning) {
  for (const char* column : {"training", "set_with", "outcome", "outcome_end", "outcome_baseline"})
    table.columns.emplace_back(column);
  for (auto& line : table.lines) line.resize(table.columns.size());
  for (const Alternative& row : tuning.alternatives) {
    auto cells = csv_cells(row);
    auto line = std::find_if(table.lines.begin(), table.lines.end(),
                             [&](const auto& one) { return one.front() == row.strategy.name; });
    if (line == table.lines.end()) {
      line = table.lines.insert(table.lines.end(), std::vector<std::string>(table.columns.size()));
    }
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      if ((*line)[i].empty()) (*line)[i] = cells[table.columns[i]];
    }
  }
}

}  // namespace syncline::reports
