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

// "no more than 0.05 %" reads better than "0.0 %" where something is there.
std::string above_text(double percent) {
  if (percent <= 1e-6) return "at";
  if (percent < 0.05) return "less than 0.05 % above";
  return share_text(percent) + " above";
}

std::string three_digits(double value) { return plain_number(value); }

std::string optimum_sentence(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  const Seconds step = tuned.winner().metrics.step_time;
  const double regret = tune::percent_above(step, tuned.one_stream_optimum);
  const std::string programme = tune::fusion_words(tuned.optimum_strategy.fusion) + ", " +
                                seconds_text(tuned.one_stream_optimum);
  std::string text = regret < -1e-6  ? "That is " + share_text(-regret) + " below "
                     : regret < 1e-6 ? "That is as fast as "
                                     : "That is " + above_text(regret) + " ";
  text += tuned.optimum_exact
              ? "the optimum for one stream with these knobs (" + programme + ", proved), and "
              : "the dynamic programme's fusion for one stream with these knobs (" + programme +
                    ", not proved to be the best), and ";
  return text + above_text(tune::percent_above(step, tuned.lower_bound)) +
         " the bound below which no fusion and no number of streams goes (" +
         seconds_text(tuned.lower_bound) + ").";
}

void add_threshold(const tune::Tuning& tuning, Sentences& sentences) {
  const auto& tuned = tuning.tuned;
  if (!tuned.best_threshold) return;
  const tune::Ranked& threshold = *tuned.best_threshold;
  const double percent =
      tune::percent_above(threshold.metrics.step_time, tuned.winner().metrics.step_time);
  if (percent <= 1e-6) return;  // nothing that the best does not say
  sentences.push_back("The best single size is " + quoted_name(threshold.strategy.name) + ": " +
                      seconds_text(threshold.metrics.step_time) + ", " + above_text(percent) +
                      " the best.");
}

std::string bottleneck_sentence(const measure::Bottleneck& bottleneck) {
  const auto share = [&](Seconds part) { return share_text(100 * part / bottleneck.step); };
  std::string text = "What binds it: " + std::string(bottleneck.what()) + ". Of each step " +
                     share(bottleneck.compute) + " is computation";
  if (bottleneck.stragglers > 0) {
    text += ", " + share(bottleneck.stragglers) + " waiting for slower ranks";
  }
  if (bottleneck.overhead > 0) {
    text += ", " + share(bottleneck.overhead) + " the host's overhead of data-parallel execution";
  }
  if (bottleneck.handling > 0) {
    text += ", " + share(bottleneck.handling) + " copying, encoding and waiting for the host";
  }
  text += ", " + share(bottleneck.communication()) + " exposed communication";
  if (bottleneck.communication() > 0) {
    text += " (" + share_text(100 * bottleneck.start_up_share) +
            " of the collectives' time is latency)";
  }
  return text + ".";
}

std::string key_words(const tune::BreakEven& even, double value) {
  const bool nodes = even.path == "cluster.nodes";
  return nodes ? plural(static_cast<std::size_t>(std::lround(value)), "node")
               : three_digits(value) + " Gbit/s";
}

std::string break_even_sentence(const tune::Tuning& tuning, const tune::BreakEven& even) {
  const bool nodes = even.path == "cluster.nodes";
  const std::string here = nodes ? "with " + key_words(even, even.now)
                                 : "at " + key_words(even, even.now) + " (" + even.path + ")";
  std::string text =
      quoted_name(even.strategy) + (even.pays_now() ? " pays here, " : " does not pay here, ") +
      here + ": its step is " + share_text(std::fabs(even.gain_percent)) +
      (even.pays_now() ? " shorter" : " longer") + " than with " + quoted_name(even.against);
  if (!nodes && !even.pays_now()) {
    const auto& metrics = tuning.tuned.baseline.metrics;
    const double exposed = metrics.step_time > 0 ? 100 * metrics.exposed / metrics.step_time : 0;
    text += ", where only " + share_text(exposed) + " of a step is communication to be saved";
  }
  if (even.value) {
    text += nodes ? "; it pays from " + key_words(even, *even.value) + " on"
                  : "; it pays below " + key_words(even, *even.value);
  } else {
    text += std::string("; it ") + (even.pays_now() ? "pays everywhere" : "pays nowhere") +
            " from " + key_words(even, even.least) + " to " + key_words(even, even.most);
  }
  return text + ".";
}

void add_confirmation(const tune::Tuning& tuning, Sentences& sentences) {
  if (tuning.confirmed_by.empty()) return;
  double worst = 0;
  const tune::Ranked* best = nullptr;
  std::size_t count = 0;
  for (const auto& ranked : tuning.tuned.ranking) {
    if (!ranked.confirmed) continue;
    ++count;
    worst = std::max(worst,
                     std::fabs(tune::percent_above(*ranked.confirmed, ranked.metrics.step_time)));
    if (best == nullptr || *ranked.confirmed < *best->confirmed * (1 - 1e-6)) best = &ranked;
  }
  const std::string rest =
      " would take longer to simulate than to find ('run --executor sim' does it)";
  if (best == nullptr) {
    if (!tuning.tuned.confirmed_all) {
      sentences.push_back("Not simulated: with so many collectives the best" + rest + ".");
    }
    return;
  }
  std::string text = "Simulated (" + tuning.confirmed_by + "), " +
                     (count == 1 ? "the best is " : "the best " + std::to_string(count) + " are ") +
                     (worst < 0.05 ? "within 0.05 %" : "at most " + share_text(worst) + " off") +
                     " of these step times";
  if (best != &tuning.tuned.winner())
    text += "; there " + quoted_name(best->strategy.name) + " comes first";
  if (!tuning.tuned.confirmed_all) text += "; the others" + rest;
  sentences.push_back(text + ".");
}

void add_training(const tune::Tuning& tuning, Sentences& sentences) {
  const auto& tuned = tuning.tuned;
  const bool said = training_of_best(tuning) != measure::Training::kSame;  // in the first lines
  if (said || !input::changes_training(tuned.winner().strategy)) return;
  std::string text = quoted_name(tuned.winner().strategy.name) +
                     " changes the training itself (sparser, coarser or rarer exchange): what that "
                     "does to accuracy is not predicted.";
  for (const auto& ranked : tuned.ranking) {
    if (input::changes_training(ranked.strategy)) continue;
    text += " The best that trains as before is " + quoted_name(ranked.strategy.name) + ", " +
            seconds_text(ranked.metrics.step_time) + ".";
    break;
  }
  sentences.push_back(text);
}

void add_averaging(const tune::Tuning& tuning, Sentences& sentences) {
  const auto& rows = tuning.averaging;
  if (rows.size() < 2) return;
  const auto faster = [](const tune::Averaging& a, const tune::Averaging& b) {
    return a.metrics.step_time > b.metrics.step_time;
  };
  const auto& most = *std::max_element(rows.begin(), rows.end(), faster);
  const auto& least = *std::min_element(rows.begin(), rows.end(), faster);
  std::string text = "Averaging as " + quoted_name(most.strategy) + " gives " +
                     short_speedup_text(least.metrics.step_time / most.metrics.step_time) +
                     " the samples per second of " + quoted_name(least.strategy) +
                     " (table below); what it costs in accuracy is not predicted";
  const bool accuracy = std::any_of(rows.begin(), rows.end(), [](const tune::Averaging& row) {
    return row.published && row.published->accuracy;
  });
  if (accuracy) text += ", the accuracies beside it are the published ones";
  sentences.push_back(text + ".");
}

// What belongs to the configuration and does not stand in it.
std::string beside_config(const tune::Emitted& emitted) {
  std::string text;
  if (!emitted.setting.empty()) text += " Run it with " + emitted.setting + ".";
  if (!emitted.algorithm.empty()) {
    text +=
        " In a scenario \"algorithm\": \"" + emitted.algorithm + "\" beside the dialect says so.";
  }
  return text;
}

void add_emission(const tune::Tuning& tuning, const tune::Emitted& emitted, Sentences& sentences) {
  if (emitted.exact) {
    sentences.push_back(tuning.emitted_dialect +
                        " can express the best exactly: " + seconds_text(emitted.step_time) +
                        " a step when read back." + beside_config(emitted));
    return;
  }
  const double percent =
      tune::percent_above(emitted.step_time, tuning.tuned.winner().metrics.step_time);
  sentences.push_back(
      (percent > 0 ? tuning.emitted_dialect + " cannot express the best; of what it can ("
                   : "Of what " + tuning.emitted_dialect + " can express (") +
      plural(emitted.searched, "configuration") + " priced) the best takes " +
      seconds_text(emitted.step_time) + " a step when read back, " +
      (percent > 0 ? above_text(percent) + " it" : share_text(-percent) + " below the best here") +
      ". The difference: " + emitted.difference + "." + beside_config(emitted));
}

void add_emitted(const tune::Tuning& tuning, Sentences& sentences) {
  if (!tuning.emitted) return;
  if (tuning.taken) {
    sentences.push_back(taken_sentence(tuning));
  } else {
    add_emission(tuning, *tuning.emitted, sentences);
  }
  for (const auto& note : notes_on(tuning.emitted->config)) sentences.push_back(note + ".");
}

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
  if (tuning.emitted) {
    page.blocks.push_back("Configuration for " + tuning.emitted_dialect +
                          (tuning.emitted->config.empty() ? ", which is its default:" : ":"));
    page.blocks.push_back(Listing{"json", tuning.emitted->config.dump(2) + "\n"});
  }
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
  if (tuning.emitted) {
    const tune::Emitted& emitted = *tuning.emitted;
    json["emitted"] = {{"dialect", tuning.emitted_dialect},       {"config", emitted.config},
                       {"algorithm", emitted.strategy.algorithm}, {"setting", emitted.setting},
                       {"step_time_s", exact(emitted.step_time)}, {"exact", emitted.exact},
                       {"difference", emitted.difference}};
  }
  json["provenance"] = {{"executor", tuning.executor},
                        {"workload", tuning.scenario.workload.name},
                        {"cluster", tuning.scenario.cluster.name},
                        {"figures", source_sentence(tuning)}};
  return json;
}

}  // namespace

std::vector<std::string> tune_verdicts(const tune::Tuning& tuning) {
  Sentences sentences{headline(tuning)};
  for (auto& sentence : beyond_sentences(tuning)) sentences.push_back(std::move(sentence));
  for (auto& sentence : certainty_sentences(tuning)) sentences.push_back(std::move(sentence));
  sentences.push_back(optimum_sentence(tuning));
  add_threshold(tuning, sentences);
  sentences.push_back(bottleneck_sentence(tuning.bottleneck));
  for (const auto& even : tuning.break_evens) {
    sentences.push_back(break_even_sentence(tuning, even));
  }
  add_averaging(tuning, sentences);
  add_training(tuning, sentences);
  add_confirmation(tuning, sentences);
  add_emitted(tuning, sentences);
  return sentences;
}

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
