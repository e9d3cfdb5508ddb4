#include "reports/tune_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/text/digits.h"
#include "reports/format.h"
#include "reports/memory_text.h"
#include "reports/run_report.h"
#include "reports/table.h"
#include "reports/verdict.h"
#include "reports/written.h"
#include "studies/rows/memory.h"
#include "studies/study/study_calibration.h"

namespace syncline::reports {
namespace {

using Sentences = std::vector<std::string>;

// Gains below this, or less likely than this, are not worth a change.
constexpr double kMinGain = 0.01;
constexpr double kMinChance = 0.8;

std::string chance_text(double chance) {
  if (chance > 0.99) return "more than 99 %";
  if (chance < 0.01) return "less than 1 %";
  return std::to_string(std::lround(100 * chance)) + " %";
}

std::string percent_range(double low, double high) {
  return plain_number(std::round(low * 10) / 10) + " to " +
         plain_number(std::round(high * 10) / 10) + " %";
}

double gain_of(const tune::Tuned& tuned) {
  return tuned.baseline.metrics.step_time / tuned.winner().metrics.step_time - 1;
}

// Returns a size in words; a size of 0 leaves each gradient alone.
std::string size_text(Bytes bytes) {
  return bytes == 0 ? "one gradient" : bytes_text(bytes, kSaidDigits);
}

// Returns "from 1 MiB to 3 MiB, 8 MiB and 2 narrower ranges".
std::string ranges_text(const std::vector<tune::SizeRange>& ranges) {
  constexpr std::size_t kTold = 4;
  const auto width = [](const tune::SizeRange& range) {
    return static_cast<double>(range.high + 1) / static_cast<double>(range.low + 1);
  };
  std::vector<double> widths;
  for (const auto& range : ranges) widths.push_back(width(range));
  std::sort(widths.rbegin(), widths.rend());
  std::vector<std::string> texts;
  for (const auto& range : ranges) {
    if (texts.size() == kTold || width(range) < widths[std::min(kTold, widths.size()) - 1])
      continue;
    texts.push_back(range.low == range.high
                        ? "of " + size_text(range.low)
                        : "from " + size_text(range.low) + " to " + size_text(range.high));
  }
  if (ranges.size() > texts.size()) {
    texts.push_back(plural(ranges.size() - texts.size(), "narrower range"));
  }
  return join_and(texts);
}

// Returns the sizes that are as good, and the uncertainty that would make another one better.
std::string size_sentence(const tune::Tuning& tuning) {
  const auto& sure = tuning.certainty;
  const auto& curve = tuning.tuned.curve;
  const std::string within = "within " + share_text(100 * tune::kAsGood) + " of the best";
  const bool any = sure.as_good.size() == 1 && sure.as_good.front().low == curve.front().size &&
                   sure.as_good.front().high == curve.back().size;
  std::string text = "With these settings buckets " +
                     (any ? "of any size" : ranges_text(sure.as_good)) + " are " + within;
  if (sure.as_good.size() == 1 && sure.as_good.front().low == sure.as_good.front().high) {
    text = "With these settings buckets of " + size_text(sure.as_good.front().low) +
           " are best, and no other size is within " + share_text(100 * tune::kAsGood);
  }
  if (sure.size_sensitivities.empty()) return text + ".";
  const auto& worst = sure.size_sensitivities.front();
  constexpr double kWorthTelling = 0.5;
  if (worst.lost_percent < kWorthTelling) {
    return text + "; if an input is off, " + size_text(*sure.size) + " loses less than " +
           share_text(kWorthTelling) + ".";
  }
  return text + ". They depend most on " + std::string(measure::words_of(worst.uncertainty)) +
         ": at the " + (worst.slower ? "slower" : "faster") + " end of its likely range " +
         size_text(worst.best) + " would be best, and " + size_text(*sure.size) + " " +
         share_text(worst.lost_percent) + " slower.";
}

// Returns the losses by frameworks' defaults. A knob that the search did not vary may beat the
// best.
std::string defaults_sentence(const tune::Tuning& tuning) {
  constexpr double kFaster = -0.1;  // percent; nearer to the best is as good
  std::vector<std::string> losses;
  std::vector<std::string> faster;
  for (const auto& own : tuning.defaults) {
    losses.push_back(own.dialect + " " + percent_text(own.loss_percent) + " (" +
                     percent_range(own.loss_interval.low, own.loss_interval.high) + ")");
    if (own.loss_percent < kFaster) faster.push_back(own.dialect);
  }
  std::string text = "The frameworks' own defaults against the best: " + join_and(losses);
  if (faster.empty()) return text + ".";
  return text + "; " + join_and(faster) + (faster.size() == 1 ? " is" : " are") +
         " faster by a knob that this search did not vary.";
}

// Returns "less than 0.05 % above" instead of "0.0 %" for a small difference.
std::string above_text(double percent) {
  if (percent <= 1e-6) return "at";
  if (percent < 0.05) return "less than 0.05 % above";
  return share_text(percent) + " above";
}

std::string optimum_sentence(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  const Seconds step = tuned.winner().metrics.step_time;
  const double regret = tune::percent_above(step, tuned.one_stream_optimum);
  const std::string programme = tune::fusion_words(tuned.optimum_strategy.fusion) + ", " +
                                seconds_text(tuned.one_stream_optimum, kSaidDigits);
  std::string text = regret < -1e-6  ? "That is " + share_text(-regret) + " below "
                     : regret < 1e-6 ? "That is as fast as "
                                     : "That is " + above_text(regret) + " ";
  text += tuned.optimum_exact
              ? "the optimum for one stream with these knobs (" + programme + ", proved), and "
              : "the dynamic programme's fusion for one stream with these knobs (" + programme +
                    ", not proved to be the best), and ";
  return text + above_text(tune::percent_above(step, tuned.lower_bound)) + " the lower bound of " +
         seconds_text(tuned.lower_bound, kSaidDigits) + " over all fusions and streams.";
}

void add_threshold(const tune::Tuning& tuning, Sentences& sentences) {
  const auto& tuned = tuning.tuned;
  if (!tuned.best_threshold) return;
  const tune::Ranked& threshold = *tuned.best_threshold;
  const double percent =
      tune::percent_above(threshold.metrics.step_time, tuned.winner().metrics.step_time);
  if (percent <= 1e-6) return;  // the same as the best
  sentences.push_back("The best single size is " + quoted_name(threshold.strategy.name) + ": " +
                      seconds_text(threshold.metrics.step_time, kSaidDigits) + ", " +
                      above_text(percent) + " the best.");
}

}  // namespace

std::string bottleneck_sentence(const measure::Bottleneck& bottleneck) {
  const auto share = [&](Seconds part) { return share_text(100 * part / bottleneck.step); };
  std::string text = "Bottleneck: " + std::string(bottleneck.what()) + ". Of each step " +
                     share(bottleneck.compute) + " is computation";
  if (bottleneck.stragglers > 0) {
    text += ", " + share(bottleneck.stragglers) + " waiting for slower ranks";
  }
  if (bottleneck.overhead > 0) {
    text += ", " + share(bottleneck.overhead) + " the host's overhead of data-parallel execution";
  }
  if (bottleneck.comm_overhead > 0) {
    text += ", " + share(bottleneck.comm_overhead) + " copying, encoding and waiting for the host";
  }
  for (const auto& [word, seconds] : bottleneck.cuts()) {
    if (seconds > 0) text += ", " + share(seconds) + " " + std::string(word);
  }
  text += ", " + share(bottleneck.communication()) + " exposed communication";
  if (bottleneck.communication() > 0) {
    text += " (" + share_text(100 * bottleneck.start_up_share) + " of collective time is latency)";
  }
  return text + ".";
}

namespace {

std::string key_words(const tune::BreakEven& even, double value) {
  const bool nodes = even.path == "cluster.nodes";
  return nodes ? plural(std::lround(value), "node") : plain_number(value) + " Gbit/s";
}

std::string break_even_sentence(const tune::Tuning& tuning, const tune::BreakEven& even) {
  const bool nodes = even.path == "cluster.nodes";
  const std::string here = nodes ? "with " + key_words(even, even.now)
                                 : "at " + key_words(even, even.now) + " (" + even.path + ")";
  std::string text =
      quoted_name(even.strategy) + (even.is_faster() ? " is faster here, " : " is slower here, ") +
      here + ": its step is " + share_text(std::fabs(even.gain_percent)) +
      (even.is_faster() ? " shorter" : " longer") + " than with " + quoted_name(even.against);
  if (!nodes && !even.is_faster()) {
    const auto& metrics = tuning.tuned.baseline.metrics;
    const double exposed = metrics.step_time > 0 ? 100 * metrics.exposed / metrics.step_time : 0;
    text += ", where only " + share_text(exposed) + " of a step is communication to be saved";
  }
  if (even.value) {
    text += nodes ? "; it is faster from " + key_words(even, *even.value) + " on"
                  : "; it is faster below " + key_words(even, *even.value);
  } else {
    text += std::string("; it is ") + (even.is_faster() ? "faster" : "slower") +
            " at every value tried, " + key_words(even, even.least) + " to " +
            key_words(even, even.most);
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
  const bool in_first_lines =
      training_of_best(tuning) != measure::TrainingChange::kSame;  // in the first lines
  if (in_first_lines || !input::changes_training(tuned.winner().strategy)) return;
  std::string text = quoted_name(tuned.winner().strategy.name) +
                     " changes the training; the effect on accuracy is not predicted.";
  for (const auto& ranked : tuned.ranking) {
    if (input::changes_training(ranked.strategy)) continue;
    text += " The best that trains as before is " + quoted_name(ranked.strategy.name) + ", " +
            seconds_text(ranked.metrics.step_time, kSaidDigits) + ".";
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
                     " (table below); the effect on accuracy is not predicted";
  const bool accuracy = std::any_of(rows.begin(), rows.end(), [](const tune::Averaging& row) {
    return row.published && row.published->accuracy;
  });
  if (accuracy) text += ", the accuracies next to it are the published ones";
  sentences.push_back(text + ".");
}

// Returns settings outside the configuration that belong to it.
std::string beside_config(const tune::Emitted& emitted) {
  std::string text;
  if (!emitted.setting.empty()) text += " Run it with " + emitted.setting + ".";
  if (!emitted.algorithm.empty()) {
    text +=
        " In a scenario \"algorithm\": \"" + emitted.algorithm + "\" next to the dialect does so.";
  }
  return text;
}

void add_emission(const tune::Tuning& tuning, const tune::Emitted& emitted, Sentences& sentences) {
  if (emitted.exact) {
    sentences.push_back(tuning.emitted_dialect + " can express " +
                        (tuning.tuned.outside ? "it" : "the best exactly") + ": " +
                        seconds_text(emitted.step_time, kSaidDigits) + " per step when read back." +
                        beside_config(emitted));
    return;
  }
  const double percent =
      tune::percent_above(emitted.step_time, tuning.tuned.winner().metrics.step_time);
  sentences.push_back(
      (percent > 0 ? tuning.emitted_dialect + " cannot express the best; its best configuration ("
                   : "The best configuration of " + tuning.emitted_dialect + " (") +
      std::to_string(emitted.searched) + " evaluated) takes " +
      seconds_text(emitted.step_time, kSaidDigits) + " per step when read back, " +
      (percent > 0 ? above_text(percent) + " it" : share_text(-percent) + " below the best here") +
      ". The difference: " + emitted.difference + "." + beside_config(emitted));
}

}  // namespace

std::vector<std::string> emitted_sentences(const tune::Tuning& tuning) {
  Sentences sentences;
  if (!tuning.emitted) return sentences;
  if (tuning.taken) {
    sentences.push_back(taken_sentence(tuning));
  } else {
    add_emission(tuning, *tuning.emitted, sentences);
  }
  for (const auto& note : list_notes(tuning.emitted->config)) sentences.push_back(note + ".");
  return sentences;
}

std::string network_sentence(const tune::Tuning& tuning) {
  const auto fit = measure::network_fit_of(tuning.scenario);
  return fit ? network_sentence(*fit, tuning.tuned.baseline.metrics) : "";
}

namespace {

// Returns the command, and the input that its answer is for.
std::string measurement_text(const tune::NextMeasurement& next) {
  switch (next.what) {
    case tune::Probe::kLogs:
      return "`" + next.command +
             " > nccl.log` (a few seconds on the idle cluster), then fit the cluster: `syncline "
             "calibrate logs nccl.log -o cluster.json`.";
    case tune::Probe::kSteps:
      return "some steps of " + quoted_name(next.choice) + " and of " + quoted_name(next.rival) +
             ". `syncline calibrate steps` reads them as published rows.";
    case tune::Probe::kRecord:
      break;
  }
  return "`syncline record -o syncline_record.py && torchrun -m syncline_record train.py`, which "
         "writes this scenario again from the job.";
}

// Adds the measurement that would decide an open choice.
void add_next(const tune::Tuning& tuning, Sentences& sentences) {
  if (!tuning.next) return;
  const tune::NextMeasurement& next = *tuning.next;
  sentences.push_back(
      next_sentence(tuning) + " " + quoted_name(next.choice) + " over " + quoted_name(next.rival) +
      ", " + speedup_range(next.gain_now.low, next.gain_now.high) +
      " now, is then known as narrowly as " +
      speedup_range(next.gain_after.low, next.gain_after.high) + ", and its step, now " +
      seconds_range(next.step_now.low, next.step_now.high) + ", as " +
      seconds_range(next.step_after.low, next.step_after.high) +
      ". The faster of the two is then chosen with " + chance_text(next.chance_after) +
      " instead of " + chance_text(next.chance) + ", which is worth " +
      share_text(100 * next.saved) + " of a step.");
}

Json next_json(const tune::NextMeasurement& next) {
  constexpr const char* kWords[] = {"logs", "steps", "record"};
  Json json{{"measurement", kWords[static_cast<std::size_t>(next.what)]},
            {"rival", next.rival},
            {"worth_percent", exact(100 * next.saved)},
            {"chance", exact(next.chance)},
            {"chance_after", exact(next.chance_after)},
            {"step_time_low_s", exact(next.step_after.low)},
            {"step_time_high_s", exact(next.step_after.high)},
            {"speedup_low", exact(next.gain_after.low)},
            {"speedup_high", exact(next.gain_after.high)}};
  if (!next.command.empty()) json["command"] = next.command;
  return json;
}

}  // namespace

std::string next_sentence(const tune::Tuning& tuning) {
  if (!tuning.next) return "";
  return "To decide, measure: " + measurement_text(*tuning.next);
}

namespace {

// Returns a sentence if the network is too slow for all strategies that keep the training, with a
// change of the training that suits it. Empty: it is fast enough.
std::string slow_link_sentence(const tune::Tuning& tuning) {
  constexpr double kFaster = 3;
  const measure::Metrics& best = tuning.tuned.winner().metrics;
  if (training_of_best(tuning) != measure::TrainingChange::kSame) return "";
  if (!network_sentence(tuning).empty()) return "";  // it names the mend
  if (!measure::waits_for_network(best)) return "";
  Sentences others;
  for (const tune::Alternative& row : tuning.alternatives) {
    const bool changed = row.training == measure::TrainingChange::kChanged;
    if (!changed || !row.memory.fits()) continue;
    const bool outer = row.strategy.local_sgd.outer.any();
    if (!outer && row.metrics.step_time * kFaster > best.step_time) continue;
    others.push_back(quoted_name(row.strategy.name) + " takes " +
                     seconds_text(row.metrics.step_time, kSaidDigits));
    if (outer) std::swap(others.front(), others.back());
  }
  constexpr std::size_t kTold = 2;
  if (others.size() > kTold) others.resize(kTold);
  return "The network cannot carry this training: " +
         share_text(100 * best.exposed / best.step_time) + " of each step waits for it. " +
         (others.empty() ? "DiLoCo communicates rarely (local_sgd with an outer optimizer, "
                           "docs/tune.md). "
                         : join_and(others) + " per step and " +
                               (others.size() == 1 ? "changes" : "change") + " the training. ");
}

// Returns a sentence if no strategy fits, with the remedy by other keys.
std::string shortage_sentence(const tune::Tuning& tuning) {
  const bool remedied = !tuning.fits && tuning.alternatives.size() > 1;
  if (!remedied) return "Nothing here fits in memory: " + tuning.shortage.words() + ".";
  const tune::Alternative& row = tuning.alternatives.back();
  return "Nothing fits in memory as given; " + row.strategy.name +
         " does: " + measure::gigabytes(row.memory.total()) + " GB and " +
         seconds_text(row.metrics.step_time, kSaidDigits) +
         " per step (80 %: " + seconds_range(row.step.low, row.step.high) +
         "). To set it: " + row.set_with + ".";
}

}  // namespace

std::string headline(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  const auto& sure = tuning.certainty;
  const tune::Ranked& choice = tuned.winner();
  const std::string step = seconds_text(choice.metrics.step_time, kSaidDigits) +
                           " per step (80 %: " + seconds_range(sure.step.low, sure.step.high) + ")";
  const std::string baseline = quoted_name(tuned.baseline.strategy.name);
  const bool same_only = training_of_best(tuning) == measure::TrainingChange::kSame;
  const std::string same =
      same_only && !beyond_sentences(tuning).empty() ? " with the same training" : "";
  const auto fits = [&](const tune::Ranked& ranked) {
    return measure::memory_of(tuning.scenario, ranked.strategy).fits();
  };
  if (!fits(choice)) return shortage_sentence(tuning);
  const std::string slow = slow_link_sentence(tuning);
  const std::string room = room_sentence(measure::memory_of(tuning.scenario, choice.strategy));
  if (choice.strategy.name == tuned.baseline.strategy.name) {
    return slow + "Nothing to gain" + same + ": the baseline " + baseline + " is the best found, " +
           step + "." + room;
  }
  if (fits(choice) && !fits(tuned.baseline)) {
    return slow + quoted_name(choice.strategy.name) + " is the best found that fits" + same + ": " +
           step + ", " + short_speedup_text(1 + gain_of(tuned)) + " over the baseline " + baseline +
           " (" + seconds_text(tuned.baseline.metrics.step_time, kSaidDigits) +
           "), which does not fit." + room;
  }
  if (gain_of(tuned) < kMinGain) {
    return slow + "No worthwhile gain" + same + ": the best found, " +
           quoted_name(choice.strategy.name) + ", takes " + step + ", " +
           share_text(100 * gain_of(tuned)) + " less than the baseline " + baseline + " (" +
           seconds_text(tuned.baseline.metrics.step_time, kSaidDigits) + "). Keep the baseline." +
           room_sentence(measure::memory_of(tuning.scenario, tuned.baseline.strategy));
  }
  std::string text = slow + quoted_name(choice.strategy.name) + " is the best found" + same + ": " +
                     step + ", " + short_speedup_text(1 + gain_of(tuned)) + " (" +
                     speedup_range(sure.gain.low, sure.gain.high) + ") over the baseline " +
                     baseline + " (" + seconds_text(tuned.baseline.metrics.step_time, kSaidDigits) +
                     "). It is " + chance_text(sure.chance) + " likely to be faster";
  if (sure.chance < kMinChance) text += "; measure before you change anything";
  return text + "." + room;
}

std::string outside_sentence(const tune::Tuning& tuning) {
  const auto& outside = tuning.tuned.outside;
  const Seconds best = tuning.tuned.winner().metrics.step_time;
  if (!outside || outside->metrics.step_time * (1 + kMinGain) > best) return "";
  const std::string& own = tuning.emitted_dialect.empty() ? tuning.tuned.baseline.strategy.dialect
                                                          : tuning.emitted_dialect;
  return "Settings that " + own + " lacks could gain more: " + quoted_name(outside->strategy.name) +
         ", " + seconds_text(outside->metrics.step_time, kSaidDigits) + " per step.";
}

std::vector<std::string> certainty_sentences(const tune::Tuning& tuning) {
  const auto& sure = tuning.certainty;
  std::vector<std::string> list;
  if (!sure.as_good.empty()) list.push_back(size_sentence(tuning));
  if (!tuning.defaults.empty()) list.push_back(defaults_sentence(tuning));
  const auto [uncertainty, share] = measure::widest(sure.choice);
  list.push_back("Main uncertainty: " + std::string(measure::words_of(uncertainty)) + " (" +
                 share_text(100 * share) + " of the variance).");
  return list;
}

Json certainty_json(const tune::Tuning& tuning) {
  const auto& sure = tuning.certainty;
  Json json{{"step_time_low_s", exact(sure.step.low)},
            {"step_time_high_s", exact(sure.step.high)},
            {"speedup_low", exact(sure.gain.low)},
            {"speedup_high", exact(sure.gain.high)},
            {"chance_of_gain", exact(sure.chance)}};
  if (!sure.as_good.empty()) {
    Json ranges = Json::array();
    for (const auto& [low, high] : sure.as_good) ranges.push_back({low, high});
    json["size"] = {{"as_good_bytes", std::move(ranges)}};
    if (sure.size) json["size"]["bytes"] = *sure.size;
  }
  for (const auto& each : sure.size_sensitivities) {
    json["sensitivities"].push_back({{"doubt", measure::words_of(each.uncertainty)},
                                     {"end", each.slower ? "slower" : "faster"},
                                     {"best_bytes", each.best},
                                     {"lost_percent", exact(each.lost_percent)}});
  }
  if (tuning.next) json["next"] = next_json(*tuning.next);
  for (const auto& own : tuning.defaults) {
    json["defaults"][own.dialect] = {{"percent", exact(own.loss_percent)},
                                     {"low", exact(own.loss_interval.low)},
                                     {"high", exact(own.loss_interval.high)}};
  }
  return json;
}

std::vector<std::string> tune_verdicts(const tune::Tuning& tuning) {
  Sentences sentences{headline(tuning)};
  const std::string outside = outside_sentence(tuning);
  if (!outside.empty()) sentences.push_back(outside);
  for (auto& sentence : beyond_sentences(tuning)) sentences.push_back(std::move(sentence));
  const std::string network = network_sentence(tuning);
  if (!network.empty()) sentences.push_back(network);
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
  for (auto& sentence : emitted_sentences(tuning)) sentences.push_back(std::move(sentence));
  add_next(tuning, sentences);
  return sentences;
}

}  // namespace syncline::reports
