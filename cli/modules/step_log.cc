#include "cli/modules/step_log.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/base/statistics.h"

namespace syncline::cli {
namespace {

struct Pattern {
  const char* text;
  double unit;  // a time's, in seconds; 1 for a rate
  bool rate;
};

// The first pattern that matches counts.
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
      throw InputError("'" + pattern + "' has no group: put the number in brackets");
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
    throw InputError("'" + pattern + "' is no regular expression");
  }
  return numbers;
}

// Returns the median without the first quarter: memory and choices of algorithms settle at first.
double settled(const std::vector<double>& numbers) {
  const auto first = static_cast<std::ptrdiff_t>(numbers.size() / 4);
  return median({numbers.begin() + first, numbers.end()});
}

}  // namespace

std::optional<Seconds> find_step_time(const std::string& output, const std::string& own,
                                      bool rate) {
  const Pattern given{own.c_str(), 1, rate};
  for (const Pattern& pattern :
       own.empty() ? std::span<const Pattern>(kPatterns) : std::span(&given, 1)) {
    const std::vector<double> numbers = found_by(pattern.text, output);
    if (numbers.empty()) continue;
    return pattern.rate ? 1 / settled(numbers) : pattern.unit * settled(numbers);
  }
  return std::nullopt;
}

}  // namespace syncline::cli
