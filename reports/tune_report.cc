#include "reports/tune_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "formats/input/scenario_json.h"
#include "formats/text/digits.h"
#include "reports/decisions.h"
#include "reports/format.h"
#include "reports/memory_text.h"
#include "reports/page.h"
#include "reports/run_report.h"
#include "reports/run_rows.h"
#include "reports/table.h"
#include "reports/text_plot.h"
#include "reports/tune_figures.h"
#include "reports/verdict.h"
#include "reports/written.h"
#include "studies/tune/alternatives.h"
#include "studies/tune/tuning.h"

namespace syncline::reports {
namespace {

using measure::TrainingChange;
using tune::Alternative;

std::string value_text(const tune::TrainingResult& outcome, double value) {
  if (outcome.published) return copied_number(value);
  return outcome.quantity == "accuracy" ? share_text(100 * value) : plain_number(value);
}

// Returns "97.8 % +- 0.4", or "same" or "unknown".
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

// Returns "accuracy 97.8 % +- 0.4 (baseline 98.2 %)" or "accuracy not known here".
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

// Returns "'fp16', 84.9 ms per step, 1.26x (1.19 to 1.31x)".
std::string figures_of_row(const Alternative& row) {
  return quoted_name(row.strategy.name) + ", " + seconds_text(row.metrics.step_time, kSaidDigits) +
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

namespace {

// Returns fields of alternatives that other decisions lack.
std::vector<Field<Alternative>> name_fields() {
  using Row = const Alternative&;
  return {{data_column("strategy", Column::kCsv), [](Row row) { return row.strategy.name; }},
          {data_column("strategy", Column::kJson),
           [](Row row) { return input::strategy_json(row.strategy); }},
          {data_column("clearly_faster", Column::kJson), &Alternative::clearly_faster}};
}

std::vector<Field<Alternative>> outcome_fields(const std::vector<Alternative>& rows) {
  using Row = const Alternative&;
  const auto known = std::ranges::find_if(rows, [](Row row) { return row.outcome.has_value(); });
  const auto outcome = [](auto of) {
    return [of](Row row) { return row.outcome ? Cell(std::invoke(of, *row.outcome)) : Cell(); };
  };
  return {
      {page_column(known == rows.end() ? "" : quantity_of(*known), Kind::kText, 1, Column::kPage),
       [](Row row) { return row.outcome ? accuracy_text(row) : ""; }},
      {data_column("outcome", Column::kCsv), outcome(&tune::TrainingResult::quantity)},
      {data_column("outcome_end", Column::kCsv), outcome(&tune::TrainingResult::end)},
      {data_column("outcome_baseline", Column::kCsv), outcome(&tune::TrainingResult::baseline)},
      {data_column("outcome", Column::kJson), outcome(outcome_json)}};
}

}  // namespace

Table alternatives_of(const tune::Tuning& tuning) {
  const auto& rows = tuning.alternatives;
  const auto as_rows = &fields_as<Alternative>;
  Table table = table_of(
      fields<Alternative>(as_rows(gain_fields(rows.data())), name_fields(), as_rows(cost_fields()),
                          outcome_fields(rows), as_rows(setting_fields())),
      rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Table::Line& line = table.lines[i];
    line.rule_before = i > 0 && rows[i - 1].training != rows[i].training;
    const bool named = !tuning.fits || rows[i].strategy.name == tuning.tuned.winner().strategy.name;
    line.tone = named && rows[i].memory.fits() ? Tone::kBest : tone_of(rows[i]);
  }
  return table;
}

namespace {

// Returns rows of CSV with the columns of alternatives, and with the rows that only these have.
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
      const bool fill = !line->cells[i].has_value() && place < others.columns.size();
      if (fill) line->cells[i] = other.cells[place];
    }
  }
  return rows;
}

using Sentences = std::vector<std::string>;

// A strategy of a search, with further values for its table.
struct RankedRow {
  const tune::Ranked* ranked;
  measure::Interval step;
  measure::Interval gain;
  measure::Memory memory;
};

RankedRow row_of(const tune::Tuning& tuning, const tune::Ranked& ranked,
                 const measure::Interval& step, const measure::Interval& gain) {
  return {&ranked, step, gain, measure::memory_of(tuning.scenario, ranked.strategy)};
}

using RankedFields = std::vector<Field<RankedRow>>;

// Returns fields of speedups over each framework's defaults, which leave a screen first.
RankedFields over_defaults(const tune::Tuning& tuning, bool for_people) {
  RankedFields over;
  for (const auto& own : tuning.defaults) {
    const std::string key = "speedup_over/" + own.dialect;
    over.push_back(
        {for_people ? table_column("over\n" + own.dialect, key, Kind::kSpeedup, 6, Column::kNoJson)
                    : data_column(key, Column::kJson),
         [step = own.metrics.step_time](const RankedRow& row) {
           return step / row.ranked->metrics.step_time;
         }});
  }
  return over;
}

RankedFields speed_fields(const tune::Tuning& tuning) {
  using enum Kind;
  using Row = const RankedRow&;
  const Seconds baseline = tuning.tuned.baseline.metrics.step_time;
  return {{table_column("strategy", "strategy", kText, 0, Column::kNoJson),
           [](Row row) { return row.ranked->strategy.name; }},
          {data_column("strategy", Column::kJson),
           [](Row row) { return input::strategy_json(row.ranked->strategy); }},
          {table_column("step\ntime", "step_time_s", kSeconds),
           [](Row row) { return row.ranked->metrics.step_time; }},
          {table_column("80 %\ninterval", "step_time_*_s", kSeconds, 1, Column::kNoCsv),
           &RankedRow::step},
          {table_column("speedup over\nbaseline", "speedup", kSpeedup),
           [baseline](Row row) { return baseline / row.ranked->metrics.step_time; }},
          {data_column("speedup_*", Column::kJson), &RankedRow::gain}};
}

RankedFields metric_fields(const tune::Tuning& tuning) {
  using enum Kind;
  using Row = const RankedRow&;
  using measure::Metrics;
  const auto figure = [](auto of) { return [of](Row row) { return row.ranked->metrics.*of; }; };
  return {
      {table_column("above\noptimum", "above_optimum_percent", kPercent, 3),
       [optimum = tuning.tuned.optimum](Row row) {
         return tune::percent_above(row.ranked->metrics.step_time, optimum);
       }},
      {table_column("above lower\nbound", "above_lower_bound_percent", kPercent, 5,
                    Column::kNoJson),
       [](Row row) {
         const Metrics& metrics = row.ranked->metrics;
         return tune::percent_above(metrics.step_time, metrics.lower_bound);
       }},
      {data_column("compute_s", Column::kJson), figure(&Metrics::compute)},
      {data_column("communication_s", Column::kJson), figure(&Metrics::communication)},
      {data_column("exposed_communication_s", Column::kJson), figure(&Metrics::exposed)},
      {data_column("handling_s", Column::kJson), figure(&Metrics::comm_overhead)},
      {data_column("lower_bound_s", Column::kJson), figure(&Metrics::lower_bound)},
      {table_column("collectives\nper step", "collectives", kCount, 4),
       figure(&Metrics::collectives)},
      {page_column("memory\nper GPU", kBytes, 2), [](Row row) { return memory_cell(row.memory); }},
      {data_column("memory_bytes", Column::kJson),
       [](Row row) { return memory_json(row.memory); }}};
}

RankedFields confirmed_fields(const tune::Tuning& tuning) {
  const int simulated = tuning.confirmed_by.empty() ? Column::kPrograms : Column::kAll;
  using Row = const RankedRow&;
  return {
      {table_column("step time,\nsimulated", "simulated_step_time_s", Kind::kSeconds, 2, simulated),
       [](Row row) { return row.ranked->confirmed; }},
      {data_column("step_time_*_s", Column::kCsv), &RankedRow::step},
      {data_column("speedup_*", Column::kCsv), &RankedRow::gain},
      {data_column("memory_bytes", Column::kCsv), [](Row row) { return row.memory.total(); }}};
}

RankedFields ranking_fields(const tune::Tuning& tuning) {
  return fields<RankedRow>(speed_fields(tuning), over_defaults(tuning, true), metric_fields(tuning),
                           over_defaults(tuning, false), confirmed_fields(tuning));
}

Table ranking_of(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  const RankedFields fields = ranking_fields(tuning);
  Table table{columns_of(fields)};
  for (std::size_t i = 0; i < tuned.ranking.size(); ++i) {
    const tune::Ranked& ranked = tuned.ranking[i];
    const bool pays = tuned.baseline.metrics.step_time >= kPays * ranked.metrics.step_time;
    const RankedRow row = row_of(tuning, ranked, ranked.step, ranked.gain);
    table.add(cells_of(fields, row)).tone = i == 0 ? Tone::kBest
                                            : pays ? Tone::kPlain
                                                   : Tone::kFaint;
  }
  return table;
}

// Returns the ranking for people, with the baseline.
Grid ranking_grid(const tune::Tuning& tuning) {
  const tune::Ranked& baseline = tuning.tuned.baseline;
  const Seconds step = baseline.metrics.step_time;
  const RankedRow row =
      row_of(tuning, baseline, measure::interval_of(step, tuning.certainty.baseline), {});
  Table table = ranking_of(tuning);
  Table::Line& line = table.add(cells_of(ranking_fields(tuning), row));
  line.cells.front().text = "baseline: " + baseline.strategy.name;
  line.rule_before = true;
  return grid_of(table);
}

Table averaging_of(const tune::Tuning& tuning) {
  using enum Kind;
  Table table{columns(page_column("strategy"), page_column("steps between\naveragings", kInteger),
                      page_column("throughput,\nsamples/s", kThroughput),
                      page_column("throughput\n(published)", kThroughput, 0, Column::kPage),
                      page_column("accuracy\n(published)", kInteger, 0, Column::kPage))};
  for (const auto& row : tuning.averaging) {
    const auto published = [&](std::optional<double> Published::*figure) {
      return row.published ? Cell((*row.published).*figure) : Cell();
    };
    const Cell accuracy = published(&Published::accuracy);
    table.add(row.strategy, row.period > 0 ? Cell(row.period) : Cell("adaptive"),
              row.metrics.throughput, published(&Published::throughput),
              accuracy.has_value() ? Cell(copied_number(*row.published->accuracy)) : accuracy);
  }
  return table;
}

std::string search_sentence(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  const bool all = tuned.evaluations >= tuned.points;
  std::string text =
      (tuning.own_search ? "Searched as the scenario says: "
                         : "Searched by default (the scenario has no \"search\"): ") +
      count_text(tuned.points) + " candidates around " + quoted_name(tuned.base.name) + ", " +
      (all ? "all" : count_text(tuned.evaluations) + " of them") + " evaluated by the " +
      tuning.executor + " executor";
  if (!all && tuned.complete) text += ", the rest ruled out by their bounds";
  if (!tuned.complete) {
    const double percent = 100 * (1 - tuned.left_bound / tuned.winner().metrics.step_time);
    text += percent > 0
                ? "; the search stopped early, and by their bounds the others are at most " +
                      share_text(percent) + " faster"
                : "; the budget ended the search when the best was certain";
  }
  if (!tuned.unmeasured.empty()) {
    text += "; left out, as their collectives were not measured and the base's were: " +
            join_and(tuned.unmeasured);
  }
  return text + ".";
}

std::string held_sentence(const tune::Tuning& tuning) {
  const Search& search = tuning.search;
  Sentences held;
  if (!search.varies_fusion()) held.push_back("fusion");
  if (search.streams.empty()) held.push_back("streams");
  if (search.algorithms.empty()) held.push_back("algorithm");
  if (search.hierarchies.empty()) held.push_back("hierarchy");
  if (search.compressions.empty()) held.push_back("compression");
  if (search.local_sgds.empty()) held.push_back("the period of averaging");
  if (search.compute_fusions.empty() && !tuning.scenario.workload.operators->empty()) {
    held.push_back("compute fusion");
  }
  if (search.exchanges.empty() && search.cross_steps.empty() && search.priorities.empty()) {
    held.push_back("the order of sending");
  }
  held.push_back("overlap");
  held.push_back("the update");
  return "Not varied from " + quoted_name(tuning.tuned.base.name) + ": " + join_and(held) + ".";
}

std::string source_sentence(const tune::Tuning& tuning) {
  std::string source = "All figures are predicted by the " + tuning.executor + " executor";
  if (tuning.calibrated) source += " with parameters fitted to the scenario's published rows";
  return source + ", none is measured.";
}

// Returns the strategies of the scenario that do not fit; other sentences name those that do.
std::string memory_verdict(const tune::Tuning& tuning) {
  const bool in_other_sentences = !tuning.fits && tuning.alternatives.size() < 2;
  if (tuning.shortage.empty() || in_other_sentences) return "";
  return "Does not fit: " + tuning.shortage.lacking() + ".";
}

Page page_of(const tune::Tuning& tuning) {
  Page page;
  page.title = "Tuned: " + one_line(tuning.scenario.name);
  page.add("Workload " + one_line(tuning.scenario.workload.name) + ", cluster " +
           one_line(tuning.scenario.cluster.name) + ".");
  const std::string network = network_sentence(tuning);
  page.add(network);
  page.add(headline(tuning));
  const std::string outside = outside_sentence(tuning);
  page.add(outside);
  page.add(memory_verdict(tuning));
  const Sentences beyond = beyond_sentences(tuning);
  for (const auto& sentence : beyond) page.add(sentence);
  page.add(alternatives_of(tuning));
  page.add("The best of the search:");
  page.add(ranking_grid(tuning));
  page.add(search_sentence(tuning) + " " + held_sentence(tuning));
  Sentences verdicts = tune_verdicts(tuning);
  // These are printed above.
  const std::size_t above =
      1 + beyond.size() + (outside.empty() ? 0 : 1) + (network.empty() ? 0 : 1);
  verdicts.erase(verdicts.begin(), verdicts.begin() + static_cast<std::ptrdiff_t>(above));
  page.add(Items{"Verdicts:", std::move(verdicts)});
  if (tuning.averaging.size() > 1) page.add(averaging_of(tuning));
  const std::string plot = curve_text(tuning.tuned.curve);
  if (!plot.empty()) {
    page.add("Step time over the size of a bucket, the winner's other knobs fixed:");
    page.add(Listing{"text", plot, true});
  }
  if (tuning.emitted) add_configuration(page, tuning.emitted_dialect, *tuning.emitted);
  page.add(source_sentence(tuning));
  return page;
}

// Returns the short page: the answer, the decisions, the next measurement.
Page brief_of(const tune::Tuning& tuning) {
  Page page;
  page.add(network_sentence(tuning));
  page.add(headline(tuning));
  page.add(outside_sentence(tuning));
  page.add(memory_verdict(tuning));
  constexpr int kHowFast = 2;
  Table table = narrow_table(alternatives_of(tuning), kHowFast);
  for (auto& line : table.lines) line.rule_before = false;
  page.add(table);
  std::string bottleneck = bottleneck_sentence(tuning.bottleneck);
  bottleneck.resize(bottleneck.find('.') + 1);
  const std::string next = next_sentence(tuning);
  if (tuning.fits) page.add(next.empty() ? bottleneck : bottleneck + " " + next);
  for (const auto& sentence : emitted_sentences(tuning)) page.add(sentence);
  if (tuning.emitted) add_configuration(page, tuning.emitted_dialect, *tuning.emitted);
  if (!tuning.tuned.complete && tuning.fits) page.add(search_sentence(tuning));
  page.add(one_line(tuning.scenario.name) + ". " + source_sentence(tuning));
  return page;
}

Json curve_json(const std::vector<tune::CurvePoint>& curve) {
  Json json = Json::array();
  for (const auto& [size, step] : curve) {
    json.push_back({{"bytes", size}, {"step_time_s", exact(step)}});
  }
  return json;
}

Json json_of(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  const Seconds step = tuned.winner().metrics.step_time;
  Json json;
  json["best"] = input::strategy_json(tuned.winner().strategy);
  json["step_time_s"] = exact(step);
  json["baseline_s"] = exact(tuned.baseline.metrics.step_time);
  json["optimum_s"] = exact(tuned.optimum);
  json["lower_bound_s"] = exact(tuned.lower_bound);
  json["certainty"] = certainty_json(tuning);
  json["alternatives"] = json_of(alternatives_of(tuning));
  json["ranking"] = json_of(ranking_of(tuning));
  json["regret_percent"] = exact(tune::percent_above(step, tuned.optimum));
  json["evaluations"] = tuned.evaluations;
  json["searched"] = {{"candidates", tuned.points},
                      {"exhaustive", tuned.exhaustive},
                      {"complete", tuned.complete},
                      {"search", search_sentence(tuning)},
                      {"held", held_sentence(tuning)}};
  json["curve"] = curve_json(tuned.curve);
  if (!tuning.ddp_curve.empty()) json["ddp_curve"] = curve_json(tuning.ddp_curve);
  if (!tuning.shortage.empty()) json["does_not_fit"] = tuning.shortage.words();
  json["verdicts"] = tune_verdicts(tuning);
  if (tuning.emitted) json["emitted"] = emitted_json(tuning.emitted_dialect, *tuning.emitted);
  json["provenance"] = {{"executor", tuning.executor},
                        {"workload", tuning.scenario.workload.name},
                        {"cluster", tuning.scenario.cluster.name},
                        {"figures", source_sentence(tuning)}};
  return json;
}

}  // namespace

Answer answer_of(const tune::Tuning& tuning) {
  Answer answer = make_answer(
      "tune", tuning.scenario.name, tuning, page_of,
      [](const tune::Tuning& of) { return with_alternatives(ranking_of(of), of); }, json_of,
      tuning.warnings, figures_of);
  answer.brief = [&] { return brief_of(tuning); };
  return answer;
}

}  // namespace syncline::reports
