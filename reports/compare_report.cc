#include "reports/compare_report.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/statistics.h"
#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

constexpr double kShare = 0.95;

Table rounds_of(const Comparison& comparison) {
  Table table{columns(
      both("round", "round", Kind::kInteger), both("first", "first_s", Kind::kSeconds),
      both("second", "second_s", Kind::kSeconds), both("times faster", "speedup", Kind::kSpeedup))};
  for (std::size_t r = 0; r < comparison.times[1].size(); ++r) {
    const Seconds first = comparison.times[0][r];
    const Seconds second = comparison.times[1][r];
    table.add(r + 1, first, second, first / second);
  }
  return table;
}

std::string verdict_of(const Comparison& comparison) {
  if (comparison.times[1].empty()) return "Nothing was compared: no round is complete.";
  const FasterBy by = faster_by(comparison);
  const std::string what = comparison.of_steps ? " a step" : " a run";
  const std::string times = seconds_text(median(comparison.times[0]), kSaidDigits) + " -> " +
                            seconds_text(median(comparison.times[1]), kSaidDigits) + what;
  const std::string rounds = std::to_string(comparison.times[1].size()) +
                             (comparison.times[1].size() == 1 ? " round" : " rounds");
  if (!by.interval) {
    return "The second took " + times + ", " + short_speedup_text(by.factor) + " as fast, in " +
           rounds + ": one round says nothing of the noise.";
  }
  const std::string range =
      short_speedup_text(by.interval->low) + " to " + short_speedup_text(by.interval->high);
  if (by.interval->low <= 1 && by.interval->high >= 1) {
    return rounds + " leave open which is faster: the second is " + short_speedup_text(by.factor) +
           " as fast (95 %: " + range + "), " + times + ".";
  }
  const bool faster = by.factor > 1;
  return std::string("The second is ") + (faster ? "faster: " : "slower: ") +
         short_speedup_text(by.factor) + " as fast (95 %: " + range + "), " + times + ", in " +
         rounds + ".";
}

Page page_of(const Comparison& comparison) {
  Page page;
  page.title = "Comparison";
  page.blocks.push_back(verdict_of(comparison));
  page.blocks.push_back(grid_of(rounds_of(comparison)));
  page.blocks.push_back(Items{"Commands", {comparison.commands[0], comparison.commands[1]}});
  page.blocks.push_back(
      std::string("Measured: the commands ran in turns, the first one first in odd rounds. ") +
      (comparison.of_steps ? "A time is the median of the later three quarters of a run's steps."
                           : "A time is that of the whole run: its output names no step times "
                             "(--figure finds them)."));
  if (comparison.interrupted)
    page.blocks.push_back(std::string("Interrupted: rounds are missing."));
  return page;
}

Json json_of(const Comparison& comparison) {
  Json json{{"first", comparison.commands[0]},
            {"second", comparison.commands[1]},
            {"of", comparison.of_steps ? "steps" : "runs"},
            {"complete", !comparison.interrupted},
            {"rows", json_of(rounds_of(comparison))},
            {"verdict", verdict_of(comparison)}};
  if (comparison.times[1].empty()) return json;
  const FasterBy by = faster_by(comparison);
  json["speedup"] = exact(by.factor);
  if (by.interval) json["speedup_interval"] = {exact(by.interval->low), exact(by.interval->high)};
  return json;
}

}  // namespace

FasterBy faster_by(const Comparison& comparison) {
  std::vector<double> logs;
  for (std::size_t r = 0; r < comparison.times[1].size(); ++r) {
    logs.push_back(std::log(comparison.times[0][r] / comparison.times[1][r]));
  }
  FasterBy by{std::exp(mean(logs)), std::nullopt};
  if (logs.size() < 2) return by;
  const auto rounds = static_cast<double>(logs.size());
  const double half = student_t(kShare, rounds - 1) * sample_deviation(logs) / std::sqrt(rounds);
  by.interval = {by.factor * std::exp(-half), by.factor * std::exp(half)};
  return by;
}

Answer answer_of(const Comparison& comparison) {
  return {"compare", "", [&] { return page_of(comparison); }, [&] { return rounds_of(comparison); },
          [&] { return json_of(comparison); }};
}

}  // namespace syncline::reports
