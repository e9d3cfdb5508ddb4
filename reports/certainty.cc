#include "reports/tune_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/measure/memory.h"
#include "reports/fields.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

// Gains below this, or less likely than this, are not worth a change.
constexpr double kLeastGain = 0.01;
constexpr double kLeastChance = 0.8;

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

// A size of nothing leaves each gradient alone.
std::string size_text(Bytes bytes) {
  return bytes == 0 ? "one gradient" : bytes_text(static_cast<double>(bytes));
}

// "from 1 MiB to 3 MiB, 8 MiB and 2 narrower ranges".
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

// The sizes that are as good, and what would make another one better.
std::string size_sentence(const tune::Tuning& tuning) {
  const auto& sure = tuning.certainty;
  const auto& curve = tuning.tuned.curve;
  const std::string within = "within " + share_text(100 * tune::kAsGood) + " of the best of them";
  const bool any = sure.as_good.size() == 1 && sure.as_good.front().low == curve.front().size &&
                   sure.as_good.front().high == curve.back().size;
  std::string text = "With these knobs buckets " +
                     (any ? "of any size" : ranges_text(sure.as_good)) + " are " + within;
  if (sure.as_good.size() == 1 && sure.as_good.front().low == sure.as_good.front().high) {
    text = "With these knobs buckets of " + size_text(sure.as_good.front().low) +
           " are best, and no other size is within " + share_text(100 * tune::kAsGood);
  }
  if (sure.sensitivities.empty()) return text + ".";
  const auto& worst = sure.sensitivities.front();
  constexpr double kWorthTelling = 0.5;
  if (worst.lost_percent < kWorthTelling) {
    return text + ": whatever input is off, " + size_text(*sure.size) + " loses less than " +
           share_text(kWorthTelling) + ".";
  }
  return text + ". What would change that is " + std::string(measure::words_of(worst.doubt)) +
         ": at the " + (worst.slower ? "slower" : "faster") + " end of what is likely " +
         size_text(worst.best) + " would be best, and " + size_text(*sure.size) + " " +
         share_text(worst.lost_percent) + " slower.";
}

// A framework's default may beat the best of a search that holds what the framework does otherwise.
std::string defaults_sentence(const tune::Tuning& tuning) {
  constexpr double kFaster = -0.1;  // percent; nearer to the best is as good
  std::vector<std::string> losses;
  std::vector<std::string> faster;
  for (std::size_t i = 0; i < tuning.certainty.defaults.size(); ++i) {
    const auto& loss = tuning.certainty.defaults[i];
    const std::string& dialect = tuning.defaults[i].dialect;
    losses.push_back(dialect + " " + percent_text(loss.percent) + " (" +
                     percent_range(loss.interval.low, loss.interval.high) + ")");
    if (loss.percent < kFaster) faster.push_back(dialect);
  }
  std::string text = "The frameworks' own defaults beside the best: " + join_and(losses);
  if (faster.empty()) return text + ".";
  return text + "; " + join_and(faster) + (faster.size() == 1 ? " is" : " are") +
         " faster by what this search held as it is.";
}

}  // namespace

std::string headline(const tune::Tuning& tuning) {
  const auto& tuned = tuning.tuned;
  const auto& sure = tuning.certainty;
  const tune::Ranked& choice = tuned.winner();
  const std::string step = seconds_text(choice.metrics.step_time) +
                           " a step (80 %: " + seconds_range(sure.step.low, sure.step.high) + ")";
  const std::string baseline = quoted_name(tuned.baseline.strategy.name);
  const bool same_only = training_of_best(tuning) == measure::Training::kSame;
  const std::string same =
      same_only && !beyond_sentences(tuning).empty() ? " with the same training" : "";
  if (choice.strategy.name == tuned.baseline.strategy.name) {
    return "Nothing to gain here" + same + ": the baseline " + baseline + " is the best found, " +
           step + ".";
  }
  const auto fits = [&](const tune::Ranked& ranked) {
    return measure::memory_of(tuning.scenario, ranked.strategy).fits();
  };
  if (fits(choice) && !fits(tuned.baseline)) {
    return quoted_name(choice.strategy.name) + " is the best found that fits" + same + ": " + step +
           ", " + short_speedup_text(1 + gain_of(tuned)) + " over the baseline " + baseline + " (" +
           seconds_text(tuned.baseline.metrics.step_time) + "), which does not fit.";
  }
  if (gain_of(tuned) < kLeastGain) {
    return "Next to nothing to gain here" + same + ": the best found, " +
           quoted_name(choice.strategy.name) + ", takes " + step + ", " +
           share_text(100 * gain_of(tuned)) + " less than the baseline " + baseline + " (" +
           seconds_text(tuned.baseline.metrics.step_time) + "); stay with that.";
  }
  std::string text = quoted_name(choice.strategy.name) + " is the best found" + same + ": " + step +
                     ", " + short_speedup_text(1 + gain_of(tuned)) + " (" +
                     speedup_range(sure.gain.low, sure.gain.high) + ") over the baseline " +
                     baseline + " (" + seconds_text(tuned.baseline.metrics.step_time) +
                     "); the chance that it is faster at all is " + chance_text(sure.chance);
  if (sure.chance < kLeastChance) text += ", so measure both before you change anything";
  return text + ".";
}

std::vector<std::string> certainty_sentences(const tune::Tuning& tuning) {
  const auto& sure = tuning.certainty;
  std::vector<std::string> list;
  if (!sure.as_good.empty()) list.push_back(size_sentence(tuning));
  if (!sure.defaults.empty()) list.push_back(defaults_sentence(tuning));
  const auto [doubt, share] = measure::widest(sure.choice);
  list.push_back("What makes the step time uncertain is above all " +
                 std::string(measure::words_of(doubt)) + " (" + share_text(100 * share) +
                 " of the interval's square).");
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
  for (const auto& each : sure.sensitivities) {
    json["sensitivities"].push_back({{"doubt", measure::words_of(each.doubt)},
                                     {"end", each.slower ? "slower" : "faster"},
                                     {"best_bytes", each.best},
                                     {"lost_percent", exact(each.lost_percent)}});
  }
  for (std::size_t i = 0; i < sure.defaults.size(); ++i) {
    const auto& loss = sure.defaults[i];
    json["defaults"][tuning.defaults[i].dialect] = {{"percent", exact(loss.percent)},
                                                    {"low", exact(loss.interval.low)},
                                                    {"high", exact(loss.interval.high)}};
  }
  return json;
}

}  // namespace syncline::reports
