#include "reports/tune_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/input/strategy_json.h"
#include "reports/curve.h"
#include "reports/fields.h"
#include "reports/figures.h"
#include "reports/format.h"
#include "reports/page.h"
#include "reports/verdict.h"
#include "reports/written.h"

namespace syncline::reports {
namespace {

using Sentences = std::vector<std::string>;

Grid ranking_grid(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  Grid grid;
  // A verdict repeats what the best gains over the frameworks' defaults: those leave first.
  grid.columns = {
      {"strategy", false}, {"step\ntime"}, {"80 %\ninterval", true, 1}, {"speedup over\nbaseline"}};
  for (const auto& own : tuning.defaults) {
    grid.columns.push_back({"over\n" + own.dialect, true, 6});
  }
  grid.columns.push_back({"above\noptimum", true, 3});
  grid.columns.push_back({"above lower\nbound", true, 5});
  grid.columns.push_back({"collectives\nper step", true, 4});
  grid.columns.push_back({"memory\na GPU", true, 2});
  const bool confirmed = !tuning.confirmed_by.empty();
  if (confirmed) grid.columns.push_back({"step time,\nsimulated", true, 2});
  const double best = tuned.baseline.metrics.step_time / tuned.winner().metrics.step_time;
  const auto add = [&](const tune::Ranked& ranked, const measure::Interval& interval, bool rule) {
    const Seconds step = ranked.metrics.step_time;
    Grid::Line line{{one_line(ranked.strategy.name), seconds_text(step),
                     seconds_range(interval.low, interval.high),
                     speedup_text(tuned.baseline.metrics.step_time / step)},
                    rule};
    for (const auto& own : tuning.defaults)
      line.cells.push_back(speedup_text(own.step_time / step));
    line.cells.push_back(percent_text(tune::percent_above(step, tuned.optimum)));
    line.cells.push_back(percent_text(tune::percent_above(step, ranked.metrics.lower_bound)));
    line.cells.push_back(count_text(ranked.metrics.collectives));
    line.cells.push_back(memory_cell(measure::memory_of(tuning.scenario, ranked.strategy)));
    if (confirmed) line.cells.push_back(ranked.confirmed ? seconds_text(*ranked.confirmed) : "");
    line.tone = tone_of(tuned.baseline.metrics.step_time / step, best);
    grid.lines.push_back(std::move(line));
  };
  for (std::size_t i = 0; i < tuned.ranking.size(); ++i) {
    add(tuned.ranking[i], tuning.certainty.ranking[i].step, false);
  }
  tune::Ranked baseline = tuned.baseline;
  baseline.strategy.name = "baseline: " + baseline.strategy.name;
  add(baseline, measure::interval_of(baseline.metrics.step_time, tuning.certainty.baseline), true);
  return grid;
}

Grid averaging_grid(const tune::Tuning& tuning) {
  const auto& rows = tuning.averaging;
  const auto any = [&](auto has) { return std::any_of(rows.begin(), rows.end(), has); };
  const bool throughput =
      any([](const tune::Averaging& row) { return row.published && row.published->throughput; });
  const bool accuracy =
      any([](const tune::Averaging& row) { return row.published && row.published->accuracy; });
  Grid grid{{{"strategy", false}, {"steps between\naveragings"}, {"throughput,\nsamples/s"}}, {}};
  if (throughput) grid.columns.push_back({"throughput\n(published)"});
  if (accuracy) grid.columns.push_back({"accuracy\n(published)"});
  for (const auto& row : rows) {
    Grid::Line line{
        {one_line(row.strategy), row.period > 0 ? std::to_string(row.period) : "adaptive",
         throughput_text(row.metrics.throughput)},
        false};
    const auto& published = row.published;
    if (throughput) {
      line.cells.push_back(
          published && published->throughput ? throughput_text(*published->throughput) : "");
    }
    if (accuracy) {
      line.cells.push_back(published && published->accuracy ? copied_number(*published->accuracy)
                                                            : "");
    }
    grid.lines.push_back(std::move(line));
  }
  return grid;
}

std::string search_sentence(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  const auto number = [](std::size_t count) { return count_text(static_cast<double>(count)); };
  std::string text =
      (tuning.own_search ? "Searched as the scenario says: "
                         : "Searched by default (the scenario has no \"search\"): ") +
      number(tuned.points) + " candidates around " + quoted_name(tuned.base.name) + ", " +
      number(tuned.evaluations) + " of them priced by the " + tuning.executor + " executor";
  if (!tuned.exhaustive) text += ", the rest ruled out by their bounds";
  if (!tuned.complete) {
    const double percent = 100 * (1 - tuned.left_bound / tuned.winner().metrics.step_time);
    text += percent > 0 ? "; stopped before the end: by their bounds the others are at most " +
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
  if (search.compute_fusions.empty() && !tuning.scenario.workload.operators.empty()) {
    held.push_back("compute fusion");
  }
  if (search.exchanges.empty() && search.cross_steps.empty() && search.priorities.empty()) {
    held.push_back("what is exchanged when");
  }
  held.push_back("overlap");
  held.push_back("the moment of the update");
  return "Held as in " + quoted_name(tuning.tuned.base.name) + ": " + join_and(held) + ".";
}

std::string source_sentence(const tune::Tuning& tuning) {
  std::string source = "All figures are predicted by the " + tuning.executor + " executor";
  if (tuning.calibrated) source += " with parameters fitted to the scenario's published rows";
  return source + ", none is measured.";
}

// Of the scenario's strategies, and whether what is recommended fits.
std::string memory_verdict(const tune::Tuning& tuning) {
  const std::string shortage = measure::memory_shortage(tuning.scenario);
  if (shortage.empty()) return "";
  const Strategy& choice = tuning.tuned.winner().strategy;
  const auto doubt = measure::memory_doubt(tuning.scenario, choice);
  const bool fits = measure::memory_of(tuning.scenario, choice).fits();
  return "Does not fit: " + shortage + ". " +
         (fits ? "What is recommended " + doubt.value_or("fits") + "."
               : "No candidate of this search fits.");
}

Page page_of(const tune::Tuning& tuning) {
  Page page;
  page.title = "Tuned: " + one_line(tuning.scenario.name);
  const std::string shortage = memory_verdict(tuning);
  if (!shortage.empty()) page.blocks.push_back(shortage);
  page.blocks.push_back("Workload " + one_line(tuning.scenario.workload.name) + ", cluster " +
                        one_line(tuning.scenario.cluster.name) + ".");
  page.blocks.push_back(headline(tuning));
  const Sentences beyond = beyond_sentences(tuning);
  for (const auto& sentence : beyond) page.blocks.push_back(sentence);
  page.blocks.push_back(alternatives_grid(tuning));
  Items set = alternatives_set(tuning);
  if (!set.items.empty()) page.blocks.push_back(std::move(set));
  page.blocks.push_back(std::string("The best of the search:"));
  page.blocks.push_back(ranking_grid(tuning));
  page.blocks.push_back(search_sentence(tuning) + " " + held_sentence(tuning));
  Sentences verdicts = tune_verdicts(tuning);
  // Those stand above.
  verdicts.erase(verdicts.begin(),
                 verdicts.begin() + 1 + static_cast<std::ptrdiff_t>(beyond.size()));
  page.blocks.push_back(Items{"Verdicts:", std::move(verdicts)});
  if (tuning.averaging.size() > 1) page.blocks.push_back(averaging_grid(tuning));
  const std::string plot = curve_text(tuning.tuned.curve);
  if (!plot.empty()) {
    const std::string heading =
        "Step time over the size of a bucket, the winner's other knobs held:";
    page.blocks.push_back(heading);
    page.blocks.push_back(Listing{"text", plot, true});
  }
  if (tuning.emitted) add_configuration(page, tuning.emitted_dialect, *tuning.emitted);
  page.blocks.push_back(source_sentence(tuning));
  return page;
}

// One line a strategy.
CsvTable csv_of(const tune::Tuning& tuning) {
  CsvTable table{{"strategy", "step_time_s", "speedup"}, {}};
  for (const auto& own : tuning.defaults) table.columns.push_back("speedup_over_" + own.dialect);
  for (const char* heading : {"above_optimum_percent", "above_lower_bound_percent", "collectives",
                              "simulated_step_time_s", "step_time_low_s", "step_time_high_s",
                              "speedup_low", "speedup_high", "memory_bytes"}) {
    table.columns.emplace_back(heading);
  }
  const auto& tuned = tuning.tuned;
  for (std::size_t i = 0; i < tuned.ranking.size(); ++i) {
    const tune::Ranked& ranked = tuned.ranking[i];
    const auto& [interval, gain] = tuning.certainty.ranking[i];
    const Seconds step = ranked.metrics.step_time;
    auto& line = table.lines.emplace_back(std::vector{ranked.strategy.name});
    const auto figure = [&](double value) { line.push_back(exact(value).dump()); };
    figure(step);
    figure(tuned.baseline.metrics.step_time / step);
    for (const auto& own : tuning.defaults) figure(own.step_time / step);
    figure(tune::percent_above(step, tuned.optimum));
    figure(tune::percent_above(step, ranked.metrics.lower_bound));
    figure(ranked.metrics.collectives);
    line.push_back(ranked.confirmed ? exact(*ranked.confirmed).dump() : "");
    for (const double end : {interval.low, interval.high, gain.low, gain.high}) figure(end);
    figure(measure::memory_of(tuning.scenario, ranked.strategy).total());
  }
  return table;
}

Json ranking_json(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  Json list = Json::array();
  for (std::size_t i = 0; i < tuned.ranking.size(); ++i) {
    const tune::Ranked& ranked = tuned.ranking[i];
    const auto& [interval, gain] = tuning.certainty.ranking[i];
    const Seconds step = ranked.metrics.step_time;
    Json line{{"strategy", input::strategy_json(ranked.strategy)},
              {"step_time_s", exact(step)},
              {"step_time_low_s", exact(interval.low)},
              {"step_time_high_s", exact(interval.high)},
              {"speedup", exact(tuned.baseline.metrics.step_time / step)},
              {"speedup_low", exact(gain.low)},
              {"speedup_high", exact(gain.high)},
              {"above_optimum_percent", exact(tune::percent_above(step, tuned.optimum))},
              {"compute_s", exact(ranked.metrics.compute)},
              {"communication_s", exact(ranked.metrics.communication)},
              {"exposed_communication_s", exact(ranked.metrics.exposed)},
              {"handling_s", exact(ranked.metrics.handling)},
              {"lower_bound_s", exact(ranked.metrics.lower_bound)},
              {"collectives", exact(ranked.metrics.collectives)},
              {"memory_bytes", memory_json(measure::memory_of(tuning.scenario, ranked.strategy))}};
    for (const auto& own : tuning.defaults) {
      line["speedup_over"][own.dialect] = exact(own.step_time / step);
    }
    if (ranked.confirmed) line["simulated_step_time_s"] = exact(*ranked.confirmed);
    list.push_back(std::move(line));
  }
  return list;
}

Json json_of(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  const Seconds step = tuned.winner().metrics.step_time;
  Json curve = Json::array();
  for (const auto& point : tuned.curve) {
    curve.push_back({{"bytes", point.size}, {"step_time_s", exact(point.step_time)}});
  }
  Json json;
  json["best"] = input::strategy_json(tuned.winner().strategy);
  json["step_time_s"] = exact(step);
  json["baseline_s"] = exact(tuned.baseline.metrics.step_time);
  json["optimum_s"] = exact(tuned.optimum);
  json["lower_bound_s"] = exact(tuned.lower_bound);
  json["certainty"] = certainty_json(tuning);
  json["alternatives"] = alternatives_json(tuning);
  json["ranking"] = ranking_json(tuning);
  json["regret_percent"] = exact(tune::percent_above(step, tuned.optimum));
  json["evaluations"] = tuned.evaluations;
  json["searched"] = {{"candidates", tuned.points},
                      {"exhaustive", tuned.exhaustive},
                      {"complete", tuned.complete},
                      {"search", search_sentence(tuning)},
                      {"held", held_sentence(tuning)}};
  json["curve"] = std::move(curve);
  if (const std::string shortage = measure::memory_shortage(tuning.scenario); !shortage.empty()) {
    json["does_not_fit"] = shortage;
  }
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
  return {"tune",
          tuning.scenario.name,
          [&] { return page_of(tuning); },
          [&] {
            CsvTable table = csv_of(tuning);
            add_alternatives(table, tuning);
            return table;
          },
          [&] { return json_of(tuning); },
          tuning.remarks,
          [&] { return figures_of(tuning); }};
}

}  // namespace syncline::reports
