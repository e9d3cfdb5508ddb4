#include "reports/compare_report.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "core/error.h"
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

struct Pattern {
  const char* text;
  double unit;  // of a time in seconds; of a rate 1
  bool rate;
};

// The first that finds something counts.
constexpr std::array kPatterns{
    Pattern{R"(elapsed time per iteration \(ms\):\s*([0-9.]+))", 1e-3, false},
    Pattern{R"(step[ _]time\s*[:=]?\s*([0-9.]+)\s*ms)", 1e-3, false},
    Pattern{R"(step[ _]time\s*[:=]?\s*([0-9.]+)\s*s\b)", 1, false},
    Pattern{R"(([0-9.]+)\s*s/it\b)", 1, false},
    Pattern{R"(([0-9.]+)\s*it/s\b)", 1, true},
    Pattern{R"((?:tps|tokens/s(?:ec)?|samples/s(?:ec)?|samples_per_second)\s*[:=]\s*([0-9.,]+))", 1,
            true},
    Pattern{R"(([0-9.]+)\s*(?:tokens|samples|images|examples)/s(?:ec)?\b)", 1, true}};

std::vector<double> found_by(const std::string& pattern, const std::string& output) {
  std::vector<double> numbers;
  try {
    const std::regex regex(pattern, std::regex::icase);
    if (regex.mark_count() < 1) {
      throw InputError("--figure: '" + pattern + "' has no group: put the number in brackets");
    }
    // A bar's line ends in a carriage return. The library walks a line by recursion.
    constexpr std::size_t kLongest = 1000;
    for (std::size_t begin = 0; begin < output.size();) {
      const std::size_t end = std::min(output.find_first_of("\r\n", begin), output.size());
      const std::string line = output.substr(begin, std::min(end - begin, kLongest));
      begin = end + 1;
      for (std::sregex_iterator at(line.begin(), line.end(), regex), last; at != last; ++at) {
        std::string text = (*at)[1].str();
        std::erase(text, ',');
        char* rest = nullptr;
        const double number = std::strtod(text.c_str(), &rest);
        if (rest != text.c_str() && number > 0 && std::isfinite(number)) numbers.push_back(number);
      }
    }
  } catch (const std::regex_error&) {
    throw InputError("--figure: '" + pattern + "' is no regular expression");
  }
  return numbers;
}

// Steps get faster at first, as memory and choices of algorithms settle.
double settled(const std::vector<double>& numbers) {
  const auto first = static_cast<std::ptrdiff_t>(numbers.size() / 4);
  return median({numbers.begin() + first, numbers.end()});
}

}  // namespace

std::optional<Seconds> step_in(const std::string& output, const std::string& own, bool rate) {
  if (!own.empty()) {
    const std::vector<double> numbers = found_by(own, output);
    if (numbers.empty()) return std::nullopt;
    return rate ? 1 / settled(numbers) : settled(numbers);
  }
  for (const Pattern& pattern : kPatterns) {
    const std::vector<double> numbers = found_by(pattern.text, output);
    if (numbers.empty()) continue;
    return pattern.rate ? 1 / settled(numbers) : pattern.unit * settled(numbers);
  }
  return std::nullopt;
}

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
