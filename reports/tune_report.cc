#include "reports/tune_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/input/scenario_json.h"
#include "reports/figures.h"
#include "reports/format.h"
#include "reports/page.h"
#include "reports/table.h"
#include "reports/text_plot.h"
#include "reports/verdict.h"
#include "reports/written.h"

namespace syncline::reports {
namespace {

using Sentences = std::vector<std::string>;

std::vector<Column> ranking_columns(const tune::Tuning& tuning) {
  using enum Kind;
  const int simulated = tuning.confirmed_by.empty() ? Column::kPrograms : Column::kAll;
  // A verdict repeats what the best gains over the frameworks' defaults: those leave first.
  std::vector<Column> over, over_kept;
  for (const auto& own : tuning.defaults) {
    const std::string key = "speedup_over/" + own.dialect;
    over.push_back(both("over\n" + own.dialect, key, kSpeedup, 6, Column::kNoJson));
    over_kept.push_back(kept(key, Column::kJson));
  }
  return columns(
      both("strategy", "strategy", kText, 0, Column::kNoJson), kept("strategy", Column::kJson),
      both("step\ntime", "step_time_s", kSeconds),
      both("80 %\ninterval", "step_time_*_s", kSeconds, 1, Column::kNoCsv),
      both("speedup over\nbaseline", "speedup", kSpeedup), kept("speedup_*", Column::kJson), over,
      both("above\noptimum", "above_optimum_percent", kPercent, 3),
      both("above lower\nbound", "above_lower_bound_percent", kPercent, 5, Column::kNoJson),
      kept("compute_s", Column::kJson), kept("communication_s", Column::kJson),
      kept("exposed_communication_s", Column::kJson), kept("handling_s", Column::kJson),
      kept("lower_bound_s", Column::kJson), both("collectives\nper step", "collectives", kCount, 4),
      shown("memory\na GPU", kBytes, 2), kept("memory_bytes", Column::kJson), over_kept,
      both("step time,\nsimulated", "simulated_step_time_s", kSeconds, 2, simulated),
      kept("step_time_*_s", Column::kCsv), kept("speedup_*", Column::kCsv),
      kept("memory_bytes", Column::kCsv));
}

std::vector<Cell> ranking_cells(const tune::Tuning& tuning, const tune::Ranked& ranked,
                                const measure::Interval& interval, const measure::Interval& gain) {
  const measure::Metrics& metrics = ranked.metrics;
  const Seconds step = metrics.step_time;
  const measure::Memory memory = measure::memory_of(tuning.scenario, ranked.strategy);
  std::vector<Cell> over;
  for (const auto& own : tuning.defaults) over.emplace_back(own.step_time / step);
  return cells(ranked.strategy.name, input::strategy_json(ranked.strategy), step, interval,
               tuning.tuned.baseline.metrics.step_time / step, gain, over,
               tune::percent_above(step, tuning.tuned.optimum),
               tune::percent_above(step, metrics.lower_bound), metrics.compute,
               metrics.communication, metrics.exposed, metrics.handling, metrics.lower_bound,
               metrics.collectives, memory_cell(memory), memory_json(memory), over,
               ranked.confirmed, interval, gain, memory.total());
}

Table ranking_of(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  Table table{ranking_columns(tuning)};
  for (std::size_t i = 0; i < tuned.ranking.size(); ++i) {
    const auto& [step, gain] = tuning.certainty.ranking[i];
    const bool pays =
        tuned.baseline.metrics.step_time >= kPays * tuned.ranking[i].metrics.step_time;
    table.add(ranking_cells(tuning, tuned.ranking[i], step, gain)).tone = i == 0 ? Tone::kBest
                                                                          : pays ? Tone::kPlain
                                                                                 : Tone::kFaint;
  }
  return table;
}

// With the baseline, for people.
Grid ranking_grid(const tune::Tuning& tuning) {
  const tune::Ranked& baseline = tuning.tuned.baseline;
  const Seconds step = baseline.metrics.step_time;
  Table table = ranking_of(tuning);
  Table::Line& line = table.add(
      ranking_cells(tuning, baseline, measure::interval_of(step, tuning.certainty.baseline), {}));
  line.cells.front().text = "baseline: " + baseline.strategy.name;
  line.rule_before = true;
  return grid_of(table);
}

Table averaging_of(const tune::Tuning& tuning) {
  using enum Kind;
  Table table{columns(shown("strategy"), shown("steps between\naveragings", kInteger),
                      shown("throughput,\nsamples/s", kThroughput),
                      shown("throughput\n(published)", kThroughput, 0, Column::kPage),
                      shown("accuracy\n(published)", kInteger, 0, Column::kPage))};
  for (const auto& row : tuning.averaging) {
    const auto published = [&](std::optional<double> Published::*figure) {
      return row.published ? Cell((*row.published).*figure) : Cell();
    };
    const Cell accuracy = published(&Published::accuracy);
    table.add(row.strategy, row.period > 0 ? Cell(row.period) : Cell("adaptive"),
              row.metrics.throughput, published(&Published::throughput),
              accuracy.known() ? Cell(copied_number(*row.published->accuracy)) : accuracy);
  }
  return table;
}

std::string search_sentence(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  const auto number = [](std::size_t count) { return count_text(static_cast<double>(count)); };
  std::string text =
      (tuning.own_search ? "Searched as the scenario says: "
                         : "Searched by default (the scenario has no \"search\"): ") +
      number(tuned.points) + " candidates around " + quoted_name(tuned.base.name) + ", " +
      number(tuned.evaluations) + " of them evaluated by the " + tuning.executor + " executor";
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
    held.push_back("what is sent when");
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
  const auto uncertainty = measure::memory_uncertainty(tuning.scenario, choice);
  const bool fits = measure::memory_of(tuning.scenario, choice).fits();
  return "Does not fit: " + shortage + ". " +
         (fits ? "What is recommended " + uncertainty.value_or("fits") + "."
               : "No candidate of this search fits.");
}

Page page_of(const tune::Tuning& tuning) {
  Page page;
  page.title = "Tuned: " + one_line(tuning.scenario.name);
  const std::string shortage = memory_verdict(tuning);
  if (!shortage.empty()) page.blocks.push_back(shortage);
  page.blocks.push_back("Workload " + one_line(tuning.scenario.workload.name) + ", cluster " +
                        one_line(tuning.scenario.cluster.name) + ".");
  const std::string network = network_sentence(tuning);
  if (!network.empty()) page.blocks.push_back(network);
  page.blocks.push_back(headline(tuning));
  const Sentences beyond = beyond_sentences(tuning);
  for (const auto& sentence : beyond) page.blocks.push_back(sentence);
  page.blocks.push_back(grid_of(alternatives_of(tuning)));
  Items set = alternatives_set(tuning);
  if (!set.items.empty()) page.blocks.push_back(std::move(set));
  page.blocks.push_back(std::string("The best of the search:"));
  page.blocks.push_back(ranking_grid(tuning));
  page.blocks.push_back(search_sentence(tuning) + " " + held_sentence(tuning));
  Sentences verdicts = tune_verdicts(tuning);
  // Those stand above.
  const std::size_t above = 1 + beyond.size() + (network.empty() ? 0 : 1);
  verdicts.erase(verdicts.begin(), verdicts.begin() + static_cast<std::ptrdiff_t>(above));
  page.blocks.push_back(Items{"Verdicts:", std::move(verdicts)});
  if (tuning.averaging.size() > 1) page.blocks.push_back(grid_of(averaging_of(tuning)));
  const std::string plot = curve_text(tuning.tuned.curve);
  if (!plot.empty()) {
    const std::string heading =
        "Step time over the size of a bucket, the winner's other knobs fixed:";
    page.blocks.push_back(heading);
    page.blocks.push_back(Listing{"text", plot, true});
  }
  if (tuning.emitted) add_configuration(page, tuning.emitted_dialect, *tuning.emitted);
  page.blocks.push_back(source_sentence(tuning));
  return page;
}

// The answer, what else could be done, how the best is set, and what to do next.
Page brief_of(const tune::Tuning& tuning) {
  Page page;
  const std::string shortage = memory_verdict(tuning);
  if (!shortage.empty()) page.blocks.push_back(shortage);
  const std::string network = network_sentence(tuning);
  if (!network.empty()) page.blocks.push_back(network);
  page.blocks.push_back(headline(tuning));
  constexpr int kHowFast = 2;
  std::vector<std::string> left_out{"accuracy"};
  if (shortage.empty()) left_out.emplace_back("memory\na GPU");
  Table table = narrowed(alternatives_of(tuning), kHowFast, left_out);
  for (auto& line : table.lines) line.rule_before = false;
  page.blocks.push_back(grid_of(table));
  for (const auto& row : tuning.alternatives) {
    if (row.strategy.name != tuning.tuned.winner().strategy.name || row.set_with.empty()) continue;
    page.blocks.push_back("To set it: " + row.set_with);
    break;
  }
  std::string bottleneck = bottleneck_sentence(tuning.bottleneck);
  bottleneck.resize(bottleneck.find('.') + 1);
  const std::string next = next_sentence(tuning);
  page.blocks.push_back(next.empty() ? bottleneck : bottleneck + " " + next);
  for (const auto& sentence : emitted_sentences(tuning)) page.blocks.push_back(sentence);
  if (tuning.emitted) add_configuration(page, tuning.emitted_dialect, *tuning.emitted);
  if (!tuning.tuned.complete) page.blocks.push_back(search_sentence(tuning));
  page.blocks.push_back(one_line(tuning.scenario.name) + ". " + source_sentence(tuning));
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
          [&] { return with_alternatives(ranking_of(tuning), tuning); },
          [&] { return json_of(tuning); },
          tuning.warnings,
          [&] { return figures_of(tuning); },
          [&] { return brief_of(tuning); }};
}

}  // namespace syncline::reports
