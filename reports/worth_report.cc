#include "reports/worth_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/statistics.h"
#include "formats/text/digits.h"
#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

std::string target_text(const worth::Objective& objective) {
  if (objective.quantity == worth::Quantity::kLoss) {
    return "a loss of " + plain_number(objective.target);
  }
  return "an accuracy of " + plain_number(objective.target);
}

// Returns "below 1.25 Gbit/s", "everywhere" or "nowhere".
std::string pays_text(const tune::BreakEven& even) {
  if (even.value) return "below " + plain_number(*even.value) + " Gbit/s";
  return even.is_faster() ? "everywhere" : "nowhere";
}

// Returns the interval of the steps that another training would take.
measure::Interval steps_interval(const worth::Reach& reach) {
  measure::Sensitivity sensitivity;
  sensitivity.own = reach.spread.value_or(0);
  return measure::interval_of(reach.at, sensitivity);
}

std::string steps_text(const worth::Reach& reach) {
  const auto whole = [](double steps) { return count_text(std::round(steps)); };
  if (!reach.spread) return whole(reach.at);
  const auto interval = steps_interval(reach);
  return whole(reach.at) + " (" + whole(interval.low) + " to " + whole(interval.high) + ")";
}

// Returns the measured time of a training.
Cell measured_cell(const worth::WorthRow& row) {
  if (!row.measured) return {};
  const worth::Reach& clock = *row.measured;
  if (clock.always()) return clock.at;
  return std::to_string(clock.reached) + " of " + plural(clock.seeds, "seed");
}

// Returns "97.8 % +- 0.4": the mean end of the curves, with half of its 95 % interval.
std::string end_text(const worth::Reach& reach, worth::Quantity quantity) {
  const bool share = quantity == worth::Quantity::kAccuracy;
  const std::string mean = share ? share_text(100 * reach.end) : plain_number(reach.end);
  if (!reach.end_half_width) return mean;
  return mean + " +- " + plain_number(significant((share ? 100 : 1) * *reach.end_half_width, 2));
}

// Returns a cell if the condition holds, else an empty one.
Cell known_if(bool holds, Cell cell) { return holds ? std::move(cell) : Cell(); }

using worth::WorthRow;

// Returns fields of steps and time to the target.
std::vector<Field<WorthRow>> target_fields() {
  using enum Kind;
  using Row = const WorthRow&;
  const auto steps = [](Row row) { return steps_interval(row.reach); };
  return {{table_column("strategy", "strategy"), &WorthRow::name},
          {data_column("seeds"), [](Row row) { return row.reach.seeds; }},
          {data_column("reached", Column::kCsv), [](Row row) { return row.reach.reached; }},
          {table_column("steps to target\n(80 %)", "steps", kCount),
           [](Row row) { return show_as(row.reach.at, steps_text(row.reach)); }},
          {data_column("steps_*", Column::kCsv), steps},
          {table_column("step time", "step_time_s", kSeconds), &WorthRow::step},
          {data_column("step_time_*_s", Column::kJson), &WorthRow::step_interval},
          {table_column("time to\ntarget", "time_s", kSeconds), &WorthRow::time},
          {table_column("80 % interval", "time_*_s", kSeconds), &WorthRow::interval},
          {data_column("end", Column::kJson), [](Row row) { return row.reach.end; }},
          {data_column("end_half_width", Column::kJson),
           [](Row row) { return row.reach.end_half_width; }},
          {data_column("steps_*", Column::kJson),
           [steps](Row row) { return known_if(row.reach.spread.has_value(), steps(row)); }}};
}

// Returns fields of the gain over the baseline, and over the next row.
std::vector<Field<WorthRow>> gain_fields(const worth::Worth& worth) {
  using enum Kind;
  using Row = const WorthRow&;
  const WorthRow* last = worth.rows.empty() ? nullptr : &worth.rows.back();
  return {{table_column("speedup", "speedup", kSpeedup, 0, Column::kNoCsv),
           [](Row row) { return known_if(row.gain > 0, row.gain); }},
          {table_column("80 % interval", "speedup_*", kSpeedup, 0, Column::kNoCsv),
           [](Row row) { return known_if(row.gain > 0, row.gain_interval); }},
          {data_column("speedup", Column::kCsv), &WorthRow::gain},
          {data_column("speedup_*", Column::kCsv), &WorthRow::gain_interval},
          {data_column("measured_seeds", Column::kJson),
           [](Row row) { return row.measured ? Cell(row.measured->seeds) : Cell(); }},
          {data_column("measured_reached", Column::kJson),
           [](Row row) { return row.measured ? Cell(row.measured->reached) : Cell(); }},
          {data_column("measured_s", Column::kJson),
           [](Row row) {
             return known_if(row.measured && row.measured->always(), measured_cell(row));
           }},
          {data_column("chance_over_next", Column::kCsv), &WorthRow::chance_over_next},
          {data_column("chance_over_next", Column::kJson),
           [last](Row row) { return known_if(&row != last, row.chance_over_next); }},
          {table_column("faster", "pays", kText, 0, Column::kNoCsv),
           [](Row row) {
             return row.even ? show_as(row.even->is_faster(), pays_text(*row.even)) : Cell();
           }},
          {data_column("pays_below_gbps", Column::kJson),
           [](Row row) { return row.even ? Cell(row.even->value) : Cell(); }}};
}

// Returns fields of the ends of the curves, and of the measured times.
std::vector<Field<WorthRow>> end_fields(const worth::Worth& worth) {
  using enum Kind;
  using Row = const WorthRow&;
  const worth::Quantity quantity = worth.objective.quantity;
  const int as = worth.searched ? Column::kNoCsv : Column::kNone;
  const int clock = worth.objective.measured.empty() ? Column::kNone : Column::kPage;
  return {{page_column(std::string(worth::word_of(quantity)) + "\nat the end", kCount),
           [quantity](Row row) { return end_text(row.reach, quantity); }},
          {table_column("as", "as", kText, 0, as), [](Row row) { return row.strategy.name; }},
          {table_column("measured", "", kSeconds, 0, clock), measured_cell},
          {table_column("error", "", kPercent, 0, clock), [](Row row) {
             const auto ratio = worth::measured_ratio(row);
             return ratio ? Cell(100 * (*ratio - 1)) : Cell();
           }}};
}

// Returns the strategies that have a time to the target.
Table rows_of(const worth::Worth& worth) {
  return table_of(fields<WorthRow>(target_fields(), gain_fields(worth), end_fields(worth)),
                  worth.rows);
}

// Returns all strategies, also those without a time.
Table all_of(const worth::Worth& worth) {
  Table rows = rows_of(worth);
  const auto place = [&](const std::string& key, const std::string& heading = "") {
    const auto found = std::ranges::find_if(rows.columns, [&](const Column& column) {
      return key.empty() ? column.heading.starts_with(heading) : column.key == key;
    });
    return static_cast<std::size_t>(found - rows.columns.begin());
  };
  const std::string quantity(worth::word_of(worth.objective.quantity));
  const auto add = [&](const std::string& name, std::size_t seeds, std::size_t reached,
                       const std::string& why, const std::string& end) {
    std::vector<Cell> cells(rows.columns.size());
    cells[place("strategy")] = name;
    cells[place("seeds")] = seeds;
    cells[place("reached")] = reached;
    cells[place("steps")] = show_as({}, why);
    cells[place("", quantity + "\nat the end")] = end;
    rows.add(std::move(cells));
  };
  for (const auto& reach : worth.never) {
    const std::string some =
        "in " + std::to_string(reach.reached) + " of " + plural(reach.seeds, "seed");
    add(reach.strategy, reach.seeds, reach.reached, reach.reached == 0 ? "never" : some,
        end_text(reach, worth.objective.quantity));
  }
  for (const auto& name : worth.none) add(name, 0, 0, "no curve", "");
  return rows;
}

std::string first_sentence(const worth::Worth& worth) {
  const worth::WorthRow& first = worth.rows.front();
  std::string text = quoted_name(first.name) + " is first at " + target_text(worth.objective) +
                     ": " + seconds_text(first.time, kSaidDigits);
  const std::string range = seconds_range(first.interval.low, first.interval.high);
  if (!range.empty()) text += " (80 %: " + range + ")";
  if (worth.rows.size() > 1) {
    const worth::WorthRow& next = worth.rows[1];
    text += ", with a chance of " + share_text(100 * first.chance_over_next) + " before " +
            quoted_name(next.name) + " (" + seconds_text(next.time, kSaidDigits) + ")";
  }
  return text + ".";
}

std::string pays_sentence(const worth::WorthRow& row, const worth::WorthRow& base) {
  const tune::BreakEven& even = *row.even;
  const bool less = row.reach.at < base.reach.at;
  const double steps = 100 * (row.reach.at / base.reach.at - 1);
  const double step = 100 * (row.step / base.step - 1);
  std::string text = quoted_name(row.name) +
                     (even.is_faster() ? " is faster here" : " is slower here") + " against " +
                     quoted_name(base.name) + ": " + share_text(std::fabs(steps)) +
                     (less ? " fewer" : " more") + " steps, each " + share_text(std::fabs(step)) +
                     (step < 0 ? " shorter" : " longer");
  if (even.value) return text + "; it is faster " + pays_text(even) + ".";
  return text + "; it is faster at " + (even.is_faster() ? "every" : "no") +
         " bandwidth tried, from " + plain_number(even.least) + " to " + plain_number(even.most) +
         " Gbit/s.";
}

// Compares the predictions with the measured times.
std::string measured_sentence(const worth::Worth& worth) {
  std::vector<double> errors;
  std::size_t held = 0;
  const worth::WorthRow* first = nullptr;
  for (const auto& row : worth.rows) {
    const auto ratio = worth::measured_ratio(row);
    if (!ratio) continue;
    errors.push_back(std::fabs(*ratio - 1));
    const double at = row.measured->at;
    held += row.interval.low <= at && at <= row.interval.high ? 1 : 0;
    if (first == nullptr || at < first->measured->at) first = &row;
  }
  if (errors.empty()) return {};
  return "Measured: the predictions are off by " + share_text(100 * median(errors)) +
         " in the median, " + std::to_string(held) + " of " + std::to_string(errors.size()) +
         " strategies lie in their intervals; by the clock " + quoted_name(first->name) +
         " was first (" + seconds_text(first->measured->at, kSaidDigits) + ").";
}

Page page_of(const worth::Worth& worth) {
  Page page{"Time to target: " + one_line(worth.scenario.name),
            "Workload " + one_line(worth.scenario.workload.name) + ", cluster " +
                one_line(worth.scenario.cluster.name) + ", to " + target_text(worth.objective) +
                ".",
            {}};
  page.add(all_of(worth));
  page.add(Items{"Verdicts:", worth_verdicts(worth)});
  page.add(
      "Steps to the target are those of the curves that were given: where the mean of each look "
      "and its neighbours first crosses it, in the geometric mean over the seeds; the interval "
      "contains another training's. Step times are predicted by the " +
      worth.executor + " executor, as the mean over these steps" +
      std::string(worth.searched ? ", after a search for settings that keep the training" : "") +
      "; the time's interval has both uncertainties.");
  return page;
}

Json json_of(const worth::Worth& worth) {
  Json never = Json::array();
  for (const auto& reach : worth.never) {
    never.push_back(
        {{"strategy", reach.strategy}, {"seeds", reach.seeds}, {"reached", reach.reached}});
  }
  return {{"objective", "time_to_" + std::string(worth::word_of(worth.objective.quantity))},
          {"target", exact(worth.objective.target)},
          {"executor", worth.executor},
          {"searched", worth.searched},
          {"rows", json_of(rows_of(worth))},
          {"never", std::move(never)},
          {"no_curve", worth.none},
          {"no_strategy", worth.left},
          {"verdicts", worth_verdicts(worth)}};
}

// Adds the first measured training of a strategy.
void add_measured(const worth::Worth& worth, chart::Series& series) {
  for (const auto& curve : worth.objective.measured) {
    if (one_line(curve.strategy) != series.name) continue;
    for (const auto& look : curve.looks) series.hollow.push_back({look.at, look.value});
    return;
  }
}

}  // namespace

std::vector<std::string> worth_verdicts(const worth::Worth& worth) {
  std::vector<std::string> sentences;
  if (!worth.rows.empty()) sentences.push_back(first_sentence(worth));
  const std::string measured = measured_sentence(worth);
  if (!measured.empty()) sentences.push_back(measured);
  const worth::WorthRow* base = worth.baseline();
  for (const auto& row : worth.rows) {
    if (row.even) sentences.push_back(pays_sentence(row, *base));
  }
  if (base == nullptr) {
    sentences.push_back("Nothing is compared with the baseline " +
                        quoted_name(worth.scenario.baseline) +
                        ", which does not reach the target in all of its curves.");
  }
  for (const auto& reach : worth.never) {
    sentences.push_back(quoted_name(reach.strategy) + " reached it in " +
                        std::to_string(reach.reached) + " of " + plural(reach.seeds, "training") +
                        ": it has no time to it.");
  }
  if (!worth.left.empty()) {
    std::vector<std::string> names;
    for (const auto& name : worth.left) names.push_back(quoted_name(name));
    sentences.push_back("The scenario has no strategy for the curves of " + join_and(names) + ".");
  }
  return sentences;
}

chart::Figure worth_figure(const worth::Worth& worth) {
  const std::string quantity(worth::word_of(worth.objective.quantity));
  chart::Figure figure{
      "time-to-target",
      quantity + " over the time of the training",
      "Mean of the curves that were given, at the mean step time that is predicted.",
      {"time", chart::Unit::kSeconds},
      {quantity}};
  constexpr int kMax = 5;
  int drawn = 0;
  for (const auto& row : worth.rows) {
    if (drawn >= kMax && &row != worth.baseline()) continue;
    chart::Series series{one_line(row.name), drawn++};
    for (const auto& look : row.seen) series.points.push_back({look.at, look.value});
    add_measured(worth, series);
    figure.series.push_back(std::move(series));
  }
  if (!worth.objective.measured.empty()) {
    figure.note += " Dots: measured, the first training of each.";
  }
  figure.rules.push_back({"target", false, worth.objective.target});
  return figure;
}

Answer answer_of(const worth::Worth& worth, const std::string& verb) {
  return make_answer(
      verb, worth.scenario.name, worth, page_of, all_of, json_of, worth.warnings,
      [](const worth::Worth& of) { return std::vector<Illustration>{{worth_figure(of)}}; });
}

}  // namespace syncline::reports
